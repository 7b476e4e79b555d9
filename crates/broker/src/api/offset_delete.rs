//! OffsetDelete: v0 (KIP-496).

use std::sync::Arc;

use strandline_coordination::group::{DeleteOffsetsRequest, DeleteOutcome, DeleteTopic};
use strandline_wire::offset_delete::{
    OffsetDeleteRequestTopic, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic, Request,
    Response,
};
use strandline_wire::{ErrorCode, KafkaString};

use super::by_topic::ByTopic;
use super::shared;
use crate::{Broker, error_code};

/// Forgets positions in topics that no member reads.
pub(crate) async fn handle(broker: &Broker, request: Request) -> Response {
    let mut answer = Answer::default();
    let found =
        request.topics.into_iter().filter_map(|topic| to_domain(broker, topic, &mut answer));
    let (names, topics): (Vec<KafkaString>, Vec<DeleteTopic>) = found.unzip();
    let indexes: Vec<Vec<i32>> = topics.iter().map(|topic| topic.partitions.clone()).collect();
    let delete = DeleteOffsetsRequest { group: shared(&request.group_id), topics };
    let outcomes = match broker.groups().delete_offsets(delete).await {
        Ok(Ok(outcomes)) => outcomes,
        Ok(Err(error)) => return failed(error_code::group(error)),
        Err(unavailable) => return failed(error_code::unavailable(unavailable)),
    };
    for ((name, indexes), outcome) in names.into_iter().zip(indexes).zip(outcomes) {
        let code = match outcome {
            DeleteOutcome::Deleted => ErrorCode::NONE,
            DeleteOutcome::Subscribed => ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC,
        };
        for index in indexes {
            add(&mut answer, &name, index, code);
        }
    }
    Response { topics: answer.into_topics(), ..Response::default() }
}

/// The partitions of `topic` that exist; the others are answered at once.
fn to_domain(
    broker: &Broker,
    topic: OffsetDeleteRequestTopic,
    answer: &mut Answer,
) -> Option<(KafkaString, DeleteTopic)> {
    let found = broker.registry().by_name(topic.name.as_str());
    let mut partitions = Vec::with_capacity(topic.partitions.len());
    for partition in &topic.partitions {
        let index = partition.partition_index;
        if found.as_ref().is_some_and(|found| found.partition(index).is_some()) {
            partitions.push(index);
        } else {
            add(answer, &topic.name, index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
    }
    let found = found.filter(|_| !partitions.is_empty())?;
    let name = Arc::from(found.name().as_str());
    Some((topic.name, DeleteTopic { topic_id: found.id(), name, partitions }))
}

fn failed(code: ErrorCode) -> Response {
    Response { error_code: code.get(), ..Response::default() }
}

/// The answer as it grows; a topic comes once.
type Answer = ByTopic<KafkaString, OffsetDeleteResponseTopic>;

fn add(answer: &mut Answer, name: &KafkaString, partition_index: i32, code: ErrorCode) {
    let partition = OffsetDeleteResponsePartition {
        partition_index,
        error_code: code.get(),
        ..OffsetDeleteResponsePartition::default()
    };
    let new =
        || OffsetDeleteResponseTopic { name: name.clone(), ..OffsetDeleteResponseTopic::default() };
    answer.topic(name.clone(), new).partitions.push(partition);
}
