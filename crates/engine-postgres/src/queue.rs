//! What waits for a lane, in the order in which it was decided on.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset};
use strandline_records::SealedBatches;
use strandline_storage::{AppendError, Compacted, Completion, StorageError};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::error::closed;
use crate::facts::Facts;
use crate::lane::Gather;
use crate::state::{Log, Placement};

/// Bytes of appends that are committed together; a larger append goes alone.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// Appends that are committed together.
const GROUP_APPENDS_MAX: usize = 1024;

/// Batches on their way into a log.
#[derive(Debug)]
pub(crate) struct PendingAppend {
    pub(crate) log: Arc<Log>,
    pub(crate) opening: u64,
    pub(crate) batches: SealedBatches,
    pub(crate) placement: Placement,
    pub(crate) completion: Completion,
}

/// A change of a log by its owner.
#[derive(Debug)]
pub(crate) struct PendingChange {
    pub(crate) log: Arc<Log>,
    pub(crate) opening: u64,
    pub(crate) change: Change,
    pub(crate) done: oneshot::Sender<Result<(), StorageError>>,
}

/// What changes. Each may be carried out twice.
#[derive(Debug)]
pub(crate) enum Change {
    /// The growing chunk, as it is, grows no more.
    Seal(Facts),
    /// The log begins later; chunks go.
    Trim {
        /// Where it begins.
        log_start: Offset,
        /// The numbers of the chunks that lie wholly below.
        dropped: Vec<i64>,
    },
    /// A state is kept.
    SaveState {
        /// As of where.
        at: Offset,
        /// What.
        state: Bytes,
    },
    /// How far the log is compacted is kept.
    NoteCompacted(Compacted),
    /// A chunk begins that nobody reads yet.
    BeginChunk(i64),
    /// It takes the place of others; without facts these go without replacement.
    Replace {
        /// Its number.
        number: i64,
        /// What is in it.
        facts: Option<Facts>,
        /// The numbers of those that go.
        replaced: Vec<i64>,
    },
}

/// What a lane does next.
#[derive(Debug)]
pub(crate) enum Work {
    /// Appends that are committed together.
    Appends(Vec<PendingAppend>),
    /// One change.
    Change(PendingChange),
    /// Everything before is done.
    Barrier(oneshot::Sender<()>),
    /// A mistake.
    #[cfg(feature = "testkit")]
    Panic,
}

#[derive(Debug)]
enum Item {
    Append(PendingAppend),
    Change(PendingChange),
    Barrier(oneshot::Sender<()>),
    #[cfg(feature = "testkit")]
    Panic,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    has_room: Notify,
    appends_max: usize,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct Waiting {
    items: VecDeque<Item>,
    appends: usize,
    bytes: u64,
    is_closed: bool,
}

impl Queue {
    pub(crate) fn new(appends_max: usize, bytes_max: ByteCount) -> Self {
        Self {
            waiting: Mutex::default(),
            arrived: Notify::new(),
            has_room: Notify::new(),
            appends_max,
            bytes_max: bytes_max.get(),
        }
    }

    /// Takes the room for an append of `size`, which must be [pushed](Self::push_append) then.
    pub(crate) fn reserve(&self, size: ByteCount) -> Result<(), AppendError> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return Err(AppendError::Refused(closed()));
        }
        if self.is_full(&waiting, size.get()) {
            return Err(AppendError::Busy);
        }
        waiting.appends += 1;
        waiting.bytes += size.get();
        Ok(())
    }

    fn is_full(&self, waiting: &Waiting, size: u64) -> bool {
        waiting.appends >= self.appends_max
            || waiting.appends > 0 && waiting.bytes + size > self.bytes_max
    }

    /// Queues an append for which there is room.
    pub(crate) fn push_append(&self, append: PendingAppend) {
        self.waiting.lock().items.push_back(Item::Append(append));
        self.arrived.notify_one();
    }

    pub(crate) fn push_change(&self, change: PendingChange) -> Result<(), StorageError> {
        self.push(Item::Change(change))
    }

    fn push(&self, item: Item) -> Result<(), StorageError> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return Err(closed());
        }
        waiting.items.push_back(item);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits until everything that was queued before is done.
    pub(crate) async fn barrier(&self) -> Result<(), StorageError> {
        let (done, reached) = oneshot::channel();
        self.push(Item::Barrier(done))?;
        reached.await.map_err(|_| closed())
    }

    #[cfg(feature = "testkit")]
    pub(crate) fn push_panic(&self) {
        drop(self.push(Item::Panic));
    }

    /// Appends that wait, and their bytes.
    pub(crate) fn waiting(&self) -> (u64, u64) {
        let waiting = self.waiting.lock();
        (waiting.appends as u64, waiting.bytes)
    }

    /// Resolves when an append is worth trying again.
    pub(crate) async fn ready(&self) {
        loop {
            let changed = self.has_room.notified();
            let is_ready = {
                let waiting = self.waiting.lock();
                waiting.is_closed || !self.is_full(&waiting, 0)
            };
            if is_ready {
                return;
            }
            changed.await;
        }
    }

    /// Nothing more is taken; what waits is done before the lane ends.
    pub(crate) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.arrived.notify_one();
        self.has_room.notify_waiters();
    }

    /// What comes next, as soon as `gather` waits for nothing more; `None` when nothing ever will. For
    /// the lane alone.
    pub(crate) async fn next(&self, gather: &mut Gather) -> Option<Work> {
        loop {
            let arrived = self.arrived.notified();
            let until = {
                let mut waiting = self.waiting.lock();
                let there = waiting.may_gather().then_some(waiting.items.len());
                let until = there.and_then(|there| gather.waits(there, Instant::now()));
                if until.is_none()
                    && let Some(work) = waiting.take()
                {
                    drop(waiting);
                    self.has_room.notify_waiters();
                    return Some(work);
                }
                if waiting.is_closed && waiting.appends == 0 {
                    return None;
                }
                until
            };
            match until {
                None => arrived.await,
                // Looks again, whichever it was.
                Some(until) => drop(tokio::time::timeout_at(until, arrived).await),
            }
        }
    }

    /// How many appends wait.
    pub(crate) fn appends(&self) -> usize {
        self.waiting.lock().appends
    }
}

impl Waiting {
    /// Whether there are appends, nobody waits for anything else, and there is room for more.
    fn may_gather(&self) -> bool {
        !self.is_closed
            && !self.items.is_empty()
            && self.items.len() < GROUP_APPENDS_MAX
            && self.bytes < GROUP_BYTES_MAX as u64
            && self.items.iter().all(|item| matches!(item, Item::Append(_)))
    }

    fn take(&mut self) -> Option<Work> {
        let mut group = Vec::new();
        let mut bytes = 0;
        while let Some(Item::Append(append)) = self.items.front() {
            let size = append.batches.bytes().len();
            let is_whole = bytes + size > GROUP_BYTES_MAX || group.len() == GROUP_APPENDS_MAX;
            if !group.is_empty() && is_whole {
                break;
            }
            let Some(Item::Append(append)) = self.items.pop_front() else { break };
            bytes += size;
            self.appends -= 1;
            self.bytes -= size as u64;
            group.push(append);
        }
        if !group.is_empty() {
            return Some(Work::Appends(group));
        }
        match self.items.pop_front()? {
            Item::Change(change) => Some(Work::Change(change)),
            Item::Barrier(done) => Some(Work::Barrier(done)),
            #[cfg(feature = "testkit")]
            Item::Panic => Some(Work::Panic),
            Item::Append(append) => Some(Work::Appends(vec![append])),
        }
    }
}
