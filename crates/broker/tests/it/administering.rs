//! What tools do to partitions: delete records, ask for sizes and producers, move what can't move.

use strandline_wire::{
    ErrorCode, KafkaString, alter_partition_reassignments, alter_replica_log_dirs,
    create_partitions, create_topics, delete_records, describe_log_dirs, describe_producers,
    elect_leaders, fetch, list_partition_reassignments, produce, unregister_broker,
};

use crate::harness::{
    Client, TestBroker, batch, batch_of_times, fetch_request, idempotent_batch, produce_request,
    text,
};

const OUT_OF_RANGE: i16 = ErrorCode::OFFSET_OUT_OF_RANGE.get();
const UNKNOWN_TOPIC: i16 = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();

async fn with_ten_records(configs: &[(&str, &str)]) -> (TestBroker, Client) {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, configs).await;
    for _ in 0..5 {
        assert_eq!(client.produce("t", batch(&["a", "b"])).await.0, 0);
    }
    (house, client)
}

/// The error code and the low watermark.
async fn delete(client: &mut Client, topic: &str, offsets: &[i64]) -> (i16, i64) {
    let partition = |&offset: &i64| delete_records::DeleteRecordsPartition {
        partition_index: 0,
        offset,
        ..Default::default()
    };
    let topic = delete_records::DeleteRecordsTopic {
        name: text(topic),
        partitions: offsets.iter().map(partition).collect(),
        ..Default::default()
    };
    let request = delete_records::Request { topics: vec![topic], ..Default::default() };
    let response = client.ask(2, &request).await;
    assert_eq!(response.topics[0].partitions.len(), 1, "each partition is answered once");
    let result = &response.topics[0].partitions[0];
    (result.error_code, result.low_watermark)
}

#[tokio::test]
async fn what_is_left_of_a_batch_is_found_by_time() {
    /// The records' times, the offset before which they are deleted, and (timestamp, offset).
    type Case = (&'static [i64], i64, &'static [(i64, i64)]);
    let cases: [Case; 4] = [
        (&[10, 20, 30, 40, 50], 4, &[(0, 4), (30, 4), (50, 4), (51, 5), (99, -1), (-3, 6)]),
        (&[50, 40, 30, 20, 10], 2, &[(0, 2), (30, 2), (31, 5), (-3, 6)]),
        (&[90, 80, 30, 20, 10], 2, &[(0, 2), (30, 2), (70, 6), (71, -1), (-3, 6)]),
        (&[90, 80, 70, 75, 10], 2, &[(0, 2), (71, 3), (76, -1), (-3, 3)]),
    ];
    for (times, before, found) in cases {
        let house = TestBroker::start().await;
        let mut client = house.connect();
        client.create_topic("t", 1).await;
        client.produce("t", batch_of_times(times)).await;
        client.produce("t", batch_of_times(&[60, 70])).await;
        assert_eq!(delete(&mut client, "t", &[before]).await, (0, before));
        for (timestamp, offset) in found {
            let answer = client.offset("t", *timestamp).await;
            assert_eq!(answer, (0, *offset), "{times:?} from {before}, {timestamp}");
        }
    }
}

#[tokio::test]
async fn deleted_records_are_gone_when_the_answer_comes() {
    let (_house, mut client) = with_ten_records(&[]).await;
    assert_eq!(delete(&mut client, "t", &[3]).await, (0, 3));
    assert_eq!(client.offset("t", -2).await, (0, 3), "earliest");
    assert_eq!(client.fetch("t", 2, 0).await.error_code, OUT_OF_RANGE);
    assert_eq!(client.fetch("t", 3, 0).await.error_code, 0);
    // What is below already stays as it is.
    assert_eq!(delete(&mut client, "t", &[1]).await, (0, 3));
    assert_eq!(delete(&mut client, "t", &[0]).await, (0, 3));
    // −1 is the high watermark.
    assert_eq!(delete(&mut client, "t", &[-1]).await, (0, 10));
    assert_eq!(client.produce("t", batch(&["c"])).await, (0, 10));
}

#[tokio::test]
async fn offsets_that_there_are_not_are_out_of_range() {
    let (_house, mut client) = with_ten_records(&[]).await;
    for offset in [11, i64::MAX, -2, i64::MIN] {
        assert_eq!(delete(&mut client, "t", &[offset]).await, (OUT_OF_RANGE, -1), "{offset}");
    }
    assert_eq!(delete(&mut client, "missing", &[0]).await, (UNKNOWN_TOPIC, -1));
    assert_eq!(delete(&mut client, "t", &[2, 5]).await, (0, 5), "the last offset counts");
}

#[tokio::test]
async fn a_topic_that_is_only_compacted_keeps_its_records() {
    let (_house, mut client) = with_ten_records(&[]).await;
    assert_eq!(client.alter_config(2, "t", 0, ("cleanup.policy", "compact")).await, 0);
    let policy = ErrorCode::POLICY_VIOLATION.get();
    assert_eq!(delete(&mut client, "t", &[3]).await, (policy, -1));
    assert_eq!(client.alter_config(2, "t", 0, ("cleanup.policy", "compact,delete")).await, 0);
    assert_eq!(delete(&mut client, "t", &[3]).await, (0, 3));
}

#[tokio::test]
async fn a_waiting_fetch_learns_that_its_records_were_deleted() {
    let (house, mut client) = with_ten_records(&[]).await;
    let mut other = house.connect();
    let patient = fetch::message::Request { min_bytes: 1 << 19, ..fetch_request("t", 5, 60_000) };
    let waiting = tokio::spawn(async move { other.ask(12, &patient).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    assert_eq!(delete(&mut client, "t", &[-1]).await, (0, 10));
    let response = waiting.await.unwrap();
    assert_eq!(response.responses[0].partitions[0].error_code, OUT_OF_RANGE);
}

#[tokio::test]
async fn a_retry_of_a_batch_that_was_deleted_is_still_a_retry() {
    let (_house, mut client) = with_ten_records(&[]).await;
    assert_eq!(client.produce("t", idempotent_batch(9, 0, 0, &["x"])).await, (0, 10));
    assert_eq!(delete(&mut client, "t", &[-1]).await, (0, 11));
    assert_eq!(client.produce("t", idempotent_batch(9, 0, 0, &["x"])).await, (0, 10));
    assert_eq!(client.offset("t", -1).await, (0, 11));
}

#[tokio::test]
async fn sizes_and_producers_are_described() {
    let (_house, mut client) = with_ten_records(&[]).await;
    client.produce("t", idempotent_batch(9, 3, 0, &["x", "y"])).await;
    let response =
        client.ask(5, &describe_log_dirs::Request { topics: None, ..Default::default() }).await;
    let folder = &response.results[0];
    assert_eq!((folder.error_code, folder.topics.len()), (0, 1));
    assert!(folder.topics[0].partitions[0].partition_size > 300, "{folder:?}");
    let none = describe_log_dirs::Request { topics: Some(Vec::new()), ..Default::default() };
    assert!(client.ask(5, &none).await.results[0].topics.is_empty());

    let topic = describe_producers::TopicRequest {
        name: text("t"),
        partition_indexes: vec![0, 7],
        ..Default::default()
    };
    let request = describe_producers::Request { topics: vec![topic], ..Default::default() };
    let response = client.ask(0, &request).await;
    let [known, unknown] = response.topics[0].partitions.as_slice() else { panic!("two") };
    let producer = &known.active_producers[0];
    assert_eq!((producer.producer_id, producer.producer_epoch, producer.last_sequence), (9, 3, 1));
    assert_eq!((producer.coordinator_epoch, producer.current_txn_start_offset), (-1, -1));
    assert_eq!(unknown.error_code, UNKNOWN_TOPIC);
}

#[tokio::test]
async fn nothing_needs_a_leader() {
    let (_house, mut client) = with_ten_records(&[]).await;
    let topic = elect_leaders::TopicPartitions {
        topic: text("t"),
        partitions: vec![0, 9],
        ..Default::default()
    };
    let request =
        elect_leaders::Request { topic_partitions: Some(vec![topic]), ..Default::default() };
    let response = client.ask(2, &request).await;
    let codes: Vec<_> = response.replica_election_results[0]
        .partition_result
        .iter()
        .map(|result| result.error_code)
        .collect();
    assert_eq!(codes, [ErrorCode::ELECTION_NOT_NEEDED.get(), UNKNOWN_TOPIC]);
    let unknown = elect_leaders::Request { election_type: 5, ..request };
    let response = client.ask(2, &unknown).await;
    assert_eq!(response.error_code, ErrorCode::INVALID_REQUEST.get());
    let refused = &response.replica_election_results[0].partition_result[1];
    let message = refused.error_message.as_ref().map(KafkaString::as_str);
    assert_eq!(
        (refused.error_code, message),
        (response.error_code, Some("Unknown election type 5"))
    );
    let all = elect_leaders::Request { topic_partitions: None, ..Default::default() };
    let response = client.ask(2, &all).await;
    assert!(response.replica_election_results[0].partition_result.is_empty(), "{response:?}");
}

#[tokio::test]
async fn only_where_a_partition_is_can_it_be_moved() {
    let (_house, mut client) = with_ten_records(&[]).await;
    let invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT.get();
    for (replicas, code) in [
        (Some(vec![1]), 0),
        (Some(vec![2]), invalid),
        (Some(vec![1, 2]), invalid),
        (Some(Vec::new()), invalid),
        (None, ErrorCode::NO_REASSIGNMENT_IN_PROGRESS.get()),
    ] {
        let partition = alter_partition_reassignments::ReassignablePartition {
            partition_index: 0,
            replicas: replicas.clone(),
            ..Default::default()
        };
        let topic = alter_partition_reassignments::ReassignableTopic {
            name: text("t"),
            partitions: vec![partition],
            ..Default::default()
        };
        let request =
            alter_partition_reassignments::Request { topics: vec![topic], ..Default::default() };
        let response = client.ask(1, &request).await;
        assert_eq!(response.responses[0].partitions[0].error_code, code, "{replicas:?}");
    }
    let listed = client.ask(0, &list_partition_reassignments::Request::default()).await;
    assert!(listed.topics.is_empty());

    let dirs =
        client.ask(5, &describe_log_dirs::Request { topics: None, ..Default::default() }).await;
    for (path, code) in
        [(dirs.results[0].log_dir.as_str(), 0), ("/elsewhere", ErrorCode::LOG_DIR_NOT_FOUND.get())]
    {
        let topic = alter_replica_log_dirs::AlterReplicaLogDirTopic {
            name: text("t"),
            partitions: vec![0],
            ..Default::default()
        };
        let dir = alter_replica_log_dirs::AlterReplicaLogDir {
            path: text(path),
            topics: vec![topic],
            ..Default::default()
        };
        let request = alter_replica_log_dirs::Request { dirs: vec![dir], ..Default::default() };
        assert_eq!(client.ask(2, &request).await.results[0].partitions[0].error_code, code);
    }
}

#[tokio::test]
async fn one_replica_is_too_few_where_a_topic_asks_for_two() {
    let (_house, mut client) = with_ten_records(&[]).await;
    assert_eq!(client.alter_config(2, "t", 0, ("min.insync.replicas", "2")).await, 0);
    let refused = ErrorCode::NOT_ENOUGH_REPLICAS.get();
    assert_eq!(client.produce("t", batch(&["c"])).await.0, refused);
    let request = produce::message::Request { acks: 1, ..produce_request("t", batch(&["c"])) };
    let response = client.ask(9, &request).await;
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

/// The error codes of a topic with two replicas, of one that is assigned to two brokers, and of
/// partitions that are.
async fn of_two_replicas(house: &TestBroker) -> [i16; 3] {
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let counted = create_topics::CreatableTopic {
        name: text("counted"),
        num_partitions: 1,
        replication_factor: 2,
        ..Default::default()
    };
    let assigned = create_topics::CreatableTopic {
        name: text("assigned"),
        num_partitions: -1,
        replication_factor: -1,
        assignments: vec![create_topics::CreatableReplicaAssignment {
            partition_index: 0,
            broker_ids: vec![2, 1],
            ..Default::default()
        }],
        ..Default::default()
    };
    let request = create_topics::Request { topics: vec![counted, assigned], ..Default::default() };
    let created = client.ask(7, &request).await;
    let assignment = create_partitions::CreatePartitionsAssignment {
        broker_ids: vec![1, 2],
        ..Default::default()
    };
    let topic = create_partitions::CreatePartitionsTopic {
        name: text("t"),
        count: 2,
        assignments: Some(vec![assignment]),
        ..Default::default()
    };
    let request = create_partitions::Request { topics: vec![topic], ..Default::default() };
    let grown = client.ask(3, &request).await;
    [created.topics[0].error_code, created.topics[1].error_code, grown.results[0].error_code]
}

#[tokio::test]
async fn several_replicas_are_refused_unless_they_are_let_pass() {
    let strict = TestBroker::start().await;
    let factor = ErrorCode::INVALID_REPLICATION_FACTOR.get();
    let assignment = ErrorCode::INVALID_REPLICA_ASSIGNMENT.get();
    assert_eq!(of_two_replicas(&strict).await, [factor, assignment, assignment]);
    let lenient = TestBroker::start_with(&[("replication.factor.lenient", "true")]).await;
    assert_eq!(of_two_replicas(&lenient).await, [0, 0, 0]);
}

#[tokio::test]
async fn the_one_broker_there_is_is_not_unregistered() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    for (broker_id, code, words) in [
        (7, ErrorCode::BROKER_ID_NOT_REGISTERED, "Broker ID 7 is not currently registered"),
        (-1, ErrorCode::BROKER_ID_NOT_REGISTERED, "Broker ID -1 is not currently registered"),
        (1, ErrorCode::INVALID_REQUEST, "Broker ID 1 is this broker, which runs"),
    ] {
        let request = unregister_broker::Request { broker_id, ..Default::default() };
        let response = client.ask(0, &request).await;
        assert_eq!(response.error_code, code.get(), "{broker_id}");
        let message = response.error_message.expect("a message");
        assert!(message.as_str().starts_with(words), "{message}");
    }
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
}
