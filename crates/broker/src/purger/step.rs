//! One step of a deletion: a bounded piece of its bytes, or its end.

use std::sync::Arc;

use futures_util::future::join_all;
use strandline_model::{ByteCount, PartitionId, PartitionIndex, TopicId};
use strandline_partition::deletion::{Reserved, STEP_LOGS_MAX, logs_of_step};
use strandline_storage::{
    CommitError, ErrorKind, LogStore, MetaBatch, Removal, StorageError, Table,
};
use tokio_util::sync::CancellationToken;

use super::{Entry, Failure, Purger};
use crate::drive::Unavailable;
use crate::topic::DeletionRow;

/// Partitions that are not known to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// Of those before `next`, at most as many as one step takes.
    begun: Vec<Begun>,
    next: u32,
    count: u32,
}

/// A partition of which a step has removed something, or tried to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    index: u32,
    /// Its bytes, as far as they are known.
    bytes: Option<u64>,
}

/// What a step came to.
#[derive(Debug)]
enum Outcome {
    /// More of the same deletion is left.
    More,
    /// The deletion is done, or the topic was brought back before it began.
    Gone,
}

impl Left {
    /// All partitions of a topic.
    pub(super) const fn all(count: u32) -> Self {
        Self { begun: Vec::new(), next: 0, count }
    }

    /// How many partitions may have something left.
    pub(super) fn partition_count(&self) -> u32 {
        let begun = u32::try_from(self.begun.len()).unwrap_or(u32::MAX);
        (self.count - self.next).saturating_add(begun)
    }

    /// Begins with further ones. `bytes_of` says how large one is.
    fn take(&mut self, bytes_of: impl Fn(u32) -> Option<u64>) {
        while self.begun.len() < STEP_LOGS_MAX && self.next < self.count {
            self.begun.push(Begun { index: self.next, bytes: bytes_of(self.next) });
            self.next += 1;
        }
    }
}

impl Purger {
    /// One step, from its beginning to what is known afterwards.
    pub(super) async fn take_step(
        self: Arc<Self>,
        id: TopicId,
        reserved: Reserved,
        stop: CancellationToken,
    ) {
        let mut ending =
            Ending { purger: &self, id, reserved, freed: ByteCount::ZERO, failed: true };
        let outcome = self.step(id, reserved.budget, &mut ending.freed).await;
        ending.failed = outcome.is_err();
        let Err(error) = outcome else { return };
        let at = self.parts.environment.now();
        // The engine may be closed already.
        if !stop.is_cancelled() {
            self.parts.metrics.deletion_failures.add(1);
            let topic = self.entry(id).map(|entry| entry.row.topic.name);
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(?topic, %id, %error, cause, "removal failed, will try again");
        }
        let failure = Failure { at, message: in_words(&error) };
        self.update(id, |entry| entry.last_failure = Some(failure));
    }

    async fn step(
        &self,
        id: TopicId,
        budget: ByteCount,
        freed: &mut ByteCount,
    ) -> Result<Outcome, StorageError> {
        let Some(Entry { row, mut left, .. }) = self.entry(id) else { return Ok(Outcome::Gone) };
        // First: what has no engine here is not begun, and can be taken back.
        let store = self.parts.engines.store(&row.topic.engine)?;
        let Some(row) = self.begin_removal(id).await? else { return Ok(Outcome::Gone) };
        left.take(|index| stored_bytes(store.as_ref(), partition(id, index)));
        if left.begun.is_empty() {
            return self.finish(&row).await;
        }
        let removed = remove_some(store.as_ref(), id, &mut left, budget).await;
        *freed = removed.freed;
        self.update(id, |entry| entry.left = left);
        self.parts.metrics.deletion_freed_bytes.add(freed.get());
        // What is freed is told before what failed, and kept: a restart goes on counting.
        if *freed > ByteCount::ZERO {
            let freed = *freed;
            self.amend(id, |row| {
                let freed = (row.freed + freed).min(row.bytes);
                Some(DeletionRow { freed, ..row.clone() })
            })
            .await?;
        }
        removed.failed.map_or(Ok(Outcome::More), Err)
    }

    /// Makes it durable that there is no way back. `None`: the topic was brought back before.
    async fn begin_removal(&self, id: TopicId) -> Result<Option<DeletionRow>, StorageError> {
        let begun = |row: &DeletionRow| {
            (!row.has_begun).then(|| DeletionRow { has_begun: true, ..row.clone() })
        };
        self.amend(id, begun).await
    }

    /// Nothing is left of the logs: what else knows the topic forgets it, and the row goes.
    async fn finish(&self, row: &DeletionRow) -> Result<Outcome, StorageError> {
        // How far groups have read goes with what they read.
        self.parts.groups.forget_topic(row.topic_id).await.map_err(|Unavailable| {
            StorageError::new(ErrorKind::Unavailable, "groups can't forget the topic now")
        })?;
        let permit = self.changing.acquire().await.expect("the semaphore is never closed");
        let batch = MetaBatch::new().delete(Table::Deletions, row.key());
        match self.parts.meta.commit(batch).await {
            Ok(()) => {}
            Err(CommitError::Storage(error)) => return Err(error),
            Err(CommitError::Unexpected { .. }) => {
                panic!("a commit without expectations can't miss one")
            }
        }
        self.list.lock().entries.remove(&row.topic_id);
        drop(permit);
        tracing::info!(topic = %row.topic.name, id = %row.topic_id, "deleted topic's bytes are gone");
        Ok(Outcome::Gone)
    }
}

/// What a step removed, and why not more.
struct Removed {
    freed: ByteCount,
    failed: Option<StorageError>,
}

/// Removes a piece of each partition that is begun, at most `at_a_time` of them.
async fn remove_some(
    store: &dyn LogStore,
    id: TopicId,
    left: &mut Left,
    budget: ByteCount,
) -> Removed {
    // Those that come again do so behind the others: one that fails is in nobody's way.
    let mut still = left.begun.split_off(logs_of_step(budget).min(left.begun.len()));
    let share = ByteCount::new(budget.get() / left.begun.len().max(1) as u64);
    let removals = left.begun.iter().map(|one| store.remove_some(partition(id, one.index), share));
    // All have ended before the first failure counts: none is cut short.
    let removals = join_all(removals).await;
    let mut removed = Removed { freed: ByteCount::ZERO, failed: None };
    for (one, removal) in left.begun.iter().zip(removals) {
        let bytes = match removal {
            Ok(Removal::Done) => 0,
            Ok(Removal::Remaining(bytes)) => {
                still.push(Begun { bytes: Some(bytes.get()), ..*one });
                bytes.get()
            }
            Err(error) => {
                still.push(*one);
                removed.failed.get_or_insert(error);
                continue;
            }
        };
        // Of one that an earlier run began with it is not known how much was there.
        let before = one.bytes.unwrap_or(bytes);
        removed.freed += ByteCount::new(before.saturating_sub(bytes));
    }
    left.begun = still;
    removed
}

fn partition(id: TopicId, index: u32) -> PartitionId {
    PartitionId::new(id, PartitionIndex::new(index))
}

/// Bytes of a log that nobody has begun to remove, as far as memory knows.
pub(crate) fn stored_bytes(store: &dyn LogStore, id: PartitionId) -> Option<u64> {
    let stored = store.stored(id)?;
    Some(stored.chunks.iter().map(|chunk| chunk.bytes).sum::<ByteCount>().get())
}

/// An error with what caused it.
fn in_words(error: &StorageError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Ends a step for the list, even one that panicked: as a failure then.
struct Ending<'a> {
    purger: &'a Purger,
    id: TopicId,
    reserved: Reserved,
    freed: ByteCount,
    failed: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let now = self.purger.parts.environment.monotonic();
        let mut list = self.purger.list.lock();
        let mut took = std::time::Duration::ZERO;
        if let Some(entry) = list.entries.get_mut(&self.id) {
            took = now.saturating_sub(entry.turn.step_began.unwrap_or(now));
            if self.failed {
                entry.turn.fail_step(now);
            } else {
                entry.turn.end_step(now);
            }
        }
        list.pace.settle(now, self.reserved, self.freed, took);
        drop(list);
        self.purger.changed.notify_one();
    }
}
