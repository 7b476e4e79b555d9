//! What is told of the pending deletions.

use std::collections::BTreeMap;
use std::time::Duration;

use strandline_model::{ByteCount, Timestamp, TopicId};
use strandline_partition::deletion::{Hold, State};

use super::{Entry, Purger};
use crate::Broker;

/// A pending deletion at one moment.
#[derive(Clone, Debug)]
pub struct DeletionStatus {
    /// The topic's identity.
    pub id: TopicId,
    /// What it was called.
    pub topic: String,
    /// The engine that keeps its bytes.
    pub engine: String,
    /// How many partitions it has.
    pub partition_count: u32,
    /// Those that may have something left.
    pub partitions_left: u32,
    /// How it stands: one of [`deletion_states`].
    pub state: &'static str,
    /// When it was deleted.
    pub deleted_at: Timestamp,
    /// What the client calls itself that deleted it; empty when that is not known.
    pub client_id: String,
    /// The address of that client; empty when it is not known.
    pub address: String,
    /// When the grace ends, or ended.
    pub grace_until: Timestamp,
    /// Whether the topic can be brought back.
    pub can_undelete: bool,
    /// Bytes of its batches when it was deleted.
    pub bytes: ByteCount,
    /// Bytes that were freed so far.
    pub freed: ByteCount,
    /// Steps that failed since one did not.
    pub failures: u32,
    /// The last failure since the broker started.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_at: Option<Timestamp>,
    /// When the next step comes, as far as time decides it.
    pub next_step_at: Option<Timestamp>,
}

/// How a pending deletion may stand: codes, each with what it means.
pub fn deletion_states() -> impl Iterator<Item = (&'static str, &'static str)> {
    State::ALL.into_iter().map(|state| (state.code(), state.meaning()))
}

/// What waits in one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionSum {
    /// Deleted topics.
    pub topics: u64,
    /// Bytes that they still have.
    pub bytes: u64,
}

/// What waits in all states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletionSums {
    /// By the code of the state; every state is there.
    pub by_state: BTreeMap<&'static str, DeletionSum>,
    /// For how long the oldest has been deleted.
    pub oldest: Option<Duration>,
}

impl DeletionStatus {
    /// Bytes that are not freed.
    pub fn left(&self) -> ByteCount {
        self.bytes.saturating_sub(self.freed)
    }
}

impl Purger {
    fn statuses(&self) -> Vec<DeletionStatus> {
        let entries: Vec<Entry> = self.list.lock().entries.values().cloned().collect();
        entries.iter().map(|entry| self.status(entry)).collect()
    }

    fn status(&self, entry: &Entry) -> DeletionStatus {
        let (wall, now) = (self.parts.environment.now(), self.parts.environment.monotonic());
        let all = Hold::paused_if(self.parts.settings.broker().deletion_paused);
        let Entry { row, turn, left, last_failure, .. } = entry;
        let state = entry.state(now, all);
        DeletionStatus {
            id: row.topic_id,
            topic: row.topic.name.to_string(),
            engine: row.topic.engine.clone(),
            partition_count: row.topic.partition_count,
            partitions_left: left.partition_count(),
            state: state.code(),
            deleted_at: row.deleted_at,
            client_id: row.by.client_id.clone(),
            address: row.by.address.clone(),
            grace_until: row.not_before,
            can_undelete: !row.has_begun,
            bytes: row.bytes,
            freed: row.freed,
            failures: turn.failures,
            last_error: last_failure.as_ref().map(|failure| failure.message.clone()),
            last_error_at: last_failure.as_ref().map(|failure| failure.at),
            next_step_at: match state {
                State::Grace | State::BackingOff => Some(wall.plus_millis(wait_ms(turn.due, now))),
                State::Queued | State::Running | State::Paused => None,
            },
        }
    }
}

impl Broker {
    /// Every pending deletion, the oldest first.
    pub fn deletions(&self) -> Vec<DeletionStatus> {
        let mut all = self.purger().statuses();
        all.sort_by_key(|one| (one.deleted_at, one.id));
        all
    }

    /// The pending deletion of a topic.
    pub fn deletion(&self, id: TopicId) -> Option<DeletionStatus> {
        let entry = self.purger().entry(id)?;
        Some(self.purger().status(&entry))
    }

    /// How much waits in each state.
    pub fn deletion_sums(&self) -> DeletionSums {
        let mut sums: BTreeMap<&'static str, DeletionSum> =
            State::ALL.into_iter().map(|state| (state.code(), DeletionSum::default())).collect();
        let mut oldest_at = None;
        for one in self.purger().statuses() {
            let sum = sums.entry(one.state).or_default();
            sum.topics += 1;
            sum.bytes += one.left().get();
            oldest_at = oldest_at.into_iter().chain([one.deleted_at]).min();
        }
        let age = oldest_at.map(|at| self.environment().now().millis_since(at));
        let oldest = age.map(|age| Duration::from_millis(u64::try_from(age).unwrap_or(0)));
        DeletionSums { by_state: sums, oldest }
    }
}

fn wait_ms(due: Duration, now: Duration) -> i64 {
    i64::try_from(due.saturating_sub(now).as_millis()).unwrap_or(i64::MAX)
}
