//! CreateTopics: v2–v7. v4 defaults for counts; v5 echoes the configuration; v7 topic ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_wire::create_topics::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, Request, Response,
};
use strandline_wire::{ErrorCode, topic_id_to_wire};

use super::{NAMED_TWICE, text};
use crate::topic::{CreateError, NewTopic, PARTITIONS_PER_REQUEST_MAX};
use crate::{Broker, error_code};

/// Creates each topic in a commit of its own: one that is refused holds up no other.
pub(crate) async fn handle(broker: &Arc<Broker>, request: Request) -> Response {
    let mut names = BTreeMap::new();
    for topic in &request.topics {
        *names.entry(topic.name.as_str().to_owned()).or_insert(0) += 1;
    }
    if asked_partitions(broker, &request) > PARTITIONS_PER_REQUEST_MAX {
        let refused = |topic| {
            refused(topic, ErrorCode::POLICY_VIOLATION, &CreateError::TooManyPartitions.to_string())
        };
        return Response {
            topics: request.topics.iter().map(refused).collect(),
            ..Response::default()
        };
    }
    let mut topics = Vec::with_capacity(names.len());
    for topic in &request.topics {
        match names.get(topic.name.as_str()) {
            Some(1) => topics.push(create(broker, topic, request.validate_only).await),
            // Answered once, as Kafka does.
            Some(_) => {
                names.remove(topic.name.as_str());
                topics.push(refused(topic, ErrorCode::INVALID_REQUEST, NAMED_TWICE));
            }
            None => {}
        }
    }
    Response { topics, ..Response::default() }
}

/// Partitions that the request asks for in all its topics, wrong counts left out.
fn asked_partitions(broker: &Broker, request: &Request) -> u64 {
    let default = u64::from(broker.settings().broker().num_partitions);
    let of = |topic: &CreatableTopic| match topic.num_partitions {
        _ if !topic.assignments.is_empty() => topic.assignments.len() as u64,
        -1 => default,
        count => u64::try_from(count).unwrap_or(0),
    };
    request.topics.iter().map(of).sum()
}

async fn create(
    broker: &Arc<Broker>,
    topic: &CreatableTopic,
    validate_only: bool,
) -> CreatableTopicResult {
    let new = to_domain(topic);
    let created = if validate_only {
        // As Kafka: the id that it would have had.
        broker
            .plan_topic(&new)
            .map(|plan| (plan.id(), plan.partition_count(), plan.configs().clone()))
    } else {
        broker.create_topic(&new).await.map(|topic| {
            let overrides = topic.settings().overrides.clone();
            (topic.id(), topic.partition_count(), overrides)
        })
    };
    match created {
        Ok((id, partition_count, overrides)) => CreatableTopicResult {
            name: topic.name.clone(),
            topic_id: topic_id_to_wire(id),
            num_partitions: i32::try_from(partition_count).unwrap_or(i32::MAX),
            replication_factor: 1,
            configs: Some(effective_configs(broker, overrides)),
            ..CreatableTopicResult::default()
        },
        Err(error) => {
            let code = error_code::create(&error);
            if let CreateError::Storage(error) = &error {
                tracing::warn!(topic = %new.name, %error, "topic was not created");
            }
            refused(topic, code, &error.to_string())
        }
    }
}

fn to_domain(topic: &CreatableTopic) -> NewTopic {
    NewTopic {
        name: topic.name.as_str().to_owned(),
        partition_count: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic
            .assignments
            .iter()
            .map(|assigned| (assigned.partition_index, assigned.broker_ids.clone()))
            .collect(),
        configs: topic
            .configs
            .iter()
            .map(|config| {
                let value = config.value.as_ref().map(|value| value.as_str().to_owned());
                (config.name.as_str().to_owned(), value)
            })
            .collect(),
    }
}

fn effective_configs(
    broker: &Arc<Broker>,
    overrides: BTreeMap<String, String>,
) -> Vec<CreatableTopicConfigs> {
    let described = broker.settings().describe_new_topic(&overrides);
    let config = |entry: strandline_model::config::Described| CreatableTopicConfigs {
        name: text(entry.name),
        value: entry.value.map(text),
        read_only: entry.is_read_only,
        config_source: entry.source.to_wire(),
        is_sensitive: entry.is_sensitive,
        ..CreatableTopicConfigs::default()
    };
    described.into_iter().map(config).collect()
}

fn refused(topic: &CreatableTopic, code: ErrorCode, message: &str) -> CreatableTopicResult {
    CreatableTopicResult {
        name: topic.name.clone(),
        error_code: code.get(),
        error_message: Some(text(message)),
        num_partitions: -1,
        replication_factor: -1,
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    }
}
