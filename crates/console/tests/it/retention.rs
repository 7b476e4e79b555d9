//! What is there of a topic, and why.

use strandline_console::{PartitionRetention, Scope, Segment, TopicRetention};
use strandline_model::{Offset, PartitionIndex, Timestamp};

use crate::Running;

fn segment(base: i64, limit: Option<&'static str>) -> Segment {
    Segment {
        partition: 3,
        name: format!("{base:020}.log"),
        base_offset: base,
        next_offset: base + 10,
        bytes: 700,
        state: if limit.is_some() { "due" } else { "open" },
        max_timestamp: None,
        first_appended_at: Timestamp::from_millis(1_700_000_000_000),
        last_appended_at: Timestamp::from_millis(1_700_000_000_500),
        reason: if limit.is_some() { "awaiting_check" } else { "not_expired" },
        limit,
        goes_at: limit.is_none().then(|| Timestamp::from_millis(1_700_000_900_000)),
    }
}

pub(crate) fn topic(name: &str, simulated: &[(String, String)]) -> TopicRetention {
    let segments = vec![segment(0, Some("retention.ms")), segment(10, None)];
    let simulated = simulated.iter().find(|(key, _)| key == "retention.ms");
    TopicRetention {
        topic: name.to_owned(),
        now: Timestamp::from_millis(1_700_000_600_000),
        checked_at: None,
        next_check_at: Some(Timestamp::from_millis(1_700_000_601_000)),
        check_interval_ms: 300_000,
        cleanup_policy: "delete",
        retention_ms: simulated.map(|(_, value)| value.parse().expect("the test asks so")),
        retention_bytes: None,
        retention_bytes_floor: false,
        retention_records: None,
        unreadable: Vec::new(),
        partitions: vec![PartitionRetention::new(
            PartitionIndex::new(3),
            Offset::new(4),
            Offset::new(20),
            Some((Timestamp::from_millis(1_700_000_700_000), "retention.bytes")),
            segments,
        )],
    }
}

#[tokio::test]
async fn the_oldest_segment_tells_why_it_is_there() {
    let console = Running::start(Scope::Everything, 8).await;
    let answer = console.get("/v1/topics/orders/retention?simulate=retention.ms:5000").await;
    assert_eq!(answer.code, 200);
    assert_eq!(
        answer.body,
        concat!(
            r#"{"topic":"orders","now":"2023-11-14T22:23:20Z","checked_at":null,"#,
            r#""next_check_at":"2023-11-14T22:23:21Z","check_interval_ms":300000,"#,
            r#""cleanup_policy":"delete","retention_ms":5000,"retention_bytes":null,"#,
            r#""retention_bytes_floor":false,"retention_records":null,"unreadable":[],"partitions":[{"#,
            r#""partition":3,"log_start_offset":4,"log_end_offset":20,"bytes":1400,"#,
            r#""segment_count":2,"due_bytes":700,"due_segments":1,"left_bytes":700,"#,
            r#""estimate":{"goes_at":"2023-11-14T22:25:00Z","limit":"retention.bytes"},"#,
            r#""oldest":{"partition":3,"#,
            r#""name":"00000000000000000000.log","base_offset":0,"next_offset":10,"bytes":700,"#,
            r#""state":"due","max_timestamp":null,"first_appended_at":"2023-11-14T22:13:20Z","#,
            r#""last_appended_at":"2023-11-14T22:13:20.5Z","reason":"awaiting_check","#,
            r#""limit":"retention.ms","goes_at":null}}]}"#,
        )
    );
    console.stop().await;
}

#[tokio::test]
async fn segments_are_listed_one_by_one() {
    let console = Running::start(Scope::Everything, 8).await;
    let answer = console.get("/v1/topics/orders/segments").await;
    assert_eq!(answer.code, 200);
    assert_eq!(answer.body.matches(r#""partition":3"#).count(), 2, "{}", answer.body);
    assert!(
        answer
            .body
            .contains(r#""reason":"not_expired","limit":null,"goes_at":"2023-11-14T22:28:20Z""#)
    );
    console.stop().await;
}

#[tokio::test]
async fn segments_come_page_by_page() {
    let console = Running::start(Scope::Everything, 8).await;
    // (behind the question mark, the base offsets that come)
    let pages = [
        ("limit=1", vec![0]),
        ("limit=1&after=3:0", vec![10]),
        ("after=3:0", vec![10]),
        ("after=3:10", vec![]),
        ("after=2:99", vec![0, 10]),
        ("limit=2", vec![0, 10]),
    ];
    for (asked, expected) in pages {
        let answer = console.get(&format!("/v1/topics/orders/segments?{asked}")).await;
        assert_eq!(answer.code, 200, "{asked}: {}", answer.body);
        let found: Vec<i64> = [0, 10]
            .into_iter()
            .filter(|base| answer.body.contains(&format!(r#""base_offset":{base},"#)))
            .collect();
        assert_eq!(found, expected, "{asked}: {}", answer.body);
    }
    console.stop().await;
}

#[tokio::test]
async fn wrong_questions_are_told_so() {
    let console = Running::start(Scope::Everything, 8).await;
    // (path, code, what is said)
    let questions = [
        ("/v1/topics/unknown/retention", 404, "no such topic: unknown"),
        ("/v1/topics/orders/retention?simulate=retention.ms", 400, "write simulate=KEY:VALUE"),
        ("/v1/topics/orders/retention?if=x", 400, "unknown parameter if"),
        ("/v1/topics/orders/retention?limit=1", 400, "unknown parameter limit"),
        ("/v1/topics/orders/segments?limit=0", 400, "from 1 to 10000"),
        ("/v1/topics/orders/segments?limit=10001", 400, "from 1 to 10000"),
        ("/v1/topics/orders/segments?after=3", 400, "write after=PARTITION:BASE-OFFSET"),
        ("/v1/topics/orders/segments?if=x", 400, "known: simulate, after, limit"),
        ("/v1/topics/orders/retention?simulate=a:b", 400, "no key a"),
        ("/v1/topics/orders", 404, "nothing here"),
    ];
    for (path, code, said) in questions {
        let answer = console.get(path).await;
        assert_eq!(answer.code, code, "{path}");
        assert!(answer.body.contains(said), "{path}: {}", answer.body);
    }
    console.stop().await;
}

#[tokio::test]
async fn beyond_loopback_nobody_learns_of_topics() {
    let console = Running::start(Scope::HealthOnly, 8).await;
    assert_eq!(console.get("/v1/topics/orders/retention").await.code, 404);
    assert_eq!(console.get("/v1/topics/orders/segments").await.code, 404);
    console.stop().await;
}
