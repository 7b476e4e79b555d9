//! What a producer is told, and when.

use std::time::Duration;

use strandline_broker::Started;
use strandline_wire::ErrorCode;

use crate::harness::{
    PRODUCE_TIMEOUT_MS, TestBroker, batch, decode, idempotent_batch, produce_request,
};

#[tokio::test]
async fn offsets_are_assigned_in_the_order_of_requests() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a", "b"])).await, (0, 0));
    assert_eq!(client.produce("t", batch(&["c"])).await, (0, 2));
    assert_eq!(client.offset("t", -1).await, (0, 3));
}

#[tokio::test]
async fn no_reply_overtakes_durability() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    house.faults.hold();
    let pending = client.begin_produce("t", idempotent_batch(1, 0, 0, &["a"])).await;
    // A retry of the batch on another connection must wait for the first one's durability too.
    let retry = house.connect().begin_produce("t", idempotent_batch(1, 0, 0, &["a"])).await;
    let mut pending = tokio::spawn(pending.finish());
    let mut retry = tokio::spawn(retry.finish());
    // The consumer sees nothing of it, and the end of the log does not move.
    let mut consumer = house.connect();
    let fetched = consumer.fetch("t", 0, 0).await;
    assert_eq!((fetched.error_code, fetched.high_watermark), (0, 0));
    assert_eq!(consumer.offset("t", -1).await, (0, 0));
    assert!(!pending.is_finished() && !retry.is_finished());
    house.faults.release();
    for reply in [&mut pending, &mut retry] {
        let reply = reply.await.unwrap().unwrap();
        let response = decode::<strandline_wire::produce::message::Request>(9, reply);
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!((partition.error_code, partition.base_offset), (0, 0));
    }
    assert_eq!(consumer.offset("t", -1).await, (0, 1), "stored once");
}

#[tokio::test(start_paused = true)]
async fn a_producer_is_answered_when_its_time_is_up_and_its_retry_is_no_second_record() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    house.faults.hold();
    let begun = tokio::time::Instant::now();
    let pending = client.begin_produce("t", idempotent_batch(1, 0, 0, &["a"])).await;
    let reply = pending.finish().await.unwrap();
    let response = decode::<strandline_wire::produce::message::Request>(9, reply);
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::REQUEST_TIMED_OUT.get());
    let allowed = Duration::from_millis(PRODUCE_TIMEOUT_MS.unsigned_abs().into());
    assert!((allowed..2 * allowed).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    house.faults.release();
    assert_eq!(client.produce("t", idempotent_batch(1, 0, 0, &["a"])).await, (0, 0));
    assert_eq!(client.offset("t", -1).await, (0, 1), "stored once");
}

#[tokio::test]
async fn a_gap_in_sequences_is_refused() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", idempotent_batch(1, 0, 0, &["a"])).await, (0, 0));
    let (code, _) = client.produce("t", idempotent_batch(1, 0, 2, &["c"])).await;
    assert_eq!(code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER.get());
}

#[tokio::test]
async fn acks_zero_gets_no_answer_when_it_works_and_loses_the_connection_when_not() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let mut request = produce_request("t", batch(&["a"]));
    request.acks = 0;
    assert!(matches!(client.start(9, &request).await, Started::Silent));
    let mut request = produce_request("missing", batch(&["a"]));
    request.acks = 0;
    assert!(client.try_start(9, &request).await.is_err());
}

#[tokio::test]
async fn what_does_not_exist_or_makes_no_sense_is_named() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    assert_eq!(client.produce("nope", batch(&["a"])).await.0, unknown);
    let mut bad_crc = batch(&["a"]);
    *bad_crc.last_mut().unwrap() ^= 1;
    assert_eq!(client.produce("t", bad_crc).await.0, ErrorCode::CORRUPT_MESSAGE.get());
    let mut request = produce_request("t", batch(&["a"]));
    request.acks = 5;
    let response = client.ask(9, &request).await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::INVALID_REQUIRED_ACKS.get());
    assert_eq!(client.offset("t", -1).await, (0, 0), "nothing was stored");
}
