//! CreatePartitions: v0–v3. The count is the new total.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_wire::ErrorCode;
use strandline_wire::create_partitions::{
    CreatePartitionsTopic, CreatePartitionsTopicResult, Request, Response,
};

use super::{NAMED_TWICE, text};
use crate::topic::{CreatePartitionsError, PARTITIONS_PER_REQUEST_MAX};
use crate::{Broker, error_code};

/// Grows each topic in a commit of its own.
pub(crate) async fn handle(broker: &Arc<Broker>, request: Request) -> Response {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for topic in &request.topics {
        *times.entry(topic.name.as_str().to_owned()).or_default() += 1;
    }
    if added_partitions(broker, &request) > PARTITIONS_PER_REQUEST_MAX {
        let error = CreatePartitionsError::TooManyPartitions;
        let code = error_code::create_partitions(&error);
        let refused = |topic| answer(topic, code, Some(&error.to_string()));
        let results = request.topics.iter().map(refused).collect();
        return Response { results, ..Response::default() };
    }
    let mut results = Vec::with_capacity(times.len());
    for topic in &request.topics {
        match times.get(topic.name.as_str()) {
            Some(1) => results.push(match grow(broker, topic, request.validate_only).await {
                Ok(()) => answer(topic, ErrorCode::NONE, None),
                // As Kafka: without a message.
                Err(error @ CreatePartitionsError::UnknownTopic) => {
                    answer(topic, error_code::create_partitions(&error), None)
                }
                Err(error) => {
                    let code = error_code::create_partitions(&error);
                    answer(topic, code, Some(&error.to_string()))
                }
            }),
            Some(_) => {
                times.remove(topic.name.as_str());
                results.push(answer(topic, ErrorCode::INVALID_REQUEST, Some(NAMED_TWICE)));
            }
            None => {}
        }
    }
    Response { results, ..Response::default() }
}

/// Partitions that the request adds in all its topics.
fn added_partitions(broker: &Broker, request: &Request) -> u64 {
    let added = |topic: &CreatePartitionsTopic| {
        let have = broker.registry().by_name(topic.name.as_str())?.partition_count();
        u32::try_from(topic.count).ok()?.checked_sub(have).map(u64::from)
    };
    request.topics.iter().filter_map(added).sum()
}

async fn grow(
    broker: &Arc<Broker>,
    asked: &CreatePartitionsTopic,
    validate_only: bool,
) -> Result<(), CreatePartitionsError> {
    let topic = broker
        .registry()
        .by_name(asked.name.as_str())
        .ok_or(CreatePartitionsError::UnknownTopic)?;
    let assignments: Option<Vec<Vec<i32>>> = asked
        .assignments
        .as_ref()
        .map(|all| all.iter().map(|assigned| assigned.broker_ids.clone()).collect());
    let assignments = assignments.as_deref();
    let total =
        broker.registry().plan_partitions(&topic, asked.count, assignments, broker.node_id())?;
    if validate_only {
        return Ok(());
    }
    broker.grow_topic(&topic, total).await
}

fn answer(
    topic: &CreatePartitionsTopic,
    code: ErrorCode,
    message: Option<&str>,
) -> CreatePartitionsTopicResult {
    CreatePartitionsTopicResult {
        name: topic.name.clone(),
        error_code: code.get(),
        error_message: message.map(text),
        ..CreatePartitionsTopicResult::default()
    }
}
