//! AlterReplicaLogDirs: v1–v2. There is one folder, and every partition is in it already.

use strandline_wire::ErrorCode;
use strandline_wire::alter_replica_log_dirs::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, Request, Response,
};

use crate::Broker;

/// Answers each partition: moved to where it is, or a folder that there is not.
pub(crate) fn handle(broker: &Broker, request: &Request) -> Response {
    let own = broker.settings().data_dir();
    let mut results = Vec::new();
    for dir in &request.dirs {
        for asked in &dir.topics {
            let topic = broker.registry().by_name(asked.name.as_str());
            let partition = |&partition_index: &i32| {
                let exists = topic.as_ref().is_some_and(|t| t.partition(partition_index).is_some());
                let code = if dir.path.as_str() != own {
                    ErrorCode::LOG_DIR_NOT_FOUND
                } else if exists {
                    ErrorCode::NONE
                } else {
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                };
                AlterReplicaLogDirPartitionResult {
                    partition_index,
                    error_code: code.get(),
                    ..AlterReplicaLogDirPartitionResult::default()
                }
            };
            results.push(AlterReplicaLogDirTopicResult {
                topic_name: asked.name.clone(),
                partitions: asked.partitions.iter().map(partition).collect(),
                ..AlterReplicaLogDirTopicResult::default()
            });
        }
    }
    Response { results, ..Response::default() }
}
