//! DescribeProducers: v0 (KIP-664). The producers that a partition remembers.

use std::sync::Arc;

use strandline_wire::ErrorCode;
use strandline_wire::describe_producers::{
    PartitionResponse, ProducerState, Request, Response, TopicResponse,
};

use super::text;
use crate::topic::Topic;
use crate::{Broker, error_code};

/// What stands for "none" in an answer: there are no transactions.
const NONE: i64 = -1;

/// Describes each partition's producers.
pub(crate) async fn handle(broker: &Arc<Broker>, request: &Request) -> Response {
    let mut topics = Vec::with_capacity(request.topics.len());
    for asked in &request.topics {
        let topic = broker.registry().by_name(asked.name.as_str());
        let mut partitions = Vec::with_capacity(asked.partition_indexes.len());
        for &partition_index in &asked.partition_indexes {
            partitions.push(match describe(broker, topic.as_ref(), partition_index).await {
                Ok(active_producers) => PartitionResponse {
                    partition_index,
                    active_producers,
                    ..PartitionResponse::default()
                },
                Err(error) => PartitionResponse {
                    partition_index,
                    error_code: error.get(),
                    error_message: error.info().map(|info| text(info.meaning)),
                    ..PartitionResponse::default()
                },
            });
        }
        topics.push(TopicResponse {
            name: asked.name.clone(),
            partitions,
            ..TopicResponse::default()
        });
    }
    Response { topics, ..Response::default() }
}

async fn describe(
    broker: &Broker,
    topic: Option<&Arc<Topic>>,
    index: i32,
) -> Result<Vec<ProducerState>, ErrorCode> {
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let topic = topic.ok_or(unknown)?;
    let slot = topic.partition(index).ok_or(unknown)?;
    let opened = broker.partitions().open(topic, &slot).await;
    let partition = opened.map_err(|error| error_code::slot(&error))?;
    let producers = partition.producers().into_iter().map(|producer| ProducerState {
        producer_id: producer.id.get(),
        producer_epoch: i32::from(producer.epoch.get()),
        last_sequence: producer.last_sequence.map_or(-1, strandline_model::Sequence::get),
        last_timestamp: producer.last_seen.as_millis(),
        coordinator_epoch: -1,
        current_txn_start_offset: NONE,
        ..ProducerState::default()
    });
    Ok(producers.collect())
}
