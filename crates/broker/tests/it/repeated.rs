//! What a request names again is answered once, and what it names in pieces together.

use strandline_wire::{
    ErrorCode, describe_groups, describe_log_dirs, describe_producers, offset_commit,
    offset_delete, offset_fetch,
};

use crate::groups::commit;
use crate::harness::{Client, TestBroker, batch, idempotent_batch, text};

const UNKNOWN_TOPIC: i16 = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get();

/// A topic with a record of a producer, and a position in it.
async fn with_position() -> (TestBroker, Client) {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 2).await;
    client.produce("t", idempotent_batch(9, 0, 0, &["a"])).await;
    client.produce("t", batch(&["b"])).await;
    assert_eq!(commit(&mut client, "g", 1).await, 0);
    (house, client)
}

fn asked(topic: &str, partition_indexes: &[i32]) -> offset_fetch::OffsetFetchRequestTopics {
    offset_fetch::OffsetFetchRequestTopics {
        name: text(topic),
        partition_indexes: partition_indexes.to_vec(),
        ..Default::default()
    }
}

#[tokio::test]
async fn positions_are_told_once() {
    let (_house, mut client) = with_position().await;
    let group = offset_fetch::OffsetFetchRequestGroup {
        group_id: text("g"),
        topics: Some(vec![asked("t", &[0, 0, 1]), asked("u", &[]), asked("t", &[1, 0])]),
        ..Default::default()
    };
    let request =
        offset_fetch::Request { groups: vec![group.clone(), group], ..Default::default() };
    let response = client.ask(8, &request).await;
    let [group] = response.groups.as_slice() else { panic!("one group: {response:?}") };
    let told: Vec<_> = (group.topics.iter())
        .map(|topic| {
            let offsets =
                topic.partitions.iter().map(|one| (one.partition_index, one.committed_offset));
            (topic.name.as_str(), offsets.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(told, [("t", vec![(0, 1), (1, -1)]), ("u", vec![])]);

    let topic = offset_fetch::OffsetFetchRequestTopic {
        name: text("t"),
        partition_indexes: vec![0; 1000],
        ..Default::default()
    };
    let request = offset_fetch::Request {
        group_id: text("g"),
        topics: Some(vec![topic]),
        ..Default::default()
    };
    let response = client.ask(7, &request).await;
    assert_eq!(response.topics[0].partitions.len(), 1, "before there were several groups, too");
}

#[tokio::test]
async fn groups_producers_and_sizes_are_described_once() {
    let (_house, mut client) = with_position().await;
    let request = describe_groups::Request { groups: vec![text("g"); 3], ..Default::default() };
    assert_eq!(client.ask(5, &request).await.groups.len(), 1);

    let topic = |partition_indexes: &[i32]| describe_producers::TopicRequest {
        name: text("t"),
        partition_indexes: partition_indexes.to_vec(),
        ..Default::default()
    };
    let topics = vec![topic(&[0, 0]), topic(&[1, 0])];
    let response =
        client.ask(0, &describe_producers::Request { topics, ..Default::default() }).await;
    let told = response.topics.iter().flat_map(|topic| &topic.partitions);
    let told: Vec<_> = told.map(|one| (one.partition_index, one.active_producers.len())).collect();
    assert_eq!(told, [(0, 1), (1, 0)]);

    let topic = |name: &str, partitions: &[i32]| describe_log_dirs::DescribableLogDirTopic {
        topic: text(name),
        partitions: partitions.to_vec(),
        ..Default::default()
    };
    let topics = Some(vec![topic("t", &[1, 0]), topic("nobody", &[0]), topic("t", &[0, 7])]);
    let response =
        client.ask(5, &describe_log_dirs::Request { topics, ..Default::default() }).await;
    let [told] = response.results[0].topics.as_slice() else { panic!("one topic: {response:?}") };
    let indexes: Vec<_> = told.partitions.iter().map(|one| one.partition_index).collect();
    assert_eq!((told.name.as_str(), indexes), ("t", vec![0, 1]));
}

#[tokio::test]
async fn refusals_of_a_topic_come_together_wherever_it_is_named() {
    let (_house, mut client) = with_position().await;
    let names = [("a", 0), ("b", 0), ("a", 1), ("t", 7), ("b", 2), ("t", 8)];
    let together = [("a", vec![0, 1]), ("b", vec![0, 2]), ("t", vec![7, 8])];

    let topics = names.map(|(name, partition_index)| offset_commit::OffsetCommitRequestTopic {
        name: text(name),
        partitions: vec![offset_commit::OffsetCommitRequestPartition {
            partition_index,
            ..Default::default()
        }],
        ..Default::default()
    });
    let request = offset_commit::Request {
        group_id: text("g"),
        generation_id_or_member_epoch: -1,
        topics: topics.to_vec(),
        ..Default::default()
    };
    let response = client.ask(9, &request).await;
    let all = response.topics.iter().flat_map(|topic| &topic.partitions);
    assert!(all.clone().all(|one| one.error_code == UNKNOWN_TOPIC), "{response:?}");
    let told: Vec<_> = (response.topics.iter())
        .map(|topic| {
            let indexes = topic.partitions.iter().map(|one| one.partition_index);
            (topic.name.as_str(), indexes.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(told, together);

    let topics = names.map(|(name, partition_index)| offset_delete::OffsetDeleteRequestTopic {
        name: text(name),
        partitions: vec![offset_delete::OffsetDeleteRequestPartition {
            partition_index,
            ..Default::default()
        }],
        ..Default::default()
    });
    let request = offset_delete::Request {
        group_id: text("g"),
        topics: topics.to_vec(),
        ..Default::default()
    };
    let response = client.ask(0, &request).await;
    let told: Vec<_> = (response.topics.iter())
        .map(|topic| {
            let indexes = topic.partitions.iter().map(|one| one.partition_index);
            (topic.name.as_str(), indexes.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(told, together);
}
