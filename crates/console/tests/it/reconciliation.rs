//! What the engines hold beside what metadata says.

use strandline_console::{MissingPartition, Reconciliation, Scope, Stranger};
use strandline_model::Timestamp;

use crate::Running;

pub(crate) fn found() -> Vec<Reconciliation> {
    let stranger = |partition, state, bytes, since: Option<i64>| Stranger {
        topic_id: "QkJCQkJCQkJCQkJCQkJCQg".to_owned(),
        partition,
        state,
        bytes,
        since: since.map(Timestamp::from_millis),
        purge_at: since.map(|since| Timestamp::from_millis(since + 1000)),
    };
    vec![Reconciliation {
        engine: "file".to_owned(),
        checked_at: Timestamp::from_millis(1_700_000_000_500),
        known: 5,
        pending: 2,
        foreign: vec!["logs/notes".to_owned()],
        strangers: vec![
            stranger(0, "quarantined", 700, Some(1_700_000_000_000)),
            stranger(1, "left", 0, None),
        ],
        missing: vec![MissingPartition {
            topic: "orders".to_owned(),
            topic_id: "REJCQkJCQkJCQkJCQkJCQg".to_owned(),
            partition: 3,
            what: "segment is missing".to_owned(),
        }],
        damaged: vec![MissingPartition {
            topic: "orders".to_owned(),
            topic_id: "REJCQkJCQkJCQkJCQkJCQg".to_owned(),
            partition: 5,
            what: "segment is shorter than it was".to_owned(),
        }],
        unreadable: vec![MissingPartition {
            topic: "orders".to_owned(),
            topic_id: "REJCQkJCQkJCQkJCQkJCQg".to_owned(),
            partition: 4,
            what: "i/o error".to_owned(),
        }],
    }]
}

#[tokio::test]
async fn what_is_unknown_and_what_is_missing_is_listed_as_json() {
    let console = Running::start(Scope::Everything, 8).await;
    let answer = console.get("/v1/storage").await;
    assert_eq!(answer.code, 200);
    assert_eq!(
        answer.body,
        concat!(
            r#"[{"engine":"file","checked_at":"2023-11-14T22:13:20.5Z","known":5,"pending":2,"#,
            r#""foreign":["logs/notes"],"#,
            r#""strangers":[{"topic_id":"QkJCQkJCQkJCQkJCQkJCQg","partition":0,"#,
            r#""state":"quarantined","bytes":700,"since":"2023-11-14T22:13:20Z","#,
            r#""purge_at":"2023-11-14T22:13:21Z"},{"topic_id":"QkJCQkJCQkJCQkJCQkJCQg","#,
            r#""partition":1,"state":"left","bytes":0,"since":null,"purge_at":null}],"#,
            r#""missing":[{"topic":"orders","topic_id":"REJCQkJCQkJCQkJCQkJCQg","#,
            r#""partition":3,"what":"segment is missing"}],"#,
            r#""damaged":[{"topic":"orders","topic_id":"REJCQkJCQkJCQkJCQkJCQg","#,
            r#""partition":5,"what":"segment is shorter than it was"}],"#,
            r#""unreadable":[{"topic":"orders","topic_id":"REJCQkJCQkJCQkJCQkJCQg","#,
            r#""partition":4,"what":"i/o error"}]}]"#,
        )
    );
    console.stop().await;
}

#[tokio::test]
async fn beyond_loopback_nobody_learns_what_is_stored() {
    let console = Running::start(Scope::HealthOnly, 8).await;
    assert_eq!(console.get("/v1/storage").await.code, 404);
    console.stop().await;
}
