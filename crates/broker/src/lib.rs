//! The broker: Kafka's APIs over storage traits.
//!
//! One file per API in [`api`](self) that only translates; behind them topics, partitions and
//! fetches as domain code; the machines of `strandline_coordination` and their drivers; the
//! background tasks. The broker sees storage through its traits and never knows which engine is
//! behind them, and it sees connections only as frames in and replies out.
//!
//! # Invariants
//! - No reply overtakes the durability of what it reveals.
//! - Every error code is chosen in `error_code.rs`.
//! - No lock is held across an `.await`.

mod advertise;
mod api;
mod broker;
mod cleaner;
mod clients;
mod codes;
mod configs;
mod connection;
mod counter;
mod deadline;
mod drive;
mod engines;
mod environment;
mod error_code;
mod features;
mod fetch;
mod group;
mod idle;
mod loggers;
mod lookup;
mod metrics;
mod partition;
mod partitions;
mod producer_ids;
mod purger;
mod reconciler;
mod reply;
mod row_codec;
mod settings;
mod status;
mod tasks;
mod topic;

pub use advertise::{Endpoint, endpoint_for};
pub use broker::{Broker, BrokerParts, StartError};
pub use cleaner::{
    CompactionStatus, PartitionRetention, SegmentRetention, TopicRetention, retention_reasons,
};
pub use clients::ClientStatus;
pub use connection::{Connection, Disconnect, Peer, PendingReply, Started};
pub use counter::first_memory_offset;
pub use engines::{Engines, Strangers};
pub use environment::Environment;
pub use group::COORDINATORS;
pub use loggers::{LogLevel, Loggers, NoLoggers};
pub use metrics::{
    ApiMetrics, BUCKET_BOUNDS_MICROS, CodeCounters, Counter, Metrics, RebalanceCounters,
    TopicMetrics,
};
pub use purger::{
    DeletionAction, DeletionError, DeletionStatus, DeletionSum, DeletionSums, deletion_states,
};
pub use reconciler::{
    EngineReconciliation, Look, Metadata, MissingPartition, Stranger, StrangerState, has_metadata,
};
pub use reply::Reply;
pub use row_codec::RowError;
pub use status::{GroupStatus, PartitionStatus, TopicStatus};
pub use strandline_coordination::group::{Rebalance, RebalanceMember};
pub use strandline_partition::deletion::Hold;
pub use topic::{AdoptError, Adoption, LoadError, UndeleteError, adopt};
