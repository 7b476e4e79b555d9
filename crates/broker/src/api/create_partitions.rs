//! CreatePartitions: v0–v3. The count is the new total.

use std::collections::BTreeMap;

use strandline_wire::ErrorCode;
use strandline_wire::create_partitions::{
    CreatePartitionsTopic, CreatePartitionsTopicResult, Request, Response,
};

use super::text;
use crate::topic::{CreatePartitionsError, Registry};
use crate::{Broker, error_code};

/// Grows each topic in a commit of its own.
pub(crate) async fn handle(broker: &Broker, request: Request) -> Response {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for topic in &request.topics {
        *times.entry(topic.name.as_str().to_owned()).or_default() += 1;
    }
    let mut results = Vec::with_capacity(times.len());
    for topic in &request.topics {
        match times.get(topic.name.as_str()) {
            Some(1) => results.push(match grow(broker, topic, request.validate_only).await {
                Ok(()) => answer(topic, ErrorCode::NONE, None),
                Err(error) => {
                    let code = error_code::create_partitions(&error);
                    answer(topic, code, Some(&error.to_string()))
                }
            }),
            Some(_) => {
                times.remove(topic.name.as_str());
                results.push(answer(
                    topic,
                    ErrorCode::INVALID_REQUEST,
                    Some("topic is named twice"),
                ));
            }
            None => {}
        }
    }
    Response { results, ..Response::default() }
}

async fn grow(
    broker: &Broker,
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
    let total = Registry::plan_partitions(&topic, asked.count, assignments, broker.node_id())?;
    if validate_only {
        return Ok(());
    }
    broker.registry().grow_topic(&topic, total).await
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
