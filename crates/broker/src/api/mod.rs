//! One file per Kafka API. A handler translates: wire to domain, domain to wire, and nothing else.

pub(crate) mod api_versions;
pub(crate) mod create_partitions;
pub(crate) mod create_topics;
pub(crate) mod delete_groups;
pub(crate) mod delete_topics;
pub(crate) mod describe_cluster;
pub(crate) mod describe_configs;
pub(crate) mod describe_groups;
pub(crate) mod describe_topic_partitions;
pub(crate) mod fetch;
pub(crate) mod find_coordinator;
pub(crate) mod heartbeat;
pub(crate) mod init_producer_id;
pub(crate) mod join_group;
pub(crate) mod leave_group;
pub(crate) mod list_groups;
pub(crate) mod list_offsets;
pub(crate) mod metadata;
pub(crate) mod offset_commit;
pub(crate) mod offset_delete;
pub(crate) mod offset_fetch;
pub(crate) mod offset_for_leader_epoch;
pub(crate) mod produce;
pub(crate) mod sync_group;

use std::net::IpAddr;
use std::sync::Arc;

use strandline_wire::{KafkaString, TopicRef};

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

/// "Not asked for" in an authorized-operations field.
pub(crate) const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

/// How a topic was named, as one value for lookups.
pub(crate) fn name_of(topic: &TopicRef) -> Option<&str> {
    match topic {
        TopicRef::Name(name) => Some(name.as_str()),
        TopicRef::Id(_) => None,
    }
}
