//! HTTP beside the broker: health for whoever restarts it, metrics for whoever watches it, and what
//! Kafka's protocol has no words for.
//!
//! The console asks a [`Status`] and knows nothing of how the broker, its engines or its listeners
//! work: the command line puts the two together. Names of metrics and their meaning live here, in
//! one place; what is counted lives where it happens.
//!
//! # Invariants
//! - Connections, the size of their requests and the time that they take are bounded, whatever a
//!   peer does. (`serve.rs`)
//! - A request body is never read.
//! - What changes something is served under [`Scope::Everything`] only, which is loopback, and not to
//!   pages of other sites. (`same_origin.rs`)
//! - With [`Scope::HealthOnly`] nothing but health is served: whoever may reach the port learns
//!   whether the broker is well and no name of a topic.

mod clients;
mod deletions;
mod groups;
mod health;
mod metrics;
mod process;
mod reconciliation;
mod retention;
mod same_origin;
mod serve;
mod snapshot;

pub use clients::Client;
pub use deletions::{Deletion, DeletionChange, DeletionChanged, DeletionRefused};
pub use groups::{FoundGroup, Group, LastRebalance};
pub use reconciliation::{MissingPartition, Reconciliation, Stranger};
pub use retention::{Estimate, PartitionRetention, Segment, TopicRetention};
pub use serve::{Console, Scope};
pub use snapshot::{
    ApiStats, BUCKET_BOUNDS_SECONDS, CompactionStats, DeletionStats, Durations, ErrorCount,
    FigureKind, ListenerStats, PartitionStats, RemovedStats, Snapshot, StorageFigure, StorageStats,
    TopicStats,
};

use std::future::Future;
use std::pin::Pin;

/// What the console tells of.
pub trait Status: std::fmt::Debug + Send + Sync + 'static {
    /// Whether the process is able to do anything. Failing one asks for a restart, so a failed
    /// engine or a full disk does not belong here.
    fn liveness(&self) -> Vec<Check>;

    /// Whether the broker should be sent work: listeners bound, recovery done, engine writable,
    /// disk above its floor, not draining.
    fn readiness(&self) -> Vec<Check>;

    /// Everything that is counted and measured, now.
    fn snapshot(&self) -> Snapshot;

    /// Who is connected, the stranded first.
    fn clients(&self) -> Vec<Client>;

    /// A group, as its coordinator knows it.
    fn group<'a>(&'a self, name: &'a str) -> FoundGroup<'a>;

    /// What each storage engine holds beside what metadata says, as of the last look.
    fn reconciliation(&self) -> Vec<Reconciliation>;

    /// What retention finds of a topic, as if `simulated` (keys and values) were set on it; `None`
    /// when there is none of that name, an error in words when they can't be set.
    fn retention(
        &self,
        topic: &str,
        simulated: &[(String, String)],
    ) -> Result<Option<TopicRetention>, String>;

    /// Deleted topics whose bytes are not all gone, the oldest first.
    fn deletions(&self) -> Vec<Deletion>;

    /// Does what is asked; durable when it is answered, whether or not whoever asked still waits.
    fn change_deletion(&self, change: DeletionChange) -> Changing<'_>;
}

/// The answer to a change, when it is there.
pub type Changing<'a> =
    Pin<Box<dyn Future<Output = Result<DeletionChanged, DeletionRefused>> + Send + 'a>>;

/// One thing that must be true for the broker to be well.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// What people ask for it by: `recovery`, `disk`.
    pub name: &'static str,
    /// Whether it is true.
    pub ok: bool,
    /// How it is, in a few words.
    pub detail: String,
}
