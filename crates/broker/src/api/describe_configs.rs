//! DescribeConfigs: v1–v4. v3 types and documentation.

use std::collections::BTreeSet;

use strandline_model::config::{ConfigSource, ConfigType, Described};
use strandline_model::{InvalidTopicName, TopicName};
use strandline_wire::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult,
    DescribeConfigsSynonym, Request, Response,
};
use strandline_wire::{ErrorCode, KafkaString};

use super::{config_resource, text};
use crate::configs::{ConfigResource, Owner};
use crate::settings::describe_subscription;
use crate::{Broker, LogLevel};

/// Describes each resource.
pub(crate) fn handle(broker: &Broker, request: &Request) -> Response {
    // A resource that is named again is not described again: a small request would be answered with
    // gigabytes.
    let mut named = BTreeSet::new();
    let resources = request
        .resources
        .iter()
        .filter(|resource| named.insert((resource.resource_type, resource.resource_name.as_str())));
    let results = resources.map(|resource| match describe(broker, resource) {
        Ok(described) => DescribeConfigsResult {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs: select(resource, described)
                .map(|entry| {
                    to_wire(entry, request.include_synonyms, request.include_documentation)
                })
                .collect(),
            // As Kafka: empty, not null.
            error_message: Some(KafkaString::default()),
            ..DescribeConfigsResult::default()
        },
        Err((code, message)) => DescribeConfigsResult {
            error_code: code.get(),
            error_message: Some(text(message)),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            ..DescribeConfigsResult::default()
        },
    });
    Response { results: results.collect(), ..Response::default() }
}

fn describe(
    broker: &Broker,
    resource: &DescribeConfigsResource,
) -> Result<Vec<Described>, (ErrorCode, String)> {
    let invalid = |message: String| Err((ErrorCode::INVALID_REQUEST, message));
    match config_resource(resource.resource_type, &resource.resource_name) {
        ConfigResource::Topic(name) => {
            TopicName::new(&name).map_err(|error: InvalidTopicName| {
                (ErrorCode::INVALID_TOPIC_EXCEPTION, error.to_string())
            })?;
            let topic = broker.registry().by_name(&name).ok_or_else(|| {
                (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("topic {name} does not exist"))
            })?;
            Ok(broker.settings().describe_topic_as_made(
                &topic.settings().overrides,
                topic.engine(),
                topic.name().is_internal(),
            ))
        }
        ConfigResource::Broker(name) if name.is_empty() => {
            Ok(broker.settings().describe_dynamic_defaults())
        }
        ConfigResource::Broker(name) => {
            check_broker(broker, &name, " or empty string,")?;
            Ok(broker.settings().describe_broker())
        }
        ConfigResource::BrokerLogger(name) if name.is_empty() => {
            invalid("Broker id must not be empty".to_owned())
        }
        ConfigResource::BrokerLogger(name) => {
            check_broker(broker, &name, "")?;
            Ok(broker.loggers().described().into_iter().map(describe_logger).collect())
        }
        ConfigResource::ClientMetrics(name) if name.is_empty() => {
            invalid("Client metrics subscription name must not be empty".to_owned())
        }
        ConfigResource::ClientMetrics(name) => {
            Ok(describe_subscription(&broker.configs().of(&Owner::ClientMetrics(name))))
        }
        ConfigResource::Group(name) if name.is_empty() => {
            invalid("Group name must not be empty".to_owned())
        }
        ConfigResource::Group(name) => {
            Ok(broker.settings().describe_group(&broker.configs().of(&Owner::Group(name))))
        }
        ConfigResource::Unknown(number, _) => {
            invalid(format!("resource type {number} can't be described here"))
        }
    }
}

/// One spelling of this broker's id only, so that it can't be named twice under two.
fn check_broker(broker: &Broker, name: &str, or: &str) -> Result<(), (ErrorCode, String)> {
    let id = broker.node_id();
    if name == id.to_string() {
        return Ok(());
    }
    let message = match name.parse::<i32>() {
        Ok(_) => format!("Unexpected broker id, expected {id}{or} but received {name}"),
        Err(_) => format!("Broker id must be an integer, but it is: {name}"),
    };
    Err((ErrorCode::INVALID_REQUEST, message))
}

/// What has no type.
const UNKNOWN_TYPE: i8 = 0;

/// A logger with the level that counts for it.
fn describe_logger((name, level): (&'static str, LogLevel)) -> Described {
    Described {
        name,
        value: Some(level.name().to_owned()),
        is_read_only: false,
        source: ConfigSource::DynamicBrokerLogger,
        is_sensitive: false,
        synonyms: Vec::new(),
        kind: ConfigType::String,
        documentation: "",
    }
}

/// The entries that the client asked for; all when it named none.
fn select(
    resource: &DescribeConfigsResource,
    described: Vec<Described>,
) -> impl Iterator<Item = Described> {
    let wanted: Option<BTreeSet<String>> = resource
        .configuration_keys
        .as_ref()
        .filter(|keys| !keys.is_empty())
        .map(|keys| keys.iter().map(|key| key.as_str().to_owned()).collect());
    described
        .into_iter()
        .filter(move |entry| wanted.as_ref().is_none_or(|wanted| wanted.contains(entry.name)))
}

fn to_wire(
    entry: Described,
    with_synonyms: bool,
    with_documentation: bool,
) -> DescribeConfigsResourceResult {
    let synonym = |synonym: strandline_model::config::Synonym| DescribeConfigsSynonym {
        name: text(synonym.name),
        value: synonym.value.map(text),
        source: synonym.source.to_wire(),
        ..DescribeConfigsSynonym::default()
    };
    // As Kafka: loggers have no type, and no documentation whether it is asked for or not.
    let is_logger = matches!(entry.source, ConfigSource::DynamicBrokerLogger);
    DescribeConfigsResourceResult {
        name: text(entry.name),
        value: entry.value.map(text),
        read_only: entry.is_read_only,
        config_source: entry.source.to_wire(),
        is_sensitive: entry.is_sensitive,
        synonyms: if with_synonyms {
            entry.synonyms.into_iter().map(synonym).collect()
        } else {
            Vec::new()
        },
        config_type: if is_logger { UNKNOWN_TYPE } else { entry.kind.to_wire() },
        documentation: (with_documentation || is_logger).then(|| text(entry.documentation)),
        ..DescribeConfigsResourceResult::default()
    }
}
