//! What a consumer sees, and how long it waits.

use strandline_wire::ErrorCode;
use tokio::time::Instant;

use crate::harness::{TestBroker, batch, batch_at, fetch_request, text};

#[tokio::test(start_paused = true)]
async fn a_long_poll_ends_with_the_first_record() {
    let house = TestBroker::start().await;
    let mut producer = house.connect();
    producer.create_topic("t", 1).await;
    let mut consumer = house.connect();
    let began = Instant::now();
    let fetching = tokio::spawn(async move { consumer.fetch("t", 0, 60_000).await });
    tokio::task::yield_now().await;
    producer.produce("t", batch(&["a"])).await;
    let fetched = fetching.await.unwrap();
    assert_eq!(fetched.high_watermark, 1);
    assert!(fetched.records.is_some_and(|records| !records.is_empty()));
    assert!(began.elapsed().as_millis() < 60_000, "it did not wait for the deadline");
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_without_records_ends_at_its_deadline() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let began = Instant::now();
    let fetched = client.fetch("t", 0, 500).await;
    assert_eq!((fetched.error_code, fetched.high_watermark), (0, 0));
    assert_eq!(began.elapsed().as_millis(), 500);
}

#[tokio::test(start_paused = true)]
async fn min_bytes_are_waited_for() {
    let house = TestBroker::start().await;
    let mut producer = house.connect();
    producer.create_topic("t", 1).await;
    producer.produce("t", batch(&["a"])).await;
    let mut consumer = house.connect();
    let mut request = fetch_request("t", 0, 60_000);
    request.min_bytes = 150;
    let fetching = tokio::spawn(async move { consumer.ask(12, &request).await });
    tokio::task::yield_now().await;
    assert!(!fetching.is_finished(), "one batch is less than 150 bytes");
    producer.produce("t", batch(&["b"])).await;
    producer.produce("t", batch(&["c"])).await;
    let response = fetching.await.unwrap();
    let records = response.responses[0].partitions[0].records.clone().unwrap();
    assert!(records.len() >= 150, "{}", records.len());
}

#[tokio::test]
async fn an_offset_outside_the_log_is_out_of_range() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a"])).await;
    for offset in [-1, 2, i64::MAX] {
        let fetched = client.fetch("t", offset, 0).await;
        assert_eq!(fetched.error_code, ErrorCode::OFFSET_OUT_OF_RANGE.get(), "{offset}");
    }
    assert_eq!(client.fetch("t", 1, 0).await.error_code, 0, "the end is a good place to wait");
}

#[tokio::test]
async fn another_leader_epoch_is_named() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let mut request = fetch_request("t", 0, 0);
    request.topics[0].partitions[0].current_leader_epoch = 3;
    let response = client.ask(12, &request).await;
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH.get());
}

#[tokio::test]
async fn a_session_tells_only_news() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("a", 1).await;
    client.create_topic("b", 1).await;
    let mut request = fetch_request("a", 0, 0);
    let mut other = request.topics[0].clone();
    other.topic = text("b");
    request.topics.push(other);
    request.session_epoch = 0;
    let response = client.ask(12, &request).await;
    assert_eq!(response.responses.len(), 2, "everything at first");
    let session_id = response.session_id;
    assert!(session_id > 0);
    client.produce("b", batch(&["x"])).await;
    let mut request = fetch_request("a", 0, 0);
    request.topics.clear();
    request.session_id = session_id;
    request.session_epoch = 1;
    let response = client.ask(12, &request).await;
    assert_eq!(response.session_id, session_id);
    let topics: Vec<_> = response.responses.iter().map(|topic| topic.topic.as_str()).collect();
    assert_eq!(topics, ["b"]);
    request.session_epoch = 7;
    let response = client.ask(12, &request).await;
    assert_eq!(response.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH.get());
}

#[tokio::test]
async fn offsets_are_found_by_time() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.offset("t", -3).await, (0, -1), "no newest record in an empty log");
    for (millis, value) in [(100, "a"), (300, "b"), (200, "c")] {
        client.produce("t", batch_at(millis, value)).await;
    }
    let cases = [(0, 0), (100, 0), (101, 1), (300, 1), (301, -1), (-3, 1), (-2, 0), (-1, 3)];
    for (timestamp, offset) in cases {
        assert_eq!(client.offset("t", timestamp).await, (0, offset), "{timestamp}");
    }
}
