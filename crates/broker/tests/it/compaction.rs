//! Compaction, carried out by a broker: what stays, who is not held up, what is refused.

use std::collections::BTreeMap;

use bytes::BytesMut;
use strandline_model::{ByteCount, ProducerEpoch, ProducerId, Sequence, Timestamp};
use strandline_records::{BatchBuilder, NewRecord, ProducerStamp, batches, records};
use strandline_storage::ErrorKind;
use strandline_storage::testkit::faults::TrimFault;
use strandline_wire::{ErrorCode, delete_records};

use crate::harness::{Client, TestBroker, text};

const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
const NEWEST: i64 = -3;
const SET: i8 = 0;
const TOPIC: i8 = 2;

/// Each batch gets a segment of its own.
const SMALL: (&str, &str) = ("internal.segment.bytes", "95");
const COMPACT: (&str, &str) = ("cleanup.policy", "compact");
const EAGER: (&str, &str) = ("min.cleanable.dirty.ratio", "0.01");
/// When the harness's clock begins.
const BEGIN_MS: i64 = 1_700_000_000_000;

/// A record of a key, and the value that it has from then on.
type Pair<'a> = (&'a str, Option<&'a str>);

fn pairs(of: &[Pair<'_>], millis: i64) -> BytesMut {
    fill(BatchBuilder::new(), of, millis)
}

fn fill(mut builder: BatchBuilder, of: &[Pair<'_>], millis: i64) -> BytesMut {
    for (key, value) in of {
        let timestamp = Some(Timestamp::from_millis(millis));
        let (key, value) = (Some(key.as_bytes()), value.map(str::as_bytes));
        builder.push(NewRecord { key, value, timestamp, headers: &[] });
    }
    builder.build()
}

async fn put(client: &mut Client, topic: &str, of: &[Pair<'_>]) {
    assert_eq!(client.produce(topic, pairs(of, BEGIN_MS)).await.0, 0);
}

/// Everything from `offset` on, as a consumer gets it: offset, key, value.
async fn read(client: &mut Client, topic: &str, offset: i64) -> Vec<(i64, String, Option<String>)> {
    let utf_8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut all = Vec::new();
    let mut next = offset;
    loop {
        let fetched = client.fetch(topic, next, 0).await;
        assert_eq!(fetched.error_code, 0);
        let bytes = fetched.records.unwrap_or_default();
        if bytes.is_empty() {
            assert_eq!(next, fetched.high_watermark, "a reader gets to the end");
            return all;
        }
        for batch in batches(&bytes).map(Result::unwrap) {
            batch.check_crc().unwrap();
            let block = batch.decompressed(ByteCount::mib(1)).unwrap();
            for record in records(&block, batch.records_count()).map(Result::unwrap) {
                let at = batch.offset_of(&record).unwrap().get();
                let key = utf_8(record.key.unwrap());
                all.extend((at >= next).then(|| (at, key, record.value.map(utf_8))));
            }
            next = next.max(batch.next_offset().unwrap().get());
        }
    }
}

async fn offsets(client: &mut Client, topic: &str) -> Vec<i64> {
    read(client, topic, 0).await.into_iter().map(|(offset, ..)| offset).collect()
}

/// Wherever a pass panics, when its log is chosen or later, the next log is compacted, and the one that
/// panicked is left alone for a while.
#[tokio::test]
async fn a_panic_costs_one_log_one_turn() {
    for skip in 0..4 {
        let house = TestBroker::start().await;
        let mut client = house.connect();
        for topic in ["first", "second"] {
            client.create_topic_with(topic, 1, &[SMALL, COMPACT, EAGER]).await;
            for value in ["1", "2"] {
                put(&mut client, topic, &[("k", Some(value))]).await;
            }
            put(&mut client, topic, &[("end", Some("active"))]).await;
        }
        house.faults.on_chunks_panic(skip);
        house.broker.check_compaction().await;
        assert_eq!(house.broker.metrics().compaction_failures.get(), 1, "at look {skip}");
        let mut left = Vec::new();
        for topic in ["first", "second"] {
            left.push(offsets(&mut client, topic).await);
        }
        left.sort();
        let (whole, compacted) = (vec![0, 1, 2], vec![1, 2]);
        assert_eq!(left, [whole, compacted.clone()], "at look {skip}");
        house.environment.advance_ms(15_001);
        house.broker.check_compaction().await;
        for topic in ["first", "second"] {
            assert_eq!(offsets(&mut client, topic).await, compacted, "at look {skip}");
        }
    }
}

#[tokio::test]
async fn the_newest_record_of_each_key_stays_where_it_was() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL, COMPACT, EAGER]).await;
    for round in 0..5 {
        let value = round.to_string();
        put(&mut client, "t", &[("a", Some(&value)), ("b", Some(&value))]).await;
        put(&mut client, "t", &[("c", Some(&value))]).await;
    }
    put(&mut client, "t", &[("b", None)]).await;
    put(&mut client, "t", &[("end", Some("active"))]).await;
    let table = |all: Vec<(i64, String, Option<String>)>| {
        all.into_iter().map(|(_, key, value)| (key, value)).collect::<BTreeMap<_, _>>()
    };
    let before = table(read(&mut client, "t", 0).await);
    house.broker.check_compaction().await;
    let after = read(&mut client, "t", 0).await;
    let left: Vec<_> = after.iter().map(|(offset, key, _)| (*offset, key.as_str())).collect();
    assert_eq!(left, [(12, "a"), (14, "c"), (15, "b"), (16, "end")]);
    assert_eq!(table(after), before);
    // Readers in a hole go on behind it; the ends are where they were; times lead to what is there.
    for (from, first) in [(3, 12), (12, 12), (13, 14), (15, 15)] {
        assert_eq!(read(&mut client, "t", from).await[0].0, first, "from {from}");
    }
    assert_eq!(client.offset("t", EARLIEST).await, (0, 0));
    assert_eq!(client.offset("t", LATEST).await, (0, 17));
    assert_eq!(client.offset("t", BEGIN_MS).await, (0, 12));
    assert_eq!(client.offset("t", NEWEST).await, (0, 12));
    // Again changes nothing, and what comes is compacted with what is there.
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [12, 14, 15, 16]);
    put(&mut client, "t", &[("a", Some("new"))]).await;
    put(&mut client, "t", &[("end", Some("active"))]).await;
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [14, 15, 16, 17, 18]);
    let metrics = house.broker.metrics();
    assert_eq!(metrics.compaction_removed_records.get(), 14);
    assert!(metrics.compaction_passes.get() >= 2 && metrics.compaction_failures.get() == 0);
    assert!(metrics.compaction_read_bytes.get() > metrics.compaction_written_bytes.get());
}

#[tokio::test]
async fn tombstones_can_be_read_for_their_time_and_go() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let retention = ("delete.retention.ms", "5000");
    client.create_topic_with("t", 1, &[SMALL, COMPACT, EAGER, retention]).await;
    put(&mut client, "t", &[("k", Some("1"))]).await;
    put(&mut client, "t", &[("k", None)]).await;
    put(&mut client, "t", &[("other", Some("1"))]).await;
    put(&mut client, "t", &[("end", Some("active"))]).await;
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [1, 2, 3], "the old value is gone at once");
    house.environment.advance_ms(9_999);
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [1, 2, 3]);
    // Nothing came since, and it goes all the same.
    house.environment.advance_ms(1);
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [2, 3]);
}

#[tokio::test]
async fn lags_are_kept_and_the_active_segment_is_closed_for_them() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let large = ("segment.bytes", "10485760");
    client
        .create_topic_with("young", 1, &[SMALL, COMPACT, EAGER, ("min.compaction.lag.ms", "5000")])
        .await;
    client.create_topic_with("old", 1, &[large, COMPACT, ("max.compaction.lag.ms", "9000")]).await;
    for topic in ["young", "old"] {
        for value in ["1", "2", "3"] {
            put(&mut client, topic, &[("k", Some(value))]).await;
        }
    }
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "young").await, [0, 1, 2]);
    assert_eq!(offsets(&mut client, "old").await, [0, 1, 2]);
    house.environment.advance_ms(5_000);
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "young").await, [1, 2], "the active one takes no part");
    assert_eq!(offsets(&mut client, "old").await, [0, 1, 2]);
    house.environment.advance_ms(4_001);
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "old").await, [2]);
    assert_eq!(client.offset("old", LATEST).await, (0, 3));
    put(&mut client, "old", &[("k", Some("4"))]).await;
    assert_eq!(offsets(&mut client, "old").await, [2, 3]);
}

#[tokio::test]
async fn little_memory_takes_more_passes() {
    // Room for one key.
    let buffer = ("log.cleaner.dedupe.buffer.size", "48");
    let house = TestBroker::start_with(&[buffer, ("log.cleaner.backoff.ms", "1000000")]).await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL, COMPACT, ("min.cleanable.dirty.ratio", "0")]).await;
    for round in 0..4 {
        for key in ["a", "b", "c", "d", "e"] {
            put(&mut client, "t", &[(key, Some(&round.to_string()))]).await;
        }
    }
    put(&mut client, "t", &[("end", Some("active"))]).await;
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [15, 16, 17, 18, 19, 20]);
    assert!(house.broker.metrics().compaction_passes.get() > 5);
}

#[tokio::test]
async fn producers_are_known_after_their_batches_went() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL, COMPACT, EAGER]).await;
    let batch = |id: i64, sequence: i32| {
        let stamp = ProducerStamp {
            id: ProducerId::new(id),
            epoch: ProducerEpoch::ZERO,
            base_sequence: Sequence::from_wire(sequence),
        };
        fill(BatchBuilder::new().producer(stamp), &[("k", Some("v"))], BEGIN_MS)
    };
    for sequence in 0..3 {
        assert_eq!(client.produce("t", batch(7, sequence)).await, (0, i64::from(sequence)));
    }
    assert_eq!(client.produce("t", batch(8, 0)).await, (0, 3));
    put(&mut client, "t", &[("k", Some("newest"))]).await;
    put(&mut client, "t", &[("end", Some("active"))]).await;
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [4, 5]);
    // The last batch of each is there as a header.
    let fetched = client.fetch("t", 0, 0).await.records.unwrap();
    let left = batches(&fetched).map(|batch| batch.unwrap().raw_base_offset());
    assert_eq!(left.collect::<Vec<_>>(), [2, 3, 4, 5]);
    let house = house.restart().await;
    let mut client = house.connect();
    assert_eq!(client.produce("t", batch(7, 2)).await, (0, 2), "a retry");
    assert_eq!(client.produce("t", batch(8, 0)).await, (0, 3), "a retry");
    assert_eq!(client.produce("t", batch(7, 3)).await, (0, 6), "the next one");
    let gap = client.produce("t", batch(8, 5)).await.0;
    assert_eq!(gap, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER.get());
    // How far it is compacted was kept: nothing is due.
    assert_eq!(house.broker.metrics().compaction_passes.get(), 0);
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [4, 5, 6]);
}

/// Dirty logs of three topics.
async fn three_dirty_topics(settings: &[(&str, &str)]) -> (TestBroker, Client) {
    let house = TestBroker::start_with(settings).await;
    let mut client = house.connect();
    for topic in ["a", "b", "c"] {
        client.create_topic_with(topic, 1, &[SMALL, COMPACT, EAGER]).await;
        for value in ["1", "2", "3", "4"] {
            put(&mut client, topic, &[("k", Some(value))]).await;
        }
    }
    (house, client)
}

async fn sizes(client: &mut Client) -> Vec<usize> {
    let mut sizes = Vec::new();
    for topic in ["a", "b", "c"] {
        sizes.push(offsets(client, topic).await.len());
    }
    sizes.sort_unstable();
    sizes
}

#[tokio::test(start_paused = true)]
async fn a_log_that_hangs_holds_up_none_of_the_others() {
    let (house, mut client) = three_dirty_topics(&[]).await;
    house.faults.on_rewrite(0, TrimFault::Hang);
    house.broker.check_compaction().await;
    assert_eq!(sizes(&mut client).await, [2, 2, 4]);
}

#[tokio::test]
async fn a_log_that_fails_waits_and_is_tried_again() {
    let (house, mut client) = three_dirty_topics(&[]).await;
    house.faults.on_rewrite(1, TrimFault::Fail(ErrorKind::Corrupt));
    house.broker.check_compaction().await;
    assert_eq!(sizes(&mut client).await, [2, 2, 3], "one segment of it was done");
    let status = house.broker.compaction_status();
    assert_eq!(status.failing_partitions, 1);
    assert!(status.max_dirty_ratio > 0.9, "{status:?}");
    assert_eq!(house.broker.metrics().compaction_failures.get(), 1);
    house.broker.check_compaction().await;
    assert_eq!(sizes(&mut client).await, [2, 2, 3], "not at once");
    house.environment.advance_ms(15_000);
    house.broker.check_compaction().await;
    assert_eq!(sizes(&mut client).await, [2, 2, 2]);
    assert_eq!(house.broker.compaction_status().failing_partitions, 0);
}

#[tokio::test]
async fn both_policies_work_on_one_topic_and_compact_alone_refuses_deletions() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let both = ("cleanup.policy", "compact,delete");
    client.create_topic_with("both", 1, &[SMALL, both, EAGER, ("retention.ms", "60000")]).await;
    client.create_topic_with("only", 1, &[SMALL, COMPACT, EAGER, ("retention.ms", "1000")]).await;
    for topic in ["both", "only"] {
        for value in ["1", "2", "3"] {
            put(&mut client, topic, &[("k", Some(value))]).await;
        }
        put(&mut client, topic, &[("end", Some("active"))]).await;
    }
    house.broker.check_compaction().await;
    let delete = |topic: &str| delete_records::Request {
        topics: vec![delete_records::DeleteRecordsTopic {
            name: text(topic),
            partitions: vec![delete_records::DeleteRecordsPartition {
                partition_index: 0,
                offset: 2,
                ..Default::default()
            }],
            ..Default::default()
        }],
        timeout_ms: 1000,
        ..Default::default()
    };
    for (topic, code) in [("both", ErrorCode::NONE), ("only", ErrorCode::POLICY_VIOLATION)] {
        assert_eq!(offsets(&mut client, topic).await, [2, 3], "{topic}");
        let answer = client.ask(2, &delete(topic)).await;
        assert_eq!(answer.topics[0].partitions[0].error_code, code.get(), "{topic}");
    }
    assert_eq!(client.offset("both", EARLIEST).await, (0, 2));
    house.environment.advance_ms(60_001);
    house.broker.check_retention().await;
    assert_eq!(client.offset("both", EARLIEST).await, (0, 4));
    assert_eq!(client.offset("only", EARLIEST).await, (0, 0));
    assert_eq!(offsets(&mut client, "only").await, [2, 3]);
}

#[tokio::test]
async fn a_topic_that_is_not_compacted_any_more_and_one_that_is_not_yet() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[SMALL, EAGER]).await;
    for value in ["1", "2", "3"] {
        put(&mut client, "t", &[("k", Some(value))]).await;
    }
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [0, 1, 2]);
    assert_eq!(client.alter_config(TOPIC, "t", SET, COMPACT).await, 0);
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [1, 2]);
    put(&mut client, "t", &[("k", Some("4"))]).await;
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("cleanup.policy", "delete")).await, 0);
    house.broker.check_compaction().await;
    assert_eq!(offsets(&mut client, "t").await, [1, 2, 3]);
}
