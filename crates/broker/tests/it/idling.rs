//! Partitions that nobody uses are closed, and nobody notices.

use std::time::Duration;

use strandline_model::{PartitionId, PartitionIndex};
use strandline_wire::ErrorCode;

use crate::harness::{
    Client, TestBroker, batch, batch_at, decode, fetch_request, idempotent_batch,
};

const LATEST: i64 = -1;
const SET: i8 = 0;
const TOPIC: i8 = 2;
const BROKER: i8 = 4;

impl TestBroker {
    fn open_partitions(&self) -> usize {
        let topics = self.broker.topics();
        topics.iter().flat_map(|topic| &topic.partitions).filter(|one| one.is_open).count()
    }

    /// Closes what is not in use: how many that were.
    async fn let_rest(&self) -> usize {
        // What was used before the first look may have been used since the one before it.
        let closed = self.broker.close_idle().await;
        closed + self.broker.close_idle().await
    }
}

async fn fetched_values(client: &mut Client, topic: &str, offset: i64) -> usize {
    let fetched = client.fetch(topic, offset, 0).await;
    assert_eq!(fetched.error_code, 0);
    let records = fetched.records.unwrap_or_default();
    strandline_records::batches(&records).count()
}

#[tokio::test]
async fn a_partition_that_was_closed_goes_on_where_it_was() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", idempotent_batch(1, 0, 0, &["a"])).await, (0, 0));
    assert_eq!(client.produce("t", idempotent_batch(1, 0, 1, &["b", "c"])).await, (0, 1));
    let id = PartitionId::new(house.broker.topics()[0].id, PartitionIndex::new(0));
    let epoch = house.engine().logs.epoch(id);

    for round in 0..3 {
        assert_eq!(house.let_rest().await, 1, "round {round}");
        assert_eq!(house.open_partitions(), 0);
        let told = house.broker.topics()[0].partitions[0];
        assert_eq!((told.log_end_offset.get(), told.segment_count), (3 + round, 1));
        assert_eq!(client.produce("t", idempotent_batch(1, 0, 1, &["b", "c"])).await, (0, 1));
        assert_eq!(house.let_rest().await, 1);
        let gap = client.produce("t", idempotent_batch(1, 0, 20, &["z"])).await;
        assert_eq!(gap.0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER.get());
        assert_eq!(house.let_rest().await, 1);
        let sequence = 3 + i32::try_from(round).unwrap();
        let next = client.produce("t", idempotent_batch(1, 0, sequence, &["d"])).await;
        assert_eq!(next, (0, 3 + round));
    }
    assert_eq!(house.engine().logs.epoch(id), epoch, "nothing was in doubt");
    assert_eq!(house.let_rest().await, 1);
    assert_eq!(fetched_values(&mut client, "t", 0).await, 5);
    assert_eq!(house.let_rest().await, 1);
    assert_eq!(client.offset("t", LATEST).await, (0, 6));
    assert_eq!(house.let_rest().await, 1);
    assert_eq!(client.offset("t", 1_700_000_000_000).await, (0, 0));
}

#[tokio::test]
async fn what_producers_did_is_known_though_the_log_forgot_it() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[("retention.ms", "1000")]).await;
    assert_eq!(client.produce("t", idempotent_batch(9, 0, 0, &["a"])).await, (0, 0));
    house.environment.advance_ms(1_001);
    house.broker.check_retention().await;
    assert_eq!(client.offset("t", -2).await, (0, 1));
    assert_eq!(house.let_rest().await, 1);
    assert_eq!(client.produce("t", idempotent_batch(9, 0, 0, &["a"])).await, (0, 0));
    assert_eq!(client.produce("t", idempotent_batch(9, 0, 1, &["b"])).await, (0, 1));
}

#[tokio::test]
async fn what_is_used_stays_open() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    for topic in ["busy", "quiet"] {
        client.create_topic(topic, 1).await;
        client.produce(topic, batch(&["a"])).await;
    }
    assert_eq!(house.broker.close_idle().await, 0, "both were used just now");
    client.produce("busy", batch(&["a"])).await;
    assert_eq!(house.broker.close_idle().await, 1);
    // Looking at it from inside is no use.
    assert_eq!(house.open_partitions(), 1);
    house.broker.check_retention().await;
    client.fetch("busy", 0, 0).await;
    assert_eq!(house.broker.close_idle().await, 0);
    assert_eq!(house.broker.close_idle().await, 1);
}

#[tokio::test]
async fn what_is_not_durable_is_not_closed() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a"])).await;
    house.faults.hold();
    let pending = client.begin_produce("t", batch(&["b"])).await;
    assert_eq!(house.let_rest().await, 0, "its answer is still to come");
    // Nobody waits for it any more; it is under way all the same.
    drop(pending);
    assert_eq!(house.let_rest().await, 0);
    house.faults.release();
    let pending = client.begin_produce("t", batch(&["c"])).await;
    let response =
        decode::<strandline_wire::produce::message::Request>(9, pending.finish().await.unwrap());
    assert_eq!(response.responses[0].partition_responses[0].base_offset, 2);
    assert_eq!(house.let_rest().await, 1);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_though_the_partition_was_closed_meanwhile() {
    let house = TestBroker::start().await;
    let mut producer = house.connect();
    producer.create_topic("t", 1).await;
    producer.produce("t", batch(&["a"])).await;
    let mut consumer = house.connect();
    let request = fetch_request("t", 1, 300_000);
    let waiting = tokio::spawn(async move { consumer.ask(12, &request).await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(house.let_rest().await, 1);
    assert!(!waiting.is_finished());
    assert_eq!(producer.produce("t", batch(&["b"])).await, (0, 1));
    let answer = tokio::time::timeout(Duration::from_secs(1), waiting).await.unwrap().unwrap();
    assert_eq!(answer.responses[0].partitions[0].high_watermark, 2);
}

#[tokio::test]
async fn settings_that_changed_meanwhile_are_in_effect() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a"])).await;
    assert_eq!(house.let_rest().await, 1);
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("internal.segment.bytes", "100")).await, 0);
    client.produce("t", batch(&["b"])).await;
    assert_eq!(house.broker.topics()[0].partitions[0].segment_count, 2);
}

#[tokio::test]
async fn a_closed_partition_expires() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[("retention.ms", "1000")]).await;
    client.produce("t", batch_at(1_700_000_000_000, "a")).await;
    assert_eq!(house.let_rest().await, 1);
    house.environment.advance_ms(1_001);
    house.broker.check_retention().await;
    let told = house.broker.topics()[0].partitions[0];
    assert_eq!((told.log_start_offset.get(), told.segment_count), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn it_happens_by_itself_as_soon_as_is_set_now() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a"])).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(house.open_partitions(), 1);
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert_eq!(house.open_partitions(), 0, "two minutes at the latest");

    assert_eq!(client.alter_config(BROKER, "", SET, ("log.idle.close.ms", "-1")).await, 0);
    client.produce("t", batch(&["b"])).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(house.open_partitions(), 1, "never");

    assert_eq!(client.alter_config(BROKER, "", SET, ("log.idle.close.ms", "5000")).await, 0);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(house.open_partitions(), 0);
    let refused = client.alter_config(BROKER, "", SET, ("log.idle.close.ms", "0")).await;
    assert_eq!(refused, ErrorCode::INVALID_REQUEST.get());
}
