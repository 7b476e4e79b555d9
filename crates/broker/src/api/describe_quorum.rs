//! DescribeQuorum: v0–v2 (KIP-595). v1 times; v2 error messages, folders and nodes (KIP-853).
//!
//! The quorum of one: this broker votes for itself and has led since ever. Metadata is rows, not a log
//! that others fetch, so its offsets and its epoch are 0, and there are neither folder nor listener
//! of a controller.

use strandline_wire::describe_quorum::{
    Node, PartitionResponse, ReplicaState, Request, Response, TopicResponse,
};
use strandline_wire::{ErrorCode, KafkaString};

use super::text;
use crate::Broker;

/// The topic in which Kafka keeps metadata; it has one partition.
const METADATA_TOPIC: &str = "__cluster_metadata";
/// The first version that tells of nodes.
const NODES_FROM: i16 = 2;

/// Describes the one voter that there is.
pub(crate) fn handle(broker: &Broker, request: &Request, version: i16) -> Response {
    let is_metadata = match request.topics.as_slice() {
        [topic] => {
            let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
            topic.topic_name.as_str() == METADATA_TOPIC && indexes.eq([0])
        }
        _ => false,
    };
    if !is_metadata {
        return unknown(request);
    }
    let node_id = broker.node_id().get();
    let now = broker.environment().now().as_millis();
    let voter = ReplicaState {
        replica_id: node_id,
        last_fetch_timestamp: now,
        last_caught_up_timestamp: now,
        ..ReplicaState::default()
    };
    let partition = PartitionResponse {
        leader_id: node_id,
        current_voters: vec![voter],
        // As Kafka: empty, not null.
        error_message: Some(KafkaString::default()),
        ..PartitionResponse::default()
    };
    let topic = TopicResponse {
        topic_name: text(METADATA_TOPIC),
        partitions: vec![partition],
        ..TopicResponse::default()
    };
    Response {
        topics: vec![topic],
        nodes: if version >= NODES_FROM {
            vec![Node { node_id, ..Node::default() }]
        } else {
            Vec::new()
        },
        error_message: Some(KafkaString::default()),
        ..Response::default()
    }
}

/// As Kafka: only metadata has a quorum, and it is asked for alone.
fn unknown(request: &Request) -> Response {
    let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let topics = request.topics.iter().map(|topic| TopicResponse {
        topic_name: topic.topic_name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| PartitionResponse {
                partition_index: partition.partition_index,
                error_code: code.get(),
                error_message: code.info().map(|info| text(info.meaning)),
                ..PartitionResponse::default()
            })
            .collect(),
        ..TopicResponse::default()
    });
    Response {
        topics: topics.collect(),
        error_message: Some(KafkaString::default()),
        ..Response::default()
    }
}
