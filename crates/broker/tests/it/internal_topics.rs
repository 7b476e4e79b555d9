//! The broker's own topics: made as they must be, or not at all.

use strandline_wire::{ErrorCode, KafkaString, create_topics, metadata};

use crate::harness::{Client, TestBroker, text};

const TOPIC_RESOURCE: i8 = 2;

/// Names a topic as a client that may create it: error code, partitions, whether it is internal.
async fn name(client: &mut Client, topic: &str) -> (i16, usize, bool) {
    let asked = metadata::MetadataRequestTopic { name: Some(text(topic)), ..Default::default() };
    let request = metadata::Request {
        topics: Some(vec![asked]),
        allow_auto_topic_creation: true,
        ..Default::default()
    };
    let topic = client.ask(12, &request).await.topics.remove(0);
    (topic.error_code, topic.partitions.len(), topic.is_internal)
}

#[tokio::test]
async fn whoever_names_the_offsets_topic_first_it_is_the_same() {
    let house = TestBroker::start_with(&[("offsets.topic.num.partitions", "7")]).await;
    let mut client = house.connect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    assert_eq!(name(&mut client, "__consumer_offsets").await, (unknown, 0, true));
    assert_eq!(name(&mut client, "__consumer_offsets").await, (0, 7, true));
    let policy =
        client.describe_config(TOPIC_RESOURCE, "__consumer_offsets", "cleanup.policy").await;
    assert!(policy.starts_with("compact from 1"), "as the topic's own: {policy}");
}

#[tokio::test]
async fn names_that_nobody_writes_to_are_not_made() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();
    for (topic, internal) in [
        ("__transaction_state", true),
        ("__share_group_state", true),
        ("__cluster_metadata", false),
    ] {
        for _ in 0..2 {
            assert_eq!(name(&mut client, topic).await, (unknown, 0, internal), "{topic}");
        }
    }
    let topic = create_topics::CreatableTopic {
        name: text("__cluster_metadata"),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request = create_topics::Request { topics: vec![topic], ..Default::default() };
    let answer = client.ask(7, &request).await.topics.remove(0);
    let message = "Creation of internal topic __cluster_metadata is prohibited.";
    assert_eq!(answer.error_code, ErrorCode::INVALID_REQUEST.get());
    assert_eq!(answer.error_message.as_ref().map(KafkaString::as_str), Some(message));
}

#[tokio::test]
async fn what_cannot_be_created_is_refused_in_kafkas_words() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let assigned = |indexes: &[i32]| {
        let assign = |&partition_index: &i32| create_topics::CreatableReplicaAssignment {
            partition_index,
            broker_ids: vec![1],
            ..Default::default()
        };
        indexes.iter().map(assign).collect::<Vec<_>>()
    };
    let counts =
        "A manual partition assignment was specified, but numPartitions was not set to -1.";
    let cases = [
        (0, 1, assigned(&[]), "Number of partitions was set to an invalid non-positive value."),
        (
            1,
            0,
            assigned(&[]),
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (10_001, 1, assigned(&[]), "Excessively large number of partitions per request."),
        (3, -1, assigned(&[0]), counts),
        (-1, -1, assigned(&[0, 0]), "Found multiple manual partition assignments for partition 0"),
        (-1, -1, assigned(&[1]), "partitions should be a consecutive 0-based integer sequence"),
    ];
    for (num_partitions, replication_factor, assignments, message) in cases {
        let topic = create_topics::CreatableTopic {
            name: text("t"),
            num_partitions,
            replication_factor,
            assignments,
            ..Default::default()
        };
        let request = create_topics::Request { topics: vec![topic], ..Default::default() };
        let answer = client.ask(7, &request).await.topics.remove(0);
        assert_eq!(answer.error_message.as_ref().map(KafkaString::as_str), Some(message));
    }
}
