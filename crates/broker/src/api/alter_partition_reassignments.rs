//! AlterPartitionReassignments: v0–v1 (KIP-455). v1 may refuse another replication factor.
//!
//! There is one broker: a partition may be assigned to it, where it is already, and to no other.

use std::collections::BTreeSet;

use strandline_wire::ErrorCode;
use strandline_wire::alter_partition_reassignments::{
    ReassignablePartition, ReassignablePartitionResponse, ReassignableTopicResponse, Request,
    Response,
};

use super::text;
use crate::Broker;

/// Answers each partition.
pub(crate) fn handle(broker: &Broker, request: &Request) -> Response {
    let mut responses = Vec::with_capacity(request.topics.len());
    for asked in &request.topics {
        let topic = broker.registry().by_name(asked.name.as_str());
        let respond = |partition: &ReassignablePartition| {
            let index = partition.partition_index;
            let exists = topic.as_ref().is_some_and(|topic| topic.partition(index).is_some());
            let (code, message) = match (&topic, check(broker, partition)) {
                (None, _) => {
                    let message = format!("Unable to find a topic named {}.", asked.name);
                    (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Some(message))
                }
                (Some(_), _) if !exists => {
                    let message = format!("Unable to find partition {}:{index}.", asked.name);
                    (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Some(message))
                }
                (Some(_), Ok(())) => (ErrorCode::NONE, None),
                (Some(_), Err(refused)) => refused,
            };
            ReassignablePartitionResponse {
                partition_index: index,
                error_code: code.get(),
                error_message: message.map(text),
                ..ReassignablePartitionResponse::default()
            }
        };
        responses.push(ReassignableTopicResponse {
            name: asked.name.clone(),
            partitions: asked.partitions.iter().map(respond).collect(),
            ..ReassignableTopicResponse::default()
        });
    }
    // As Kafka: empty, not null, where nothing was asked for.
    let error_message = request.topics.is_empty().then(|| text(""));
    Response { responses, error_message, ..Response::default() }
}

/// Whether the replicas are those that there are.
fn check(
    broker: &Broker,
    asked: &ReassignablePartition,
) -> Result<(), (ErrorCode, Option<String>)> {
    let node = broker.node_id().get();
    let invalid = |message: String| Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, Some(message)));
    let Some(replicas) = &asked.replicas else {
        // As Kafka: without a message.
        return Err((ErrorCode::NO_REASSIGNMENT_IN_PROGRESS, None));
    };
    if replicas.is_empty() {
        return invalid(
            "The manual partition assignment includes an empty replica list.".to_owned(),
        );
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = replicas.iter().find(|replica| !seen.insert(**replica)) {
        return invalid(format!(
            "The manual partition assignment includes the broker {twice} more than once."
        ));
    }
    match replicas.iter().find(|replica| **replica != node) {
        Some(other) => invalid(format!(
            "The manual partition assignment includes broker {other}, but no such broker is \
             registered."
        )),
        None => Ok(()),
    }
}
