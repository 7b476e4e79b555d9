//! DescribeLogDirs: v1–v5. v3 an error of the whole; v4 bytes of the volume; v5 cordoned folders.
//!
//! There is one folder; what its partitions store is what the engine has of them, wherever it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strandline_model::ByteCount;
use strandline_model::config::StorageEngine;
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
    for (topic, asked) in asked(broker, request) {
        let partitions = describe(broker, &topic, asked.as_ref()).await;
        if !partitions.is_empty() {
            topics.push(DescribeLogDirsTopic {
                name: text(topic.name().as_str()),
                partitions,
                ..DescribeLogDirsTopic::default()
            });
        }
    }
    // Of memory the folder holds nothing, unless there is nothing else.
    let in_folder = |name: &str| name != StorageEngine::Memory.name();
    let is_in_memory = !broker.engines().iter().any(|(name, _)| in_folder(name));
    let engines = broker.engines().iter().filter(|(name, _)| is_in_memory || in_folder(name));
    let free = engines.filter_map(|(_, store)| store.space().free).min();
    let folder = DescribeLogDirsResult {
        log_dir: text(broker.settings().data_dir()),
        topics,
        total_bytes: UNKNOWN,
        usable_bytes: free.map_or(UNKNOWN, to_wire),
        ..DescribeLogDirsResult::default()
    };
    Response { results: vec![folder], ..Response::default() }
}

/// The topics that are asked about, with the partitions, each once; `None` stands for all of a topic.
fn asked(broker: &Broker, request: &Request) -> Vec<(Arc<Topic>, Option<BTreeSet<i32>>)> {
    let Some(asked) = &request.topics else {
        return broker.registry().all().into_iter().map(|topic| (topic, None)).collect();
    };
    let mut by_name: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for topic in asked {
        by_name.entry(topic.topic.as_str()).or_default().extend(&topic.partitions);
    }
    let known = |(name, partitions)| Some((broker.registry().by_name(name)?, Some(partitions)));
    by_name.into_iter().filter_map(known).collect()
}

/// The partitions of `topic` that are in `asked`; all for `None`.
async fn describe(
    broker: &Broker,
    topic: &Arc<Topic>,
    asked: Option<&BTreeSet<i32>>,
) -> Vec<DescribeLogDirsPartition> {
    let mut described = Vec::new();
    for slot in topic.partitions() {
        let index = slot.id().index.to_wire();
        if asked.is_some_and(|asked| !asked.contains(&index)) {
            continue;
        }
        let chunks = if let Some(stored) = broker.cleaner().stored(topic, &slot) {
            stored.chunks
        } else {
            // Nothing is stored, or it can't be opened: that tells.
            let Ok(partition) = broker.partitions().open(topic, &slot).await else { continue };
            partition.log().chunks()
        };
        let size: ByteCount = chunks.iter().map(|chunk| chunk.bytes).sum();
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
