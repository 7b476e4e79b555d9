//! Retention, carried out by a broker: what goes, what stays, and who is not held up.

mod clocks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use strandline_storage::ErrorKind;
use strandline_storage::testkit::faults::TrimFault;
use strandline_wire::ErrorCode;

use crate::harness::{Client, TestBroker, batch, batch_at, idempotent_batch};

const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
const SET: i8 = 0;
const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// Each batch gets a segment of its own.
const SMALL: (&str, &str) = ("internal.segment.bytes", "90");

/// Appends `count` batches of one record of 20 bytes: 88 bytes each, stamped at the start.
async fn fill(client: &mut Client, topic: &str, count: usize) {
    for _ in 0..count {
        assert_eq!(client.produce(topic, batch(&["twenty bytes of text"])).await.0, 0);
    }
}

/// The first and the next offset.
async fn bounds(client: &mut Client, topic: &str) -> (i64, i64) {
    let (earliest, latest) =
        (client.offset(topic, EARLIEST).await, client.offset(topic, LATEST).await);
    assert_eq!((earliest.0, latest.0), (0, 0));
    (earliest.1, latest.1)
}

#[tokio::test]
async fn each_limit_removes_the_oldest_segments() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    // (topic, limit, the log start afterwards)
    let topics = [
        ("by-size", ("retention.bytes", "264"), 7),
        ("by-count", ("retention.records", "4"), 6),
        ("by-age", ("retention.ms", "1000"), 10),
        ("unlimited", ("retention.ms", "-1"), 0),
        ("kept-by-size", ("retention.bytes", "880"), 0),
    ];
    for (topic, limit, _) in topics {
        client.create_topic_with(topic, 1, &[SMALL, limit]).await;
        fill(&mut client, topic, 10).await;
        let size = house.broker.topics().iter().map(|topic| topic.partitions[0].size.get()).max();
        assert_eq!(size, Some(880), "each batch has 88 bytes");
    }
    house.environment.advance_ms(1_001);
    house.broker.check_retention().await;
    for (topic, _, log_start) in topics {
        assert_eq!(bounds(&mut client, topic).await, (log_start, 10), "{topic}");
        let removed: u64 = house
            .broker
            .topics()
            .iter()
            .filter(|status| status.name == topic)
            .flat_map(|status| {
                status
                    .metrics
                    .removed_by()
                    .map(|(_, removed)| removed.segments.get())
                    .collect::<Vec<_>>()
            })
            .sum();
        assert_eq!(i64::try_from(removed).unwrap(), log_start, "{topic}");
    }
    // Whoever reads from what is gone is told where the log begins, and reads on from there.
    let fetched = client.fetch("by-size", 3, 0).await;
    assert_eq!(fetched.error_code, ErrorCode::OFFSET_OUT_OF_RANGE.get());
    assert_eq!(client.fetch("by-size", 7, 0).await.error_code, 0);
    // An emptied topic goes on where it was, and nothing of it comes back.
    assert_eq!(client.produce("by-age", batch_at(1_700_000_001_001, "on")).await, (0, 10));
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "by-age").await, (10, 11));
}

#[tokio::test]
async fn a_change_of_settings_counts_from_the_next_pass_on() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("own", 1, &[SMALL, ("retention.ms", "-1")]).await;
    client.create_topic_with("default", 1, &[SMALL]).await;
    for topic in ["own", "default"] {
        fill(&mut client, topic, 5).await;
    }
    house.environment.advance_ms(5_000);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "own").await, (0, 5));
    assert_eq!(client.alter_config(TOPIC, "own", SET, ("retention.records", "2")).await, 0);
    assert_eq!(client.alter_config(BROKER, "", SET, ("log.retention.ms", "4000")).await, 0);
    fill(&mut client, "own", 1).await;
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "own").await, (4, 6), "old and new segments");
    assert_eq!(bounds(&mut client, "default").await, (5, 5));
    assert_eq!(client.alter_config(TOPIC, "own", SET, ("cleanup.policy", "compact")).await, 0);
    assert_eq!(client.alter_config(TOPIC, "own", SET, ("retention.records", "1")).await, 0);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "own").await, (4, 6), "a compacted topic is left alone");
    assert_eq!(
        client.alter_config(TOPIC, "own", SET, ("cleanup.policy", "compact,delete")).await,
        0
    );
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "own").await, (5, 6));
}

/// Expired records in three topics.
const THREE: [&str; 3] = ["a", "b", "c"];

async fn three_expired_topics() -> (TestBroker, Client) {
    let house = TestBroker::start_with(&[("log.retention.ms", "1000")]).await;
    let mut client = house.connect();
    for topic in THREE {
        client.create_topic_with(topic, 1, &[SMALL]).await;
        fill(&mut client, topic, 3).await;
    }
    house.environment.advance_ms(1_001);
    (house, client)
}

/// Where the three begin, in order: which of them is dealt with first is nobody's business.
async fn log_starts(client: &mut Client) -> Vec<i64> {
    let mut starts = Vec::new();
    for topic in THREE {
        starts.push(bounds(client, topic).await.0);
    }
    starts.sort_unstable();
    starts
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_hangs_holds_up_none_of_the_others() {
    let (house, mut client) = three_expired_topics().await;
    house.faults.on_trim(0, TrimFault::Hang);
    house.broker.check_retention().await;
    assert_eq!(log_starts(&mut client).await, [0, 3, 3]);
    for topic in THREE {
        fill(&mut client, topic, 1).await;
    }
    house.environment.advance_ms(1_001);
    house.broker.check_retention().await;
    let starts = log_starts(&mut client).await;
    assert_eq!(starts, [0, 4, 4], "the one that hangs is left alone");
}

#[tokio::test]
async fn a_partition_that_fails_is_tried_again() {
    let (house, mut client) = three_expired_topics().await;
    house.faults.on_trim(1, TrimFault::Fail(ErrorKind::Unavailable));
    house.broker.check_retention().await;
    let mut emptied = 0;
    for topic in THREE {
        emptied += usize::from(bounds(&mut client, topic).await == (3, 3));
    }
    assert_eq!(emptied, 2);
    assert_eq!(house.broker.metrics().retention_failures.get(), 1);
    let overdue = |house: &TestBroker| -> u64 {
        let topics = house.broker.topics();
        topics.iter().map(|topic| topic.partitions[0].overdue.get()).sum()
    };
    assert_eq!(overdue(&house), 3 * 88);
    house.broker.check_retention().await;
    assert_eq!(overdue(&house), 0);
    for topic in THREE {
        assert_eq!(bounds(&mut client, topic).await, (3, 3), "{topic}");
    }
}

#[tokio::test]
async fn a_panic_costs_one_partition_one_turn() {
    let (house, mut client) = three_expired_topics().await;
    house.faults.on_trim(0, TrimFault::Panic);
    house.broker.check_retention().await;
    assert_eq!(log_starts(&mut client).await, [0, 3, 3]);
    for topic in THREE {
        fill(&mut client, topic, 1).await;
    }
    house.environment.advance_ms(1_001);
    house.faults.on_chunks_panic(0);
    house.broker.check_retention().await;
    assert_eq!(house.broker.metrics().retention_failures.get(), 1);
    let starts = log_starts(&mut client).await;
    assert!(starts[0] < 4, "it was not judged now: {starts:?}");
    assert_eq!(starts[1..], [4, 4], "but those behind it were");
    house.broker.check_retention().await;
    for topic in THREE {
        assert_eq!(bounds(&mut client, topic).await, (4, 4), "{topic}");
    }
}

#[tokio::test]
async fn a_change_of_settings_counts_in_the_middle_of_a_long_removal() {
    let house = TestBroker::start_with(&[("log.retention.ms", "1000")]).await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL]).await;
    fill(&mut client, "t", 600).await;
    house.environment.advance_ms(1_001);
    house.faults.on_trim(0, TrimFault::Pause);
    let broker = Arc::clone(&house.broker);
    let pass = tokio::spawn(async move { broker.check_retention().await });
    house.faults.trim_paused().await;
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("retention.ms", "-1")).await, 0);
    house.faults.resume_trim();
    pass.await.unwrap();
    assert_eq!(bounds(&mut client, "t").await, (512, 600), "what was under way, and no more");
}

#[tokio::test]
async fn many_segments_go_in_steps_and_the_rest_after_a_failure() {
    let house = TestBroker::start_with(&[("log.retention.ms", "1000")]).await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL]).await;
    fill(&mut client, "t", 600).await;
    house.environment.advance_ms(1_001);
    house.faults.on_trim(1, TrimFault::Fail(ErrorKind::Unavailable));
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (512, 600));
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (600, 600));
    let topics = house.broker.topics();
    let removed = topics[0].metrics.removed_by().map(|(_, removed)| removed.segments.get());
    assert_eq!(removed.sum::<u64>(), 600, "each is counted once");
}

#[tokio::test]
async fn producers_outlive_their_records() {
    let house = TestBroker::start_with(&[("log.retention.ms", "1000")]).await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL]).await;
    for sequence in 0..3 {
        let sent = idempotent_batch(9, 0, sequence, &["a"]);
        assert_eq!(client.produce("t", sent).await, (0, i64::from(sequence)));
    }
    house.environment.advance_ms(1_001);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (3, 3));
    let house = house.restart().await;
    let mut client = house.connect();
    assert_eq!(client.produce("t", idempotent_batch(9, 0, 2, &["a"])).await, (0, 2), "a retry");
    assert_eq!(client.produce("t", idempotent_batch(9, 0, 3, &["b"])).await, (0, 3));
    let skipped = client.produce("t", idempotent_batch(9, 0, 5, &["c"])).await.0;
    assert_eq!(skipped, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER.get());
}

#[tokio::test]
async fn a_topic_that_nobody_used_since_the_start_expires_too() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    for (topic, limit) in [("old", "1000"), ("young", "60000")] {
        client.create_topic_with(topic, 1, &[SMALL, ("retention.ms", limit)]).await;
        fill(&mut client, topic, 3).await;
    }
    drop(client);
    let house = house.restart().await;
    house.environment.advance_ms(1_001);
    house.broker.check_retention().await;
    let open: Vec<_> = house
        .broker
        .topics()
        .into_iter()
        .filter(|topic| topic.partitions[0].is_open)
        .map(|topic| (topic.name, topic.partitions[0].log_start_offset.get()))
        .collect();
    assert_eq!(open, [("old".to_owned(), 3)], "the other one stays closed");
}

#[tokio::test(start_paused = true)]
async fn passes_come_by_themselves_as_often_as_is_set_now() {
    let house = TestBroker::start_with(&[("log.retention.ms", "1000")]).await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL]).await;
    fill(&mut client, "t", 3).await;
    house.environment.advance_ms(1_001);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(bounds(&mut client, "t").await, (3, 3), "the first pass comes soon");

    fill(&mut client, "t", 1).await;
    house.environment.advance_ms(1_001);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(bounds(&mut client, "t").await, (3, 4), "the next one in five minutes");
    let often = ("log.retention.check.interval.ms", "1500");
    assert_eq!(client.alter_config(BROKER, "", SET, often).await, 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bounds(&mut client, "t").await, (4, 4));
}

/// A look at all segments: the base offset of each, and when it is said to go: `Some(0)` for the next
/// pass, `None` for not by age.
fn foretold(house: &TestBroker, topic: &str) -> BTreeMap<i64, Option<i64>> {
    let told = house.broker.retention(topic, &[]).unwrap().unwrap();
    let [partition] = told.partitions.as_slice() else { panic!("{told:?}") };
    let segments = partition.segments.iter().map(|segment| {
        let goes_at = match segment.limit {
            Some(_) => Some(0),
            None => segment.goes_at.map(strandline_model::Timestamp::as_millis),
        };
        (segment.base_offset.get(), goes_at)
    });
    segments.collect()
}

/// Days of appends at random, with a pass between any two: what goes is what was foretold before time
/// went on, all of it and nothing else.
#[tokio::test]
async fn what_goes_was_foretold_and_what_was_foretold_goes() {
    const BEGUN_MS: i64 = 1_700_000_000_000;
    let limits = [
        [("retention.ms", "14400000"), ("retention.records", "-1")],
        [("retention.ms", "36000000"), ("retention.bytes", "1500")],
        [("retention.ms", "-1"), ("retention.records", "14")],
        [("retention.ms", "3600000"), ("retention.records", "9")],
    ];
    let mut removed = 0;
    for seed in 1..=40_u64 {
        let house = TestBroker::start().await;
        let mut client = house.connect();
        let of_segment = ("internal.segment.bytes", "400");
        let any_time = ("message.timestamp.after.max.ms", "9223372036854775807");
        let [first, second] = limits[usize::try_from(seed).unwrap() % limits.len()];
        client.create_topic_with("t", 1, &[of_segment, any_time, first, second]).await;
        let mut dice = Dice(seed);
        let mut now = BEGUN_MS;
        for _ in 0..60 {
            for _ in 0..dice.below(8) {
                // Producers' clocks are some hours off, and some are far in the future.
                let off = match dice.below(10) {
                    0 => 90_000_000_000,
                    _ => dice.below(14_400_000) - 7_200_000,
                };
                assert_eq!(
                    client.produce("t", batch_at(now + off, "twenty bytes of text")).await.0,
                    0
                );
            }
            let before = foretold(&house, "t");
            let step = dice.below(7_200_000);
            house.environment.advance_ms(step);
            now += step;
            house.broker.check_retention().await;
            let after = foretold(&house, "t");
            for (base, goes_at) in &before {
                let was_foretold = goes_at.is_some_and(|goes_at| goes_at <= now);
                let went = !after.contains_key(base);
                assert_eq!(went, was_foretold, "seed {seed}: {base} at {now}, of {before:?}");
                removed += usize::from(went);
            }
        }
    }
    assert!(removed > 500, "{removed}");
}

/// Numbers that look random, from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_is_filled_fast_does_not_wait_for_the_next_pass() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let small = ("internal.segment.bytes", "90");
    for (topic, limit) in [("fast", "1000"), ("slow", "4000")] {
        client.create_topic_with(topic, 1, &[small, ("retention.records", limit)]).await;
    }
    house.broker.check_retention().await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    for topic in ["fast", "slow"] {
        fill(&mut client, topic, 1_400).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(bounds(&mut client, "fast").await, (400, 1_400), "long before the next pass");
    assert_eq!(house.broker.last_retention_pass().unwrap().as_millis(), 1_700_000_000_000);
    assert_eq!(bounds(&mut client, "slow").await, (0, 1_400));
}
