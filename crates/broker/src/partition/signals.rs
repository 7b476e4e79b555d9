//! Who waits for a partition to change, and how the engine wakes them.

use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::Offset;
use strandline_storage::{LogListener, StorageError};
use tokio::sync::Notify;

/// The waiters of one partition. Outlives each open log of it.
///
/// A waiter registers first and looks at the partition afterwards; whoever changes the partition
/// changes it first and wakes afterwards. So no change falls between looking and waiting.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    waiters: Mutex<Vec<Arc<Notify>>>,
}

impl Signals {
    /// Wakes `waiter` at the next change, once. One waiter may register with many partitions.
    pub(crate) fn register(&self, waiter: &Arc<Notify>) {
        let mut waiters = self.waiters.lock();
        // A waiter that came back from another partition's change is still registered here.
        if !waiters.iter().any(|known| Arc::ptr_eq(known, waiter)) {
            waiters.push(Arc::clone(waiter));
        }
    }

    /// Forgets `waiter`, which was answered or went away.
    pub(crate) fn unregister(&self, waiter: &Arc<Notify>) {
        self.waiters.lock().retain(|known| !Arc::ptr_eq(known, waiter));
    }

    /// Wakes everybody.
    pub(crate) fn wake(&self) {
        let waiters = std::mem::take(&mut *self.waiters.lock());
        for waiter in waiters {
            waiter.notify_one();
        }
    }
}

impl LogListener for Signals {
    fn durable_end_moved(&self, _end: Offset) {
        self.wake();
    }

    fn died(&self, _error: &StorageError) {
        self.wake();
    }
}
