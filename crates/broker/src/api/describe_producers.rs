//! DescribeProducers: v0 (KIP-664). The producers that a partition remembers.

use std::sync::Arc;

use hashbrown::HashSet;
use strandline_model::TopicName;
use strandline_wire::ErrorCode;
use strandline_wire::describe_producers::{
    PartitionResponse, ProducerState, Request, Response, TopicResponse,
};

use super::{UNKNOWN_TOPIC, text};
use crate::topic::Topic;
use crate::{Broker, error_code};

/// What stands for "none" in an answer: there are no transactions.
const NONE: i64 = -1;

/// Describes each partition's producers.
pub(crate) async fn handle(broker: &Arc<Broker>, request: &Request) -> Response {
    let mut topics = Vec::new();
    // A partition that is named again is not described again: a small request would be answered with
    // gigabytes.
    let mut named = HashSet::new();
    for asked in &request.topics {
        let topic = find(broker, asked.name.as_str());
        let mut partitions = Vec::new();
        for &partition_index in &asked.partition_indexes {
            if !named.insert((asked.name.as_str(), partition_index)) {
                continue;
            }
            let described = match &topic {
                Ok(topic) => describe(broker, topic, partition_index).await,
                Err(refusal) => Err(refusal.clone()),
            };
            partitions.push(match described {
                Ok(active_producers) => PartitionResponse {
                    partition_index,
                    active_producers,
                    ..PartitionResponse::default()
                },
                Err((code, message)) => PartitionResponse {
                    partition_index,
                    error_code: code.get(),
                    error_message: message.map(text),
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

/// Code and, where Kafka has one, message of a refusal.
type Refused = (ErrorCode, Option<String>);

fn find(broker: &Broker, name: &str) -> Result<Arc<Topic>, Refused> {
    let name = TopicName::new(name)
        .map_err(|error| (ErrorCode::INVALID_TOPIC_EXCEPTION, Some(error.to_string())))?;
    let found = broker.registry().by_name(name.as_str());
    found.ok_or_else(|| (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Some(UNKNOWN_TOPIC.to_owned())))
}

async fn describe(
    broker: &Broker,
    topic: &Arc<Topic>,
    index: i32,
) -> Result<Vec<ProducerState>, Refused> {
    let slot = topic.partition(index).ok_or((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, None))?;
    let opened = broker.partitions().open(topic, &slot).await;
    let partition = opened.map_err(|error| {
        let code = error_code::slot(&error);
        (code, code.info().map(|info| info.meaning.to_owned()))
    })?;
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
