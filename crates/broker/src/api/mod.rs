//! One file per Kafka API. A handler translates: wire to domain, domain to wire, and nothing else.

pub(crate) mod alter_client_quotas;
pub(crate) mod alter_configs;
pub(crate) mod alter_partition_reassignments;
pub(crate) mod alter_replica_log_dirs;
pub(crate) mod api_versions;
mod by_topic;
pub(crate) mod create_partitions;
pub(crate) mod create_topics;
pub(crate) mod delete_groups;
pub(crate) mod delete_records;
pub(crate) mod delete_topics;
pub(crate) mod describe_client_quotas;
pub(crate) mod describe_cluster;
pub(crate) mod describe_configs;
pub(crate) mod describe_groups;
pub(crate) mod describe_log_dirs;
pub(crate) mod describe_producers;
pub(crate) mod describe_quorum;
pub(crate) mod describe_topic_partitions;
pub(crate) mod elect_leaders;
pub(crate) mod fetch;
pub(crate) mod find_coordinator;
pub(crate) mod heartbeat;
pub(crate) mod incremental_alter_configs;
pub(crate) mod init_producer_id;
pub(crate) mod join_group;
pub(crate) mod leave_group;
pub(crate) mod list_config_resources;
pub(crate) mod list_groups;
pub(crate) mod list_offsets;
pub(crate) mod list_partition_reassignments;
pub(crate) mod metadata;
pub(crate) mod offset_commit;
pub(crate) mod offset_delete;
pub(crate) mod offset_fetch;
pub(crate) mod offset_for_leader_epoch;
pub(crate) mod produce;
pub(crate) mod sync_group;
pub(crate) mod unregister_broker;
pub(crate) mod update_features;

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashSet;
use strandline_wire::{ErrorCode, KafkaString, TopicRef};

use crate::configs::ConfigResource;

/// Who asks, as far as a group remembers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    /// The client's name of itself; empty when it gives none.
    pub(crate) client_id: &'a str,
    /// The client's address.
    pub(crate) host: IpAddr,
}

/// A wire text as the domain keeps it: on its own, not as a part of the frame that it came in.
pub(crate) fn shared(text: &KafkaString) -> Arc<str> {
    Arc::from(text.as_str())
}

/// A wire text. Ours are all shorter than the wire's limit.
pub(crate) fn text(text: impl Into<String>) -> KafkaString {
    KafkaString::from(text.into())
}

/// Whether a reader names a level that there is: all records (0) or those of no open or aborted
/// transaction (1). Kafka fails on any other with [`ErrorCode::UNKNOWN_SERVER_ERROR`].
///
/// [`ErrorCode::UNKNOWN_SERVER_ERROR`]: strandline_wire::ErrorCode::UNKNOWN_SERVER_ERROR
pub(crate) const fn is_isolation_level(level: i8) -> bool {
    matches!(level, 0 | 1)
}

/// Kafka's words for a topic that does not exist, where it is named.
pub(crate) const UNKNOWN_TOPIC: &str = "This server does not host this topic-partition.";
/// Kafka's words for a topic that a request names more than once.
pub(crate) const NAMED_TWICE: &str = "Duplicate topic name.";

/// "Not asked for" in an authorized-operations field.
pub(crate) const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

/// Kafka's numbers of what has configuration.
pub(crate) const TOPIC_RESOURCE: i8 = 2;
pub(crate) const BROKER_RESOURCE: i8 = 4;
pub(crate) const BROKER_LOGGER_RESOURCE: i8 = 8;
pub(crate) const CLIENT_METRICS_RESOURCE: i8 = 16;
pub(crate) const GROUP_RESOURCE: i8 = 32;

/// What a request means by a resource's type and name.
pub(crate) fn config_resource(kind: i8, name: &KafkaString) -> ConfigResource {
    let name = name.as_str().to_owned();
    match kind {
        TOPIC_RESOURCE => ConfigResource::Topic(name),
        BROKER_RESOURCE => ConfigResource::Broker(name),
        BROKER_LOGGER_RESOURCE => ConfigResource::BrokerLogger(name),
        CLIENT_METRICS_RESOURCE => ConfigResource::ClientMetrics(name),
        GROUP_RESOURCE => ConfigResource::Group(name),
        other => ConfigResource::Unknown(other, name),
    }
}

/// What is named more than once.
pub(crate) fn repeated<T: Eq + Hash + Clone>(named: impl Iterator<Item = T>) -> HashSet<T> {
    let mut seen = HashSet::new();
    named.filter(|name| !seen.insert(name.clone())).collect()
}

/// A refusal on the wire: its code, and why.
pub(crate) type Refusal = (ErrorCode, String);

/// The answer for a resource whose configuration is changed twice in one request.
pub(crate) fn altered_twice<T>() -> Result<T, Refusal> {
    Err((ErrorCode::INVALID_REQUEST, "Each resource must appear at most once.".to_owned()))
}

/// The answer for a resource of which one key is changed twice.
pub(crate) fn key_altered_twice<T>() -> Result<T, Refusal> {
    Err((ErrorCode::INVALID_REQUEST, "Error due to duplicate config keys".to_owned()))
}

/// Refuses keys that lack the value that they need.
pub(crate) fn refuse_nulls<'a>(keys: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let keys: Vec<&str> = keys.collect();
    if keys.is_empty() {
        return Ok(());
    }
    let message = format!("Null value not supported for : {}", keys.join(", "));
    Err((ErrorCode::INVALID_REQUEST, message))
}

/// Code and message of an answer.
pub(crate) fn code_and_message(result: Result<(), Refusal>) -> (i16, Option<KafkaString>) {
    match result {
        Ok(()) => (ErrorCode::NONE.get(), None),
        Err((code, message)) => (code.get(), Some(text(message))),
    }
}

/// How a topic was named, as one value for lookups.
pub(crate) fn name_of(topic: &TopicRef) -> Option<&str> {
    match topic {
        TopicRef::Name(name) => Some(name.as_str()),
        TopicRef::Id(_) => None,
    }
}
