//! Removes the bytes of deleted topics: the list of pending deletions, worked off in small steps.
//!
//! The list is in the metadata store; what is here is a copy of it and the next times to try. Each
//! step is bounded, may run twice and resumes anywhere: after a crash the list is read again and
//! the work goes on.
//!
//! # Invariants
//! - A deletion's row goes last, when every partition's removal is durably done and no group keeps a
//!   position in the topic.
//! - A deletion that fails is tried for ever, with growing pauses, and never holds up the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use strandline_model::{ByteCount, PartitionId, PartitionIndex, Timestamp};
use strandline_storage::{
    CommitError, ErrorKind, MetaBatch, MetaStore, Removal, StorageError, Table,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::drive::Unavailable;
use crate::engines::Engines;
use crate::environment::Environment;
use crate::group::GroupCoordinator;
use crate::topic::{DeletionRow, LoadError};

/// Bytes that one step removes: larger ones stall other writers of the same disk.
const STEP: ByteCount = ByteCount::mib(16);
/// Partitions that one step removes something of. An engine that makes removals durable together does
/// so for that many at once.
const STEP_PARTITIONS: usize = 64;
/// Pause after the first failure; doubled with each further one.
const BACKOFF_MS_MIN: i64 = 1_000;
/// The longest pause.
const BACKOFF_MS_MAX: i64 = 60_000;
/// Rows read at a time.
const SCAN_ROWS: usize = 1_000;

/// Works off the pending deletions.
#[derive(Debug)]
pub(crate) struct Purger {
    meta: Arc<dyn MetaStore>,
    engines: Engines,
    environment: Arc<dyn Environment>,
    groups: Arc<GroupCoordinator>,
    pending: Mutex<BTreeMap<Bytes, Pending>>,
    changed: Notify,
}

/// A deletion under way.
#[derive(Clone, Debug)]
struct Pending {
    row: DeletionRow,
    left: Left,
    /// Not before this.
    due: Timestamp,
    failures: u32,
}

/// Partitions that are not known to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Left {
    /// Of those before `next`, at most as many as one step takes.
    begun: Vec<u32>,
    next: u32,
    count: u32,
}

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// More of the same deletion is left: these partitions.
    More(Left),
    /// The deletion is done and its row is gone.
    Done,
}

impl Purger {
    /// Reads the list.
    pub(crate) async fn load(
        meta: Arc<dyn MetaStore>,
        engines: Engines,
        environment: Arc<dyn Environment>,
        groups: Arc<GroupCoordinator>,
    ) -> Result<Self, LoadError> {
        let mut pending = BTreeMap::new();
        let mut after = None;
        loop {
            let page = meta.scan(Table::Deletions, after, SCAN_ROWS).await?;
            for row in &page.rows {
                let deletion =
                    DeletionRow::decode(&row.key, row.value.clone()).map_err(|error| {
                        LoadError::Row { table: Table::Deletions, key: row.key.clone(), error }
                    })?;
                pending.insert(row.key.clone(), Pending::new(deletion));
            }
            after = page.rows.last().map(|row| row.key.clone());
            if !page.more {
                let pending = Mutex::new(pending);
                let changed = Notify::new();
                return Ok(Self { meta, engines, environment, groups, pending, changed });
            }
        }
    }

    /// Takes a deletion that was just committed.
    pub(crate) fn add(&self, row: DeletionRow) {
        self.pending.lock().insert(row.key(), Pending::new(row));
        self.changed.notify_one();
    }

    /// How many deletions wait or are under way.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending.lock().len()
    }

    /// Works until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let now = self.environment.now();
            let wait = match self.tick(now).await {
                None => Duration::from_millis(1),
                Some(next) => next,
            };
            tokio::select! {
                () = self.environment.sleep(wait) => {}
                () = self.changed.notified() => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// One bounded step of the deletion that is due first. Says how long to wait for the next;
    /// `None` when something is due now.
    pub(crate) async fn tick(&self, now: Timestamp) -> Option<Duration> {
        let Some((key, pending)) = self.first_due() else { return Some(Duration::from_hours(1)) };
        let wait_ms = pending.due.millis_since(now);
        if wait_ms > 0 {
            return Some(Duration::from_millis(wait_ms.unsigned_abs()));
        }
        match self.step(&key, &pending).await {
            Ok(Step::Done) => {
                self.pending.lock().remove(&key);
                let DeletionRow { topic_id, topic, .. } = pending.row;
                tracing::info!(topic = %topic.name, id = %topic_id, "deleted topic's bytes are gone");
            }
            Ok(Step::More(left)) => self.change(&key, |pending| {
                pending.left = left;
                pending.failures = 0;
                // Behind the others that are due, so that each gets its turn.
                pending.due = now;
            }),
            Err(error) => {
                let topic = &pending.row.topic.name;
                tracing::warn!(%topic, id = %pending.row.topic_id, %error, "removal failed, will try again");
                self.change(&key, |pending| pending.back_off(now));
            }
        }
        None
    }

    fn first_due(&self) -> Option<(Bytes, Pending)> {
        let pending = self.pending.lock();
        let first = pending.iter().min_by_key(|(_, pending)| pending.due);
        first.map(|(key, pending)| (key.clone(), pending.clone()))
    }

    fn change(&self, key: &Bytes, change: impl FnOnce(&mut Pending)) {
        if let Some(pending) = self.pending.lock().get_mut(key) {
            change(pending);
        }
    }

    async fn step(&self, key: &Bytes, pending: &Pending) -> Result<Step, StorageError> {
        let DeletionRow { topic_id, topic, .. } = &pending.row;
        let mut left = pending.left.clone();
        left.take(STEP_PARTITIONS);
        if !left.begun.is_empty() {
            let store = self.engines.store(&topic.engine)?;
            let budget = ByteCount::new(STEP.get() / left.begun.len() as u64);
            let removals = left.begun.iter().map(|index| {
                store.remove_some(PartitionId::new(*topic_id, PartitionIndex::new(*index)), budget)
            });
            // All have ended before the first failure counts: none is cut short.
            let removals = join_all(removals).await;
            let removals = removals.into_iter().collect::<Result<Vec<_>, _>>()?;
            let mut removals = removals.into_iter();
            left.begun.retain(|_| removals.next() != Some(Removal::Done));
            return Ok(Step::More(left));
        }
        // How far groups have read goes with what they read.
        self.groups.forget_topic(*topic_id).await.map_err(|Unavailable| {
            StorageError::new(ErrorKind::Unavailable, "groups can't forget the topic now")
        })?;
        let batch = MetaBatch::new().delete(Table::Deletions, key.clone());
        match self.meta.commit(batch).await {
            Ok(()) => Ok(Step::Done),
            Err(CommitError::Storage(error)) => Err(error),
            Err(CommitError::Unexpected { .. }) => {
                panic!("a commit without expectations can't miss one")
            }
        }
    }
}

impl Left {
    /// Begins with further ones until `max` are begun.
    fn take(&mut self, max: usize) {
        while self.begun.len() < max && self.next < self.count {
            self.begun.push(self.next);
            self.next += 1;
        }
    }
}

impl Pending {
    fn new(row: DeletionRow) -> Self {
        let due = row.not_before;
        let left = Left { begun: Vec::new(), next: 0, count: row.topic.partition_count };
        Self { row, left, due, failures: 0 }
    }

    fn back_off(&mut self, now: Timestamp) {
        let pause = BACKOFF_MS_MIN.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MS_MAX);
        self.failures = self.failures.saturating_add(1);
        self.due = now.plus_millis(pause);
    }
}
