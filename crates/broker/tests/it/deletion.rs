//! Deleting a topic: the name is free at once, waiting readers learn it, bytes go later.

use strandline_wire::produce::message::Request;
use strandline_wire::{ErrorCode, create_topics, delete_topics, metadata};

use crate::harness::{Client, TestBroker, batch, decode, text};

pub(crate) async fn delete(client: &mut Client, name: &str) -> i16 {
    let state = delete_topics::DeleteTopicState { name: Some(text(name)), ..Default::default() };
    let request = delete_topics::Request { topics: vec![state], ..Default::default() };
    client.ask(6, &request).await.responses[0].error_code
}

#[tokio::test(start_paused = true)]
async fn a_waiting_reader_learns_at_once_that_its_topic_is_gone() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let mut reader = house.connect();
    let fetching = tokio::spawn(async move { reader.fetch("t", 0, 3_600_000).await });
    tokio::task::yield_now().await;
    assert_eq!(delete(&mut client, "t").await, 0);
    let fetched = fetching.await.unwrap();
    assert_eq!(fetched.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get());
}

#[tokio::test]
async fn a_new_topic_of_the_same_name_meets_nothing_of_the_old_one() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["old"])).await;
    assert_eq!(delete(&mut client, "t").await, 0);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    assert_eq!(delete(&mut client, "t").await, unknown);
    assert_eq!(client.produce("t", batch(&["x"])).await.0, unknown);
    client.create_topic("t", 1).await;
    assert_eq!(client.offset("t", -1).await, (0, 0));
    assert_eq!(client.produce("t", batch(&["new"])).await, (0, 0));
}

#[tokio::test]
async fn a_produce_under_way_is_not_acknowledged_in_a_topic_that_is_gone() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let pending = client.begin_produce("t", batch(&["old"])).await;
    assert_eq!(delete(&mut client, "t").await, 0);
    client.create_topic("t", 1).await;
    let response = decode::<Request>(9, pending.finish().await.unwrap());
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get(), "the producer tries again");
    assert_eq!(client.produce("t", batch(&["old"])).await, (0, 0));
}

#[tokio::test]
async fn a_deleted_topic_is_not_brought_back_by_who_still_names_it() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 3).await;
    assert_eq!(delete(&mut client, "t").await, 0);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    assert_eq!(metadata_of(&mut client, "t").await, (unknown, 0));
    // Kafka creates such a topic at once; whoever deleted it to create it anew would come second.
    client.create_topic("t", 2).await;
    assert_eq!(metadata_of(&mut client, "t").await, (0, 2));
    assert_eq!(delete(&mut client, "t").await, 0);
    house.environment.advance_ms(4_999);
    assert_eq!(metadata_of(&mut client, "t").await, (unknown, 0));
    house.environment.advance_ms(1);
    assert_eq!(metadata_of(&mut client, "t").await, (0, 1));
}

/// Error and number of partitions, as a client is told that would have the topic created.
async fn metadata_of(client: &mut Client, name: &str) -> (i16, usize) {
    let asked = metadata::MetadataRequestTopic { name: Some(text(name)), ..Default::default() };
    let request = metadata::Request {
        topics: Some(vec![asked]),
        allow_auto_topic_creation: true,
        ..Default::default()
    };
    let topic = client.ask(9, &request).await.topics.remove(0);
    (topic.error_code, topic.partitions.len())
}

#[tokio::test(start_paused = true)]
async fn bytes_go_after_the_grace_and_the_list_empties() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 3).await;
    client.produce("t", batch(&["a"])).await;
    assert_eq!(delete(&mut client, "t").await, 0);
    assert_eq!(house.broker.pending_deletion_count(), 1);
    house.environment.advance_ms(59_000);
    tokio::time::sleep(std::time::Duration::from_secs(59)).await;
    assert_eq!(house.broker.pending_deletion_count(), 1, "the grace is a minute");
    house.environment.advance_ms(2_000);
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    assert_eq!(house.broker.pending_deletion_count(), 0);
    let used: u64 = house.broker.space().iter().map(|(_, space)| space.used.get()).sum();
    assert!(used < 1_000, "rows only: {used}");
}

#[tokio::test]
async fn a_deletion_whose_client_goes_away_still_comes_to_its_end() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let state = delete_topics::DeleteTopicState { name: Some(text("t")), ..Default::default() };
    let request = delete_topics::Request { topics: vec![state], ..Default::default() };
    {
        let mut deleting = std::pin::pin!(client.start(6, &request));
        // Polled once, then dropped: the connection closed during the commit.
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(deleting.as_mut().poll(cx)));
        assert!(polled.await.is_pending(), "the commit is under way");
    }
    let mut other = house.connect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    for _ in 0..1_000 {
        if house.broker.pending_deletion_count() == 1 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(house.broker.pending_deletion_count(), 1);
    assert_eq!(other.produce("t", batch(&["a"])).await.0, unknown, "gone here as in the store");
    other.create_topic("t", 1).await;
}

#[tokio::test]
async fn a_request_may_not_create_partitions_without_end() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let topic = |index: i32| create_topics::CreatableTopic {
        name: text(&format!("t{index}")),
        num_partitions: 5_000,
        replication_factor: 1,
        ..Default::default()
    };
    let topics = (0..3).map(topic).collect();
    let response = client.ask(7, &create_topics::Request { topics, ..Default::default() }).await;
    let codes: Vec<_> = response.topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [ErrorCode::POLICY_VIOLATION.get(); 3]);
    assert_eq!(house.broker.topic_count(), 0);
}
