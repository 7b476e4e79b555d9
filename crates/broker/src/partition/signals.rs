//! Who waits for a partition to change, and how the engine wakes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use strandline_model::{Offset, PartitionId};
use strandline_storage::{LogListener, StorageError};
use tokio::sync::Notify;

/// The waiters of one partition. Outlives each open log of it.
///
/// A waiter registers first and looks at the partition afterwards; whoever changes the partition
/// changes it first and wakes afterwards. So no change falls between looking and waiting.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// By address: a waiter that came back from another partition's change is still here.
    waiters: Mutex<HashMap<usize, Arc<Notify>>>,
    /// The topic was deleted: its log ends, and nothing has failed.
    deleted: AtomicBool,
}

impl Signals {
    /// Wakes `waiter` at the next change, once. One waiter may register with many partitions.
    pub(crate) fn register(&self, waiter: &Arc<Notify>) {
        self.waiters.lock().insert(address(waiter), Arc::clone(waiter));
    }

    /// Forgets `waiter`, which was answered or went away.
    pub(crate) fn unregister(&self, waiter: &Arc<Notify>) {
        self.waiters.lock().remove(&address(waiter));
    }

    /// Wakes everybody: the topic was deleted.
    pub(crate) fn delete(&self) {
        self.deleted.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes everybody.
    pub(crate) fn wake(&self) {
        let mut waiters = self.waiters.lock();
        if waiters.is_empty() {
            return;
        }
        let waiters = std::mem::take(&mut *waiters);
        for waiter in waiters.into_values() {
            waiter.notify_one();
        }
    }
}

/// Unique while the map holds the waiter.
fn address(waiter: &Arc<Notify>) -> usize {
    Arc::as_ptr(waiter).addr()
}

/// What one opened log tells of itself.
#[derive(Debug)]
pub(crate) struct Listener {
    id: PartitionId,
    signals: Arc<Signals>,
    dead: AtomicBool,
}

impl Listener {
    pub(super) const fn new(id: PartitionId, signals: Arc<Signals>) -> Self {
        Self { id, signals, dead: AtomicBool::new(false) }
    }

    /// Wakes whoever waits for the partition to change.
    pub(super) fn wake(&self) {
        self.signals.wake();
    }

    /// Whether the log has failed and must be opened anew.
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }
}

impl LogListener for Listener {
    fn durable_end_moved(&self, _end: Offset) {
        self.signals.wake();
    }

    fn died(&self, error: &StorageError) {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        if self.signals.deleted.load(Ordering::Acquire) {
            tracing::debug!(partition = %self.id, %error, "log of a deleted topic was closed");
        } else {
            tracing::warn!(partition = %self.id, %error, cause, "log failed and will be opened anew");
        }
        self.dead.store(true, Ordering::Release);
        self.signals.wake();
    }
}
