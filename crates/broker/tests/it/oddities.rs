//! Requests that make little sense, answered as Apache Kafka 4.4 answers them. What is kept here was
//! found by the differential test, which asks Kafka itself.

use strandline_wire::{
    ErrorCode, KafkaUuid, create_topics, delete_topics, describe_cluster,
    describe_topic_partitions, fetch, init_producer_id, list_offsets, metadata,
    offset_for_leader_epoch, produce,
};

use crate::harness::{
    Client, TestBroker, batch, fetch_request, idempotent_batch, produce_request, text,
};

const INVALID_REQUEST: i16 = ErrorCode::INVALID_REQUEST.get();
const UNKNOWN_TOPIC_OR_PARTITION: i16 = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
const UNKNOWN_SERVER_ERROR: i16 = ErrorCode::UNKNOWN_SERVER_ERROR.get();

async fn with_topic() -> (TestBroker, Client) {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 2).await;
    (house, client)
}

#[tokio::test]
async fn of_two_batches_for_a_partition_the_last_counts() {
    let (_house, mut client) = with_topic().await;
    let mut request = produce_request("t", batch(&["first", "first"]));
    let second = produce_request("t", batch(&["second"])).topic_data.remove(0);
    // Once beside it and once in a topic of its own; and a topic of no partitions.
    request.topic_data[0].partition_data.extend(second.partition_data.clone());
    request.topic_data.push(second);
    let none = produce::message::TopicProduceData { name: text("none"), ..Default::default() };
    request.topic_data.push(none);
    let response = client.ask(9, &request).await;
    assert_eq!(response.responses.len(), 1);
    assert_eq!(response.responses[0].partition_responses.len(), 1);
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(client.offset("t", -1).await, (0, 1), "one batch of one record");
}

#[tokio::test]
async fn a_refused_batch_is_told_where_the_log_begins_and_a_retry_its_own_time() {
    let (_house, mut client) = with_topic().await;
    let first = || produce_request("t", idempotent_batch(1, 0, 0, &["a"]));
    let answer = |response: produce::message::Response| {
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.log_start_offset, partition.log_append_time_ms)
    };
    assert_eq!(answer(client.ask(9, &first()).await), (0, 0, -1));
    assert_eq!(answer(client.ask(9, &first()).await), (0, 0, 1_700_000_000_000));
    let gap = produce_request("t", idempotent_batch(1, 0, 7, &["a"]));
    let out_of_order = ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER.get();
    assert_eq!(answer(client.ask(9, &gap).await), (out_of_order, 0, -1));
}

#[tokio::test]
async fn clients_read_internal_topics_and_do_not_write_them() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("__consumer_offsets", 1).await;
    let refused = ErrorCode::INVALID_TOPIC_EXCEPTION.get();
    assert_eq!(client.produce("__consumer_offsets", batch(&["a"])).await.0, refused);
    // Kafka lets this name through.
    client.client_id = Some("__admin_client");
    assert_eq!(client.produce("__consumer_offsets", batch(&["a"])).await.0, refused);
    assert_eq!(client.fetch("__consumer_offsets", 0, 0).await.error_code, 0);
    let all = metadata::Request { topics: None, ..Default::default() };
    assert!(client.ask(12, &all).await.topics[0].is_internal);
}

#[tokio::test]
async fn a_partition_that_is_fetched_twice_is_read_once_from_the_last_place() {
    let (_house, mut client) = with_topic().await;
    client.produce("t", batch(&["a"])).await;
    let mut request = fetch_request("t", 0, 0);
    let again = fetch::message::FetchPartition {
        fetch_offset: 1,
        ..request.topics[0].partitions[0].clone()
    };
    request.topics[0].partitions.push(again);
    let response = client.ask(12, &request).await;
    assert_eq!(response.responses[0].partitions.len(), 1);
    let records = response.responses[0].partitions[0].records.as_ref();
    assert!(records.is_none_or(bytes::Bytes::is_empty), "offset 1 is the end");
}

#[tokio::test]
async fn limits_and_levels_that_do_not_exist_fail() {
    let (_house, mut client) = with_topic().await;
    client.produce("t", batch(&["a"])).await;
    let mut request = fetch_request("t", 0, 0);
    request.topics[0].partitions[0].partition_max_bytes = -1;
    let response = client.ask(12, &request).await;
    assert_eq!(response.error_code, 0);
    assert_eq!(response.responses[0].partitions[0].error_code, UNKNOWN_SERVER_ERROR);
    let mut request = fetch_request("t", 0, 0);
    request.isolation_level = 2;
    let response = client.ask(12, &request).await;
    assert_eq!(response.error_code, UNKNOWN_SERVER_ERROR);
    assert_eq!(response.responses[0].partitions[0].error_code, UNKNOWN_SERVER_ERROR);
    let mut request = list_offsets_request(&[-1]);
    request.isolation_level = 2;
    let response = client.ask(7, &request).await;
    assert_eq!(response.topics[0].partitions[0].error_code, UNKNOWN_SERVER_ERROR);
}

fn list_offsets_request(timestamps: &[i64]) -> list_offsets::Request {
    let partition =
        |&timestamp: &i64| list_offsets::ListOffsetsPartition { timestamp, ..Default::default() };
    let topic = list_offsets::ListOffsetsTopic {
        name: text("t"),
        partitions: timestamps.iter().map(partition).collect(),
        ..Default::default()
    };
    list_offsets::Request { topics: vec![topic], ..Default::default() }
}

#[tokio::test]
async fn a_partition_that_is_looked_up_twice_is_refused_once() {
    let (_house, mut client) = with_topic().await;
    let response = client.ask(7, &list_offsets_request(&[-1, -2])).await;
    let partitions = &response.topics[0].partitions;
    assert_eq!(partitions.len(), 1);
    assert_eq!(partitions[0].error_code, INVALID_REQUEST);
}

#[tokio::test]
async fn only_minus_one_stands_for_no_epoch() {
    let (_house, mut client) = with_topic().await;
    client.produce("t", batch(&["a"])).await;
    let mut ask = async |current_leader_epoch: i32, leader_epoch: i32| {
        let partition = offset_for_leader_epoch::OffsetForLeaderPartition {
            current_leader_epoch,
            leader_epoch,
            ..Default::default()
        };
        let topic = offset_for_leader_epoch::OffsetForLeaderTopic {
            topic: text("t"),
            partitions: vec![partition],
            ..Default::default()
        };
        let topics = vec![topic];
        let request = offset_for_leader_epoch::Request { topics, ..Default::default() };
        let response = client.ask(4, &request).await;
        let partition = &response.topics[0].partitions[0];
        (partition.error_code, partition.leader_epoch, partition.end_offset)
    };
    assert_eq!(ask(-1, 0).await, (0, 0, 1));
    assert_eq!(ask(-1, -1).await, (0, -1, -1));
    assert_eq!(ask(-1, -2).await, (0, -2, 0));
    assert_eq!(ask(-2, 0).await, (ErrorCode::FENCED_LEADER_EPOCH.get(), -1, -1));
}

#[tokio::test]
async fn a_session_may_begin_empty_and_an_unknown_one_is_told_as_none() {
    let (_house, mut client) = with_topic().await;
    let empty = fetch::message::Request { session_epoch: 0, ..Default::default() };
    assert!(client.ask(12, &empty).await.session_id > 0);
    let unknown =
        fetch::message::Request { session_id: 4711, session_epoch: 1, ..Default::default() };
    let response = client.ask(12, &unknown).await;
    assert_eq!(response.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND.get());
    assert_eq!(response.session_id, 0);
}

#[tokio::test]
async fn a_producer_goes_on_with_its_id_and_its_epoch_or_neither() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let mut ask = async |producer_id: i64, producer_epoch: i16| {
        let request =
            init_producer_id::Request { producer_id, producer_epoch, ..Default::default() };
        client.ask(4, &request).await.error_code
    };
    assert_eq!(ask(-1, -1).await, 0);
    assert_eq!(ask(5, 3).await, 0);
    assert_eq!(ask(5, -1).await, INVALID_REQUEST);
    assert_eq!(ask(-1, 5).await, INVALID_REQUEST);
}

#[tokio::test]
async fn topic_ids_need_their_version_and_topics_a_name_or_an_id() {
    let (_house, mut client) = with_topic().await;
    let by_id = |topic_id| metadata::Request {
        topics: Some(vec![metadata::MetadataRequestTopic {
            topic_id,
            name: None,
            ..Default::default()
        }]),
        ..Default::default()
    };
    let response = client.ask(11, &by_id(KafkaUuid::from_parts(1, 2))).await;
    assert_eq!(response.topics[0].error_code, INVALID_REQUEST);
    assert!(response.brokers.is_empty());
    let response = client.ask(13, &by_id(KafkaUuid::ZERO)).await;
    let codes = (response.error_code, response.topics[0].error_code);
    assert_eq!(codes, (UNKNOWN_SERVER_ERROR, UNKNOWN_SERVER_ERROR));
}

#[tokio::test]
async fn clients_that_know_topic_ids_ask_again_for_a_topic_that_they_created() {
    let (_house, mut client) = with_topic().await;
    let mut ask = async |version: i16, name: &str| {
        let topic = metadata::MetadataRequestTopic { name: Some(text(name)), ..Default::default() };
        let request = metadata::Request {
            topics: Some(vec![topic]),
            allow_auto_topic_creation: true,
            ..Default::default()
        };
        let topic = client.ask(version, &request).await.topics.remove(0);
        (topic.error_code, topic.partitions.len())
    };
    let unknown = (UNKNOWN_TOPIC_OR_PARTITION, 0);
    for (version, name, first) in
        [(4, "four", (0, 1)), (9, "nine", (0, 1)), (10, "ten", unknown), (13, "thirteen", unknown)]
    {
        assert_eq!(ask(version, name).await, first, "v{version}");
        assert_eq!(ask(version, name).await, (0, 1), "v{version}, when it asks again");
    }
}

#[tokio::test]
async fn a_page_begins_at_a_topic_that_is_asked_for_and_a_partition_that_can_be() {
    let (_house, mut client) = with_topic().await;
    let mut ask = async |topic: &str, partition_index: i32| {
        let cursor = describe_topic_partitions::RequestCursor {
            topic_name: text(topic),
            partition_index,
            ..Default::default()
        };
        let name = text("t");
        let topics = vec![describe_topic_partitions::TopicRequest { name, ..Default::default() }];
        let request = describe_topic_partitions::Request {
            topics,
            response_partition_limit: 10,
            cursor: Some(Box::new(cursor)),
            ..Default::default()
        };
        let response = client.ask(0, &request).await;
        (response.topics[0].error_code, response.topics[0].partitions.len())
    };
    assert_eq!(ask("t", 1).await, (0, 1));
    assert_eq!(ask("t", -1).await, (INVALID_REQUEST, 0));
    assert_eq!(ask("s", 0).await, (INVALID_REQUEST, 0));
}

#[tokio::test]
async fn values_are_told_as_they_were_given_once_and_keys_for_tests_are_hidden() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let config = |(name, value)| create_topics::CreatableTopicConfig {
        name: text(name),
        value: Some(text(value)),
        ..Default::default()
    };
    let configs = [("retention.ms", " 60000 "), ("preallocate", "TRUE")];
    let topic = create_topics::CreatableTopic {
        name: text("t"),
        num_partitions: 1,
        replication_factor: 1,
        configs: configs.map(config).to_vec(),
        ..Default::default()
    };
    let request = create_topics::Request { topics: vec![topic], ..Default::default() };
    let response = client.ask(7, &request).await;
    let told = response.topics[0].configs.iter().flatten().map(|entry| (&entry.name, &entry.value));
    let value = |wanted: &str| {
        let found = told.clone().find(|(name, _)| name.as_str() == wanted);
        found.map(|(_, value)| value.as_ref().unwrap().as_str())
    };
    assert_eq!(value("retention.ms"), Some(" 60000 "));
    assert_eq!(value("preallocate"), Some("TRUE"));
    assert_eq!(value("internal.segment.bytes"), None);

    let described = client.describe_configs(2, "t").await;
    assert_eq!(described["retention.ms"], "60000");
    assert_eq!(described["preallocate"], "true");
    assert!(!described.contains_key("internal.segment.bytes"));
}

#[tokio::test]
async fn a_topic_that_is_only_checked_has_an_id_and_does_not_exist() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let topic = create_topics::CreatableTopic {
        name: text("t"),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request =
        create_topics::Request { topics: vec![topic], validate_only: true, ..Default::default() };
    assert_ne!(client.ask(7, &request).await.topics[0].topic_id, KafkaUuid::ZERO);
    assert_eq!(house.broker.topic_count(), 0);
}

#[tokio::test]
async fn a_topic_that_is_deleted_by_name_and_by_id_at_once_is_refused_once() {
    let (house, mut client) = with_topic().await;
    let all = metadata::Request { topics: None, ..Default::default() };
    let topic_id = client.ask(12, &all).await.topics[0].topic_id;
    let states = [
        delete_topics::DeleteTopicState { name: Some(text("t")), ..Default::default() },
        delete_topics::DeleteTopicState { name: None, topic_id, ..Default::default() },
    ];
    let request = delete_topics::Request { topics: states.to_vec(), ..Default::default() };
    let response = client.ask(6, &request).await;
    assert_eq!(response.responses.len(), 1);
    let answer = &response.responses[0];
    assert_eq!((answer.error_code, answer.topic_id), (INVALID_REQUEST, topic_id));
    assert_eq!(house.broker.topic_count(), 1);
}

#[tokio::test]
async fn a_wrong_kind_of_endpoint_is_told_the_right_one() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let request = describe_cluster::Request { endpoint_type: 2, ..Default::default() };
    let response = client.ask(2, &request).await;
    assert_eq!(response.error_code, ErrorCode::MISMATCHED_ENDPOINT_TYPE.get());
    assert_eq!(response.endpoint_type, 1);
}
