//! DeleteRecords: v0–v2. Raises the log start; the records below it are gone when the answer comes.

use std::sync::Arc;

use hashbrown::HashMap;
use strandline_model::Offset;
use strandline_wire::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsTopic,
    DeleteRecordsTopicResult, Request, Response,
};
use strandline_wire::{ErrorCode, KafkaString};

use crate::topic::Topic;
use crate::{Broker, error_code};

/// What stands for the high watermark in a request.
const HIGH_WATERMARK: i64 = -1;
/// What stands for "unknown" in an answer.
const UNKNOWN: i64 = -1;

/// Deletes the records of each partition, one after another.
pub(crate) async fn handle(broker: &Arc<Broker>, request: Request) -> Response {
    let mut topics = Vec::with_capacity(request.topics.len());
    for DeleteRecordsTopic { name, partitions, .. } in name_once(request.topics) {
        let topic = broker.registry().by_name(name.as_str());
        let mut results = Vec::with_capacity(partitions.len());
        for asked in partitions {
            let deleted = match &topic {
                Some(topic) => delete(broker, topic, &asked).await,
                None => Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            };
            results.push(DeleteRecordsPartitionResult {
                partition_index: asked.partition_index,
                low_watermark: deleted.unwrap_or(UNKNOWN),
                error_code: deleted.err().unwrap_or(ErrorCode::NONE).get(),
                ..DeleteRecordsPartitionResult::default()
            });
        }
        topics.push(DeleteRecordsTopicResult {
            name,
            partitions: results,
            ..DeleteRecordsTopicResult::default()
        });
    }
    Response { topics, ..Response::default() }
}

/// Each partition once, as Kafka: of several offsets for it the last counts. A topic of no
/// partitions is not answered.
fn name_once(topics: Vec<DeleteRecordsTopic>) -> Vec<DeleteRecordsTopic> {
    let mut merged: Vec<DeleteRecordsTopic> = Vec::with_capacity(topics.len());
    let mut place_of: HashMap<KafkaString, usize> = HashMap::new();
    for topic in topics.into_iter().filter(|topic| !topic.partitions.is_empty()) {
        if let Some(&place) = place_of.get(&topic.name) {
            merged[place].partitions.extend(topic.partitions);
        } else {
            place_of.insert(topic.name.clone(), merged.len());
            merged.push(topic);
        }
    }
    for topic in &mut merged {
        let mut last: HashMap<i32, DeleteRecordsPartition> = HashMap::new();
        for partition in std::mem::take(&mut topic.partitions) {
            last.insert(partition.partition_index, partition);
        }
        topic.partitions = last.into_values().collect();
        topic.partitions.sort_unstable_by_key(|partition| partition.partition_index);
    }
    merged
}

/// The log start afterwards.
async fn delete(
    broker: &Broker,
    topic: &Arc<Topic>,
    asked: &DeleteRecordsPartition,
) -> Result<i64, ErrorCode> {
    if topic.name().is_internal() {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    let slot =
        topic.partition(asked.partition_index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if !topic.settings().may_delete_records {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    let partition =
        broker.partitions().open(topic, &slot).await.map_err(|error| error_code::slot(&error))?;
    let high_watermark = partition.bounds().durable_end;
    let upto = match asked.offset {
        HIGH_WATERMARK => high_watermark,
        offset => Offset::from_wire(offset)
            .filter(|offset| *offset <= high_watermark)
            .ok_or(ErrorCode::OFFSET_OUT_OF_RANGE)?,
    };
    let id = partition.id();
    let deletion = async move { partition.delete_records_before(upto).await };
    let deleted = broker.to_the_end("delete records", deletion).await;
    deleted.and_then(|deleted| deleted).map(Offset::get).map_err(|error| {
        tracing::warn!(partition = %id, %error, "records were not deleted");
        error_code::storage(&error)
    })
}
