//! DescribeLogDirs: v1–v5. v3 an error of the whole; v4 bytes of the volume; v5 cordoned folders.
//!
//! There is one folder; what its partitions store is what the engine has of them, wherever it is.

use std::sync::Arc;

use strandline_model::ByteCount;
use strandline_wire::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic, Request, Response,
};

use super::text;
use crate::Broker;
use crate::topic::Topic;

/// What stands for "unknown" in an answer.
const UNKNOWN: i64 = -1;

/// Describes the folder and those of its partitions that are asked for. A partition that can't be
/// opened now is left out, as Kafka leaves out those of a folder that failed.
pub(crate) async fn handle(broker: &Arc<Broker>, request: &Request) -> Response {
    let mut topics = Vec::new();
    for topic in broker.registry().all() {
        let name = topic.name().as_str();
        let asked = request.topics.as_ref().map(|asked| {
            let of_topic = asked.iter().filter(|asked| asked.topic.as_str() == name);
            of_topic.flat_map(|asked| asked.partitions.iter().copied()).collect::<Vec<i32>>()
        });
        let partitions = describe(broker, &topic, asked.as_deref()).await;
        if !partitions.is_empty() {
            topics.push(DescribeLogDirsTopic {
                name: text(name),
                partitions,
                ..DescribeLogDirsTopic::default()
            });
        }
    }
    let free = broker.engines().iter().filter_map(|(_, store)| store.space().free).min();
    let folder = DescribeLogDirsResult {
        log_dir: text(broker.settings().data_dir()),
        topics,
        total_bytes: UNKNOWN,
        usable_bytes: free.map_or(UNKNOWN, to_wire),
        ..DescribeLogDirsResult::default()
    };
    Response { results: vec![folder], ..Response::default() }
}

/// The partitions of `topic` that are in `asked`; all for `None`.
async fn describe(
    broker: &Broker,
    topic: &Arc<Topic>,
    asked: Option<&[i32]>,
) -> Vec<DescribeLogDirsPartition> {
    let mut described = Vec::new();
    for slot in topic.partitions() {
        let index = slot.id().index.to_wire();
        if asked.is_some_and(|asked| !asked.contains(&index)) {
            continue;
        }
        let Ok(partition) = broker.partitions().open(topic, &slot).await else { continue };
        let size: ByteCount = partition.log().chunks().iter().map(|chunk| chunk.bytes).sum();
        described.push(DescribeLogDirsPartition {
            partition_index: index,
            partition_size: to_wire(size),
            ..DescribeLogDirsPartition::default()
        });
    }
    described
}

fn to_wire(bytes: ByteCount) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}
