//! What reconciliation found last, for metrics, the console and people.

use strandline_model::{ByteCount, PartitionId, Timestamp};

use super::Reconciler;

/// What the last look at an engine found.
#[derive(Clone, Debug)]
pub struct EngineReconciliation {
    /// The engine's name.
    pub engine: String,
    /// When it was.
    pub checked_at: Timestamp,
    /// Logs of topics that exist.
    pub known_count: usize,
    /// Logs of deleted topics.
    pub pending_count: usize,
    /// What lies among the logs and is no part of any: it is left alone.
    pub foreign: Vec<String>,
    /// Logs that no topic knows.
    pub strangers: Vec<Stranger>,
    /// Partitions of which something is gone.
    pub missing: Vec<MissingPartition>,
    /// Partitions of which a part is gone, or can't be read: the rest is served.
    pub damaged: Vec<MissingPartition>,
    /// Partitions that could not be looked at, and why: nobody knows whether they are whole.
    pub unreadable: Vec<MissingPartition>,
}

/// A log that no topic knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Which one.
    pub id: PartitionId,
    /// Where it is.
    pub state: StrangerState,
}

/// What became of a log that no topic knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrangerState {
    /// It is set aside.
    Quarantined {
        /// Since when.
        since: Timestamp,
        /// How much there is.
        bytes: ByteCount,
        /// When it may go; `None`: never.
        purge_at: Option<Timestamp>,
    },
    /// It is where it was: the engine could not set it aside, or is not to.
    Left,
}

/// A partition of which something is gone, so that it is served to nobody, or in part; or one that can't
/// be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPartition {
    /// Which one.
    pub id: PartitionId,
    /// The name of its topic.
    pub topic: String,
    /// What is gone, or why nobody knows.
    pub what: String,
}

impl EngineReconciliation {
    /// Bytes in quarantine.
    pub fn quarantined_bytes(&self) -> ByteCount {
        let bytes = self.strangers.iter().map(|stranger| match stranger.state {
            StrangerState::Quarantined { bytes, .. } => bytes,
            StrangerState::Left => ByteCount::ZERO,
        });
        bytes.sum()
    }
}

impl Reconciler {
    /// What was found last of each engine; empty before the first look.
    ///
    /// Reads that failed since are told of with it: no look at names and sizes finds what they met.
    pub(crate) fn found(&self) -> Vec<EngineReconciliation> {
        let mut found: Vec<_> = self.found.lock().values().cloned().collect();
        for failure in self.parts.read_failures.all() {
            let Some(topic) = self.parts.registry.by_id(failure.id.topic_id) else { continue };
            let Some(of_engine) = found.iter_mut().find(|one| one.engine == topic.engine()) else {
                continue;
            };
            let told = of_engine.damaged.iter().chain(&of_engine.missing);
            if told.into_iter().any(|one| one.id == failure.id) {
                continue;
            }
            of_engine.damaged.push(MissingPartition {
                id: failure.id,
                topic: topic.name().to_string(),
                what: failure.what,
            });
        }
        found
    }
}
