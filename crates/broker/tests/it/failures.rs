//! The world fails; nothing acknowledged is lost, and the broker goes on without a restart.

use strandline_storage::testkit::faults::{CommitFault, SubmitFault};
use strandline_wire::{ErrorCode, create_topics};

use crate::harness::{TestBroker, batch, idempotent_batch, text};

const STORAGE_ERROR: i16 = ErrorCode::KAFKA_STORAGE_ERROR.get();

#[tokio::test]
async fn a_busy_engine_is_waited_for() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    house.faults.on_submit(0, SubmitFault::Busy);
    house.faults.on_submit(0, SubmitFault::Busy);
    assert_eq!(client.produce("t", batch(&["a", "b"])).await, (0, 0));
    assert_eq!(client.produce("t", batch(&["c"])).await, (0, 2));
}

#[tokio::test]
async fn a_full_engine_refuses_with_a_retriable_error_and_recovers() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    house.faults.on_submit(0, SubmitFault::Full);
    assert_eq!(client.produce("t", batch(&["a"])).await.0, STORAGE_ERROR);
    assert!(ErrorCode::KAFKA_STORAGE_ERROR.is_retriable());
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
}

#[tokio::test]
async fn a_dead_log_is_opened_anew_and_an_idempotent_retry_is_stored_once() {
    for fault in [SubmitFault::LoseAndDie, SubmitFault::KeepAndDie] {
        let house = TestBroker::start().await;
        let mut client = house.connect();
        client.create_topic("t", 1).await;
        assert_eq!(client.produce("t", idempotent_batch(9, 0, 0, &["a"])).await, (0, 0));
        house.faults.on_submit(0, fault);
        let (code, _) = client.produce("t", idempotent_batch(9, 0, 1, &["b"])).await;
        assert_eq!(code, STORAGE_ERROR, "{fault:?}");
        let retried = client.produce("t", idempotent_batch(9, 0, 1, &["b"])).await;
        assert_eq!(retried, (0, 1), "{fault:?}");
        assert_eq!(client.offset("t", -1).await, (0, 2), "{fault:?}");
    }
}

#[tokio::test]
async fn a_topic_whose_commit_fails_does_not_exist() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    house.faults.on_commit(0, CommitFault::Lose);
    let topic = create_topics::CreatableTopic {
        name: text("t"),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request = create_topics::Request { topics: vec![topic], ..Default::default() };
    let response = client.ask(7, &request).await;
    assert_ne!(response.topics[0].error_code, 0);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    assert_eq!(client.produce("t", batch(&["a"])).await.0, unknown);
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
}
