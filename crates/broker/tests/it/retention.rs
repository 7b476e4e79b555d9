//! Retention, carried out by a broker: what goes, what stays, and who is not held up.

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
        let size =
            house.broker.topics().iter().map(|topic| topic.open_partitions[0].size.get()).max();
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
async fn three_expired_topics() -> (TestBroker, Client) {
    let house = TestBroker::start_with(&[("log.retention.ms", "1000")]).await;
    let mut client = house.connect();
    for topic in ["a", "b", "c"] {
        client.create_topic_with(topic, 1, &[SMALL]).await;
        fill(&mut client, topic, 3).await;
    }
    house.environment.advance_ms(1_001);
    (house, client)
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_hangs_holds_up_none_of_the_others() {
    let (house, mut client) = three_expired_topics().await;
    house.faults.on_trim(0, TrimFault::Hang);
    house.broker.check_retention().await;
    let mut starts = Vec::new();
    for topic in ["a", "b", "c"] {
        starts.push(bounds(&mut client, topic).await.0);
        fill(&mut client, topic, 1).await;
    }
    starts.sort_unstable();
    assert_eq!(starts, [0, 3, 3]);
    house.environment.advance_ms(1_001);
    house.broker.check_retention().await;
    let mut starts = Vec::new();
    for topic in ["a", "b", "c"] {
        starts.push(bounds(&mut client, topic).await.0);
    }
    starts.sort_unstable();
    assert_eq!(starts, [0, 4, 4], "the one that hangs is left alone");
}

#[tokio::test]
async fn a_partition_that_fails_is_tried_again() {
    let (house, mut client) = three_expired_topics().await;
    house.faults.on_trim(1, TrimFault::Fail(ErrorKind::Unavailable));
    house.broker.check_retention().await;
    let mut emptied = 0;
    for topic in ["a", "b", "c"] {
        emptied += usize::from(bounds(&mut client, topic).await == (3, 3));
    }
    assert_eq!(emptied, 2);
    assert_eq!(house.broker.metrics().retention_failures.get(), 1);
    let overdue = |house: &TestBroker| -> u64 {
        let topics = house.broker.topics();
        topics.iter().map(|topic| topic.open_partitions[0].overdue.get()).sum()
    };
    assert_eq!(overdue(&house), 3 * 88);
    house.broker.check_retention().await;
    assert_eq!(overdue(&house), 0);
    for topic in ["a", "b", "c"] {
        assert_eq!(bounds(&mut client, topic).await, (3, 3), "{topic}");
    }
}

#[tokio::test]
async fn a_panic_costs_one_partition_one_turn() {
    let (house, mut client) = three_expired_topics().await;
    house.faults.on_trim(0, TrimFault::Panic);
    house.broker.check_retention().await;
    let mut starts = Vec::new();
    for topic in ["a", "b", "c"] {
        starts.push(bounds(&mut client, topic).await.0);
        fill(&mut client, topic, 1).await;
    }
    starts.sort_unstable();
    assert_eq!(starts, [0, 3, 3]);
    house.environment.advance_ms(1_001);
    house.faults.on_chunks_panic(0);
    house.broker.check_retention().await;
    assert_eq!(house.broker.metrics().retention_failures.get(), 1);
    let mut starts = Vec::new();
    for topic in ["a", "b", "c"] {
        starts.push(bounds(&mut client, topic).await.0);
    }
    starts.sort_unstable();
    assert!(starts[0] < 4, "it was not judged now: {starts:?}");
    assert_eq!(starts[1..], [4, 4], "but those behind it were");
    house.broker.check_retention().await;
    for topic in ["a", "b", "c"] {
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
        .filter(|topic| !topic.open_partitions.is_empty())
        .map(|topic| (topic.name, topic.open_partitions[0].log_start_offset.get()))
        .collect();
    assert_eq!(open, [("old".to_owned(), 3)], "the other one stays closed");
}

#[tokio::test]
async fn clocks_that_are_wrong_neither_pin_nor_destroy() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let any_time = ("message.timestamp.after.max.ms", "9223372036854775807");
    client.create_topic_with("t", 1, &[SMALL, any_time, ("retention.ms", "60000")]).await;
    assert_eq!(client.produce("t", batch_at(4_000_000_000_000, "from the future")).await.0, 0);
    fill(&mut client, "t", 2).await;
    house.broker.check_retention().await;
    // The clock is a day ahead for a while, and records come in.
    house.environment.set_wrong_by_ms(86_400_000);
    house.broker.check_retention().await;
    fill(&mut client, "t", 1).await;
    assert_eq!(bounds(&mut client, "t").await, (0, 4), "a jump destroys nothing");
    house.environment.set_wrong_by_ms(0);
    house.environment.advance_ms(60_001);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (4, 4), "a record of the future pins nothing");
}

#[tokio::test]
async fn a_restart_does_not_forget_that_the_clock_is_ahead() {
    const DAY_MS: i64 = 86_400_000;
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL, ("retention.ms", "60000")]).await;
    fill(&mut client, "t", 2).await;
    house.environment.set_wrong_by_ms(DAY_MS);
    house.broker.check_retention().await;
    // What is appended now is dated by the wrong clock: it proves nothing to the next start.
    fill(&mut client, "t", 1).await;
    drop(client);
    let house = house.restart().await;
    house.broker.check_retention().await;
    let mut client = house.connect();
    assert_eq!(bounds(&mut client, "t").await, (0, 3));
    house.environment.set_wrong_by_ms(0);
    house.environment.advance_ms(60_001);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (3, 3), "the right time counts at once");
    assert_eq!(client.produce("t", batch_at(1_700_000_060_001, "on")).await, (0, 3));
    drop(client);

    // Nothing is kept any more. The clock of this start is a day ahead of the newest append: nobody
    // knows whether the machine was off for a day.
    house.environment.set_wrong_by_ms(DAY_MS);
    let house = house.restart().await;
    house.broker.check_retention().await;
    let mut client = house.connect();
    assert_eq!(bounds(&mut client, "t").await, (3, 4));
    house.environment.advance_ms(3_600_000);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (4, 4), "an hour later it is believed");
}

#[tokio::test]
async fn a_clock_that_is_behind_at_a_start_makes_nothing_old() {
    const DECADES_MS: i64 = 1_500_000_000_000;
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("before", 1, &[SMALL]).await;
    fill(&mut client, "before", 1).await;
    drop(client);
    // No battery: it begins in the seventies.
    house.environment.set_wrong_by_ms(-DECADES_MS);
    let house = house.restart().await;
    let mut client = house.connect();
    let two_hours = ("retention.ms", "7200000");
    let append_time = ("message.timestamp.type", "LogAppendTime");
    let any_time = ("message.timestamp.after.max.ms", "9223372036854775807");
    client.create_topic_with("t", 1, &[SMALL, two_hours, any_time]).await;
    client.create_topic_with("append-time", 1, &[SMALL, two_hours, append_time]).await;
    for topic in ["t", "append-time"] {
        fill(&mut client, topic, 2).await;
    }
    house.broker.check_retention().await;
    // The network says what time it is; an hour later it is believed.
    house.environment.set_wrong_by_ms(0);
    house.broker.check_retention().await;
    house.environment.advance_ms(3_600_000);
    house.broker.check_retention().await;
    for topic in ["t", "append-time"] {
        assert_eq!(bounds(&mut client, topic).await, (0, 2), "{topic} is an hour old");
    }
    assert_eq!(bounds(&mut client, "before").await, (0, 1));
    house.environment.advance_ms(3_600_001);
    house.broker.check_retention().await;
    for topic in ["t", "append-time"] {
        assert_eq!(bounds(&mut client, topic).await, (2, 2), "{topic}");
    }
}

#[tokio::test]
async fn passes_close_no_segment_because_the_clock_is_not_believed() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    fill(&mut client, "t", 1).await;
    house.environment.set_wrong_by_ms(86_400_000);
    for _ in 0..3 {
        house.broker.check_retention().await;
        fill(&mut client, "t", 1).await;
    }
    assert_eq!(house.broker.topics()[0].open_partitions[0].segment_count, 1);
}

#[tokio::test]
async fn what_was_appended_after_a_machine_slept_is_as_young_as_it_is() {
    let house = TestBroker::start_with(&[("log.retention.ms", "7200000")]).await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL]).await;
    fill(&mut client, "t", 2).await;
    house.broker.check_retention().await;
    // A day later; the monotonic clock stood still. The jump is not believed for an hour.
    let day_ms = 86_400_000;
    house.environment.set_wrong_by_ms(day_ms);
    let stamp = 1_700_000_000_000 + day_ms;
    assert_eq!(client.produce("t", batch_at(stamp, "in the morning")).await, (0, 2));
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (0, 3));
    house.environment.advance_ms(3_600_000);
    house.broker.check_retention().await;
    assert_eq!(
        bounds(&mut client, "t").await,
        (2, 3),
        "what is a day old goes, what is an hour old stays"
    );
    house.environment.advance_ms(3_600_001);
    house.broker.check_retention().await;
    assert_eq!(bounds(&mut client, "t").await, (3, 3));
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
