//! Kafka's wire protocol: frames, messages, error codes, and the one table of what is served.
//!
//! Bytes in, structures out, and back. The messages of most APIs are those of a generated codec,
//! behind one trait ([`Message`]); what carries records is written here, because records must not be
//! copied: a [`produce::Request`] hands each batch over as a writable slice of its frame, and a
//! [`fetch::Response`] is encoded around records that lie elsewhere, in a file perhaps.
//!
//! This crate knows no topics, logs or connections. It reads no clock and does no I/O.
//!
//! # Invariants
//! - Bytes from a peer never panic here, and nothing is allocated on the word of a length field.
//! - What is served, in which versions, stands in one table ([`served`]) and nowhere else.
//!
//! ```
//! use strandline_wire::{ApiKey, ErrorCode, Lookup, lookup};
//!
//! let Lookup::Served(api) = lookup(3, 12) else { panic!("Metadata 12 is served") };
//! assert_eq!(api.key(), ApiKey::Metadata);
//! assert!(api.is_flexible());
//! assert_eq!(lookup(3, 99), Lookup::UnsupportedVersion(ApiKey::Metadata));
//! assert!(ErrorCode::NOT_LEADER_OR_FOLLOWER.is_retriable());
//! ```

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod api;
mod error;
mod error_code;
pub mod fetch;
mod frame;
mod message;
pub mod produce;
mod reader;
mod topic;
mod writer;

pub use api::{Api, ApiKey, Lookup, ServedApi, api_name, lookup, served};
pub use error::{DecodeError, EncodeError};
pub use error_code::{ErrorCode, ErrorInfo};
pub use frame::{
    Arrival, Foreign, FrameError, FrameLimits, RequestHeader, next_request, read_response,
    response_correlation_id, write_request, write_response,
};
pub use kacrab_protocol::{KafkaString, KafkaUuid};
pub use message::{
    Message, Request, alter_client_quotas, alter_configs, alter_partition_reassignments,
    alter_replica_log_dirs, api_versions, consumer_group_describe, create_partitions,
    create_topics, delete_groups, delete_records, delete_topics, describe_client_quotas,
    describe_cluster, describe_configs, describe_groups, describe_log_dirs, describe_producers,
    describe_quorum, describe_topic_partitions, elect_leaders, find_coordinator, heartbeat,
    incremental_alter_configs, init_producer_id, join_group, leave_group, list_config_resources,
    list_groups, list_offsets, list_partition_reassignments, metadata, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, sync_group, unregister_broker,
    update_features,
};
pub use topic::{Leader, NodeEndpoint, TopicRef, topic_id_from_wire, topic_id_to_wire};
