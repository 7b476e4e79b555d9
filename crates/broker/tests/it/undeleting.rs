//! Bringing a deleted topic back: whole, or not at all.

use strandline_broker::{DeletionAction, Environment, UndeleteError};
use strandline_model::TopicId;
use strandline_storage::testkit::Subject;
use strandline_storage::testkit::faults::{CommitFault, RemoveFault};
use strandline_storage::{ErrorKind, MetaBatch, Table};
use strandline_wire::{ErrorCode, delete_topics};

use crate::deletion::delete;
use crate::groups::{commit, positions};
use crate::harness::{Client, TestBroker, batch, idempotent_batch, text};
use crate::purging::pass_ms;
use crate::reconciling::topic_row;

const TOPIC: i8 = 2;
const LATEST: i64 = -1;

/// A topic "t" with two batches, a setting of its own and a position of a group; deleted.
async fn deleted(house: &TestBroker) -> TopicId {
    let mut client = house.connect();
    client.create_topic_with("t", 2, &[("retention.ms", "86400000")]).await;
    assert_eq!(client.produce("t", batch(&["one", "two"])).await, (0, 0));
    assert_eq!(client.produce("t", idempotent_batch(7, 0, 0, &["three"])).await, (0, 2));
    assert_eq!(commit(&mut client, "g", 2).await, 0);
    assert_eq!(delete(&mut client, "t").await, 0);
    house.broker.deletions()[0].id
}

async fn undelete(house: &TestBroker, id: TopicId, name: Option<&str>) -> Result<String, String> {
    house.broker.undelete_topic(id, name).await.map_err(|error| error.to_string())
}

async fn is_whole(client: &mut Client, name: &str) {
    assert_eq!(client.offset(name, LATEST).await, (0, 3), "{name}");
    let fetched = client.fetch(name, 0, 0).await;
    assert_eq!((fetched.error_code, fetched.high_watermark), (0, 3));
    assert!(fetched.records.is_some_and(|records| records.len() > 100));
    let configs = client.describe_configs(TOPIC, name).await;
    assert_eq!(configs["retention.ms"], "86400000");
    // The producer goes on where it was, and its retry is known.
    assert_eq!(client.produce(name, idempotent_batch(7, 0, 0, &["three"])).await, (0, 2));
    assert_eq!(client.produce(name, idempotent_batch(7, 0, 1, &["four"])).await, (0, 3));
    assert_eq!(client.fetch(name, 3, 0).await.error_code, 0);
}

#[tokio::test(start_paused = true)]
async fn a_topic_comes_back_with_records_settings_producers_and_positions() {
    let house = TestBroker::start().await;
    let id = deleted(&house).await;
    let mut client = house.connect();
    assert_eq!(positions(&mut client, "g").await, Vec::<i64>::new());
    assert_eq!(undelete(&house, id, None).await, Ok("t".to_owned()));
    is_whole(&mut client, "t").await;
    assert_eq!(positions(&mut client, "g").await, [2]);
    assert!(house.broker.deletions().is_empty());
    let topics = house.broker.topics();
    assert_eq!((topics[0].id, topics[0].partition_count), (id, 2));
    // Nothing of the deletion is left behind.
    pass_ms(&house, 120_000).await;
    assert_eq!(client.offset("t", LATEST).await, (0, 4));
    let house = house.restart().await;
    assert_eq!(house.connect().offset("t", LATEST).await, (0, 4));
}

#[tokio::test(start_paused = true)]
async fn a_topic_comes_back_after_a_restart_too() {
    let house = TestBroker::start().await;
    let id = deleted(&house).await;
    let house = house.restart().await;
    let mut client = house.connect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    assert_eq!(client.offset("t", LATEST).await.0, unknown);
    assert_eq!(undelete(&house, id, None).await, Ok("t".to_owned()));
    is_whole(&mut client, "t").await;
    assert_eq!(positions(&mut client, "g").await, [2]);
}

#[tokio::test(start_paused = true)]
async fn where_the_name_is_taken_a_topic_comes_back_under_another() {
    let house = TestBroker::start().await;
    let id = deleted(&house).await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.create_topic("a.b", 1).await;
    let refused = [
        (None, "a topic named t exists: the deleted one needs another name"),
        (Some("a_b"), "a_b collides with topic a.b: they differ in . and _ only"),
        (Some("__consumer_offsets"), "__consumer_offsets is a name of the broker's own topics"),
    ];
    for (name, why) in refused {
        assert_eq!(undelete(&house, id, name).await, Err(why.to_owned()));
    }
    assert!(undelete(&house, id, Some("no/name")).await.is_err_and(|why| why.contains("no/name")));
    assert_eq!(undelete(&house, id, Some("t-old")).await, Ok("t-old".to_owned()));
    is_whole(&mut client, "t-old").await;
    assert_eq!(client.offset("t", LATEST).await, (0, 0), "the new one has nothing of it");
    assert_eq!(positions(&mut client, "g").await, [2], "of the one that came back");
    let house = house.restart().await;
    assert_eq!(house.connect().offset("t-old", LATEST).await, (0, 4));
    assert_eq!(house.broker.topic_count(), 3);
}

#[tokio::test(start_paused = true)]
async fn once_removal_has_begun_there_is_no_way_back_even_if_nothing_is_gone_yet() {
    let house = TestBroker::start().await;
    let id = deleted(&house).await;
    house.faults.on_remove(0, RemoveFault::Fail(ErrorKind::Unavailable));
    house.faults.on_remove(0, RemoveFault::Fail(ErrorKind::Unavailable));
    house.broker.change_deletion(id, DeletionAction::Purge).await.unwrap();
    pass_ms(&house, 500).await;
    let begun = "the removal of t has begun: it can't be brought back";
    assert_eq!(undelete(&house, id, None).await, Err(begun.to_owned()));
    house.broker.change_deletion(id, DeletionAction::Pause).await.unwrap();
    let house = house.restart().await;
    assert_eq!(undelete(&house, id, None).await, Err(begun.to_owned()));
    house.broker.change_deletion(id, DeletionAction::Resume).await.unwrap();
    pass_ms(&house, 1_000).await;
    let gone = house.broker.undelete_topic(id, None).await;
    assert!(matches!(gone, Err(UndeleteError::Unknown)), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_committed_comes_back_with_the_next_try() {
    for fault in [CommitFault::Lose, CommitFault::Keep] {
        let house = TestBroker::start().await;
        let id = deleted(&house).await;
        house.faults.on_commit(0, fault);
        assert!(undelete(&house, id, None).await.is_err(), "{fault:?}");
        assert_eq!(undelete(&house, id, None).await, Ok("t".to_owned()), "{fault:?}");
        is_whole(&mut house.connect(), "t").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_came_back_can_be_deleted_and_brought_back_again() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let id = deleted(&house).await;
    for round in 0..3 {
        assert_eq!(undelete(&house, id, Some(&format!("t{round}"))).await, Ok(format!("t{round}")));
        let name = text(&format!("t{round}"));
        let state = delete_topics::DeleteTopicState { name: Some(name), ..Default::default() };
        let request = delete_topics::Request { topics: vec![state], ..Default::default() };
        assert_eq!(client.ask(6, &request).await.responses[0].error_code, 0);
    }
    assert_eq!(undelete(&house, id, Some("t")).await, Ok("t".to_owned()));
    is_whole(&mut client, "t").await;
}

/// Programs before the grace had no mark for a removal that has begun: some of the topic may be gone.
#[tokio::test(start_paused = true)]
async fn a_deletion_of_the_first_version_counts_as_begun_and_goes_at_once() {
    let house = TestBroker::start().await;
    let now = house.environment.now().as_millis();
    let id = strandline_storage::testkit::partition(0).topic_id;
    Subject::open(house.engine(), 0).await.append_some(5).await;
    let mut key = vec![0, 4];
    key.extend(b"file");
    key.extend(id.as_bytes());
    let mut row = vec![1];
    row.extend(now.to_be_bytes());
    row.extend((now + 3_600_000).to_be_bytes());
    row.extend(topic_row("old", 1));
    let rows = std::sync::Arc::clone(&house.engine().rows);
    rows.commit(MetaBatch::new().put(Table::Deletions, key, row)).await.unwrap();

    let house = house.restart().await;
    let refused = undelete(&house, id, None).await.unwrap_err();
    assert_eq!(refused, "the removal of old has begun: it can't be brought back");
    pass_ms(&house, 1_000).await;
    assert_eq!(house.broker.deletions().len(), 0, "nobody waits for what nothing brings back");
    assert_eq!(house.engine().logs.list().await.unwrap(), []);
}
