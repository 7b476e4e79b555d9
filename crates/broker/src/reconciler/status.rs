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
    /// Logs that no topic knows.
    pub strangers: Vec<Stranger>,
    /// Partitions of which something is gone.
    pub missing: Vec<MissingPartition>,
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

/// A partition that is served to nobody, since something of it is gone; or one that can't be looked at.
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
    pub(crate) fn found(&self) -> Vec<EngineReconciliation> {
        self.found.lock().values().cloned().collect()
    }
}
