//! ElectLeaders: v0–v2. v1 unclean elections (KIP-460). One broker leads every partition, so no
//! election is ever needed.

use strandline_wire::ErrorCode;
use strandline_wire::elect_leaders::{PartitionResult, ReplicaElectionResult, Request, Response};

use super::text;
use crate::Broker;

/// The preferred replica (0), or any (1).
const ELECTION_TYPES: [i8; 2] = [0, 1];

/// Answers each partition that is named. Of all partitions only those are told that an election
/// changed: none, but their topics are, as in Kafka.
pub(crate) fn handle(broker: &Broker, request: &Request) -> Response {
    if !ELECTION_TYPES.contains(&request.election_type) {
        return unknown_type(request);
    }
    let Some(named) = &request.topic_partitions else {
        let topics = broker.registry().all();
        let unchanged = topics.iter().map(|topic| ReplicaElectionResult {
            topic: text(topic.name().as_str()),
            ..ReplicaElectionResult::default()
        });
        return Response { replica_election_results: unchanged.collect(), ..Response::default() };
    };
    let mut replica_election_results = Vec::new();
    for asked in named {
        let topic = broker.registry().by_name(asked.topic.as_str());
        let result = |&partition_id: &i32| {
            let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            let (code, message) = match &topic {
                None => (unknown, format!("No such topic as {}", asked.topic)),
                Some(topic) if topic.partition(partition_id).is_none() => {
                    (unknown, format!("No such partition as {}-{partition_id}", asked.topic))
                }
                Some(_) => {
                    let message = "Leader election not needed for topic partition.".to_owned();
                    (ErrorCode::ELECTION_NOT_NEEDED, message)
                }
            };
            PartitionResult {
                partition_id,
                error_code: code.get(),
                error_message: Some(text(message)),
                ..PartitionResult::default()
            }
        };
        replica_election_results.push(ReplicaElectionResult {
            topic: asked.topic.clone(),
            partition_result: asked.partitions.iter().map(result).collect(),
            ..ReplicaElectionResult::default()
        });
    }
    Response { replica_election_results, ..Response::default() }
}

/// As Kafka: the error of the whole, and of each partition that is named.
fn unknown_type(request: &Request) -> Response {
    let code = ErrorCode::INVALID_REQUEST.get();
    let message = format!("Unknown election type {}", request.election_type);
    let refused = |&partition_id: &i32| PartitionResult {
        partition_id,
        error_code: code,
        error_message: Some(text(message.clone())),
        ..PartitionResult::default()
    };
    let named = request.topic_partitions.iter().flatten().map(|asked| ReplicaElectionResult {
        topic: asked.topic.clone(),
        partition_result: asked.partitions.iter().map(refused).collect(),
        ..ReplicaElectionResult::default()
    });
    Response { error_code: code, replica_election_results: named.collect(), ..Response::default() }
}
