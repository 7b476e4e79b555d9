//! What waits for the commit thread.
//!
//! One lock, held for a push or a swap. The thread is signalled only when it sleeps: while it is busy
//! it looks by itself when it is done, and a wake-up across cores costs more than the append.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use strandline_model::{Offset, PartitionId};
use strandline_records::SealedBatches;
use strandline_storage::{AppendError, CommitError, Completion, Expectation, StorageError, Ticket};
use tokio::sync::{Notify, oneshot};

use crate::checkpoint::{Checkpoints, Frozen, Outcome};
use crate::journal::group::APPEND_OVERHEAD_BYTES;
use crate::live::LiveLog;
use crate::segment::Rewritten;
use crate::tables::TableNumber;

/// Something to be committed, in order.
#[derive(Debug)]
pub(crate) enum Item {
    Append(PendingAppend),
    Change(PendingChange),
    /// Closes the active segment.
    Roll {
        log: Arc<LiveLog>,
        done: Completion,
    },
    /// Ends a handle whose fate is set, and brings what is known of its log into the rows.
    Retire {
        log: Arc<LiveLog>,
        error: Option<StorageError>,
        done: Completion,
    },
    /// Brings what is known of a log into the rows, whose handle its opener let go of, and forgets it.
    Release(Arc<LiveLog>),
    /// Everything queued before is done.
    Barrier(Completion),
}

#[derive(Debug)]
pub(crate) struct PendingAppend {
    pub(crate) log: Arc<LiveLog>,
    pub(crate) batches: SealedBatches,
    pub(crate) completion: Completion,
}

/// A change of rows, of the metadata store or of the engine.
#[derive(Debug)]
pub(crate) struct PendingChange {
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) changes: Vec<RowChange>,
    pub(crate) wait: Wait,
    /// The log whose owner asks for it.
    pub(crate) log: Option<Arc<LiveLog>>,
    /// Where that log begins from then on.
    pub(crate) trim: Option<Offset>,
    /// Segments of it that another one takes the place of; taken out when that has happened.
    pub(crate) rewritten: Option<Arc<Mutex<Option<Rewritten>>>>,
    pub(crate) done: oneshot::Sender<Result<(), CommitError>>,
}

/// What a change waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Write,
    Sync,
}

/// A row that is put, or deleted when there is no value.
#[derive(Clone, Debug)]
pub(crate) struct RowChange {
    pub(crate) table: TableNumber,
    pub(crate) key: Bytes,
    pub(crate) value: Option<Bytes>,
}

/// What the checkpoint thread asks of the commit thread. Goes before everything else.
#[derive(Debug)]
pub(crate) enum Control {
    /// Take the state between two groups.
    Freeze(StopMark, std::sync::mpsc::SyncSender<Frozen>),
    /// A segment of this log could not be synced: end its handle.
    Break(PartitionId, StorageError, std::sync::mpsc::SyncSender<Result<(), StorageError>>),
    /// The checkpoint ended.
    Finish(Outcome),
}

/// Whether a checkpoint marks a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopMark {
    Running,
    Clean,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    work: Condvar,
    /// Somebody may have room again.
    room: Notify,
    bounds: Bounds,
}

/// Bounds of the queue and of the journal, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// What may wait.
    pub(crate) waiting: u64,
    /// How much of the journal appends may use.
    pub(crate) data: u64,
    /// How much of it rows of the metadata store may use.
    pub(crate) rows: u64,
}

#[derive(Debug)]
struct State {
    items: VecDeque<Item>,
    /// Journal bytes that the items will take, about.
    bytes: u64,
    /// The same of those that the commit thread has taken and not done yet.
    taken_bytes: u64,
    controls: VecDeque<Control>,
    /// Journal bytes that are in use.
    live_bytes: u64,
    /// The commit thread sleeps.
    parked: bool,
    /// Somebody was refused since room was last announced.
    refused: bool,
    /// Why nothing is taken any more.
    closed: Option<StorageError>,
    stopping: bool,
    /// The commit thread is gone.
    is_abandoned: bool,
}

/// What the commit thread finds when it looks.
pub(crate) enum Found {
    Control(Control),
    /// New items were put behind the given ones, or there were some.
    Items,
    /// Nothing came until the deadline.
    Nothing,
    /// Everything is done and nothing will come.
    Stop,
}

impl Queue {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let state = State {
            items: VecDeque::new(),
            bytes: 0,
            taken_bytes: 0,
            controls: VecDeque::new(),
            live_bytes: 0,
            parked: false,
            refused: false,
            closed: None,
            stopping: false,
            is_abandoned: false,
        };
        let (state, work, room) = (Mutex::new(state), Condvar::new(), Notify::new());
        Self { state, work, room, bounds }
    }

    /// Queues an append behind all others of its log, if the log ends `at`.
    pub(crate) fn submit(
        &self,
        log: &Arc<LiveLog>,
        at: Offset,
        batches: SealedBatches,
    ) -> Result<Ticket, AppendError> {
        let cost = batches.size().get() + APPEND_OVERHEAD_BYTES;
        let mut state = self.state.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone().into());
        }
        // The death of a log is set under this lock too: nothing is queued behind it.
        log.check_alive()?;
        let written_end = log.written_end();
        if at != written_end {
            return Err(AppendError::Moved { written_end });
        }
        assert_eq!(batches.base_offset(), at, "batches are sealed with the offset they go to");
        if !state.has_room(cost, self.bounds) {
            state.refused = true;
            return Err(AppendError::Busy);
        }
        log.set_written_end(batches.next_offset());
        let (completion, ticket) = Ticket::pair();
        let log = Arc::clone(log);
        state.push(Item::Append(PendingAppend { log, batches, completion }), cost);
        self.wake(state);
        Ok(ticket)
    }

    /// Queues anything but an append. What the owner of a log asks for is refused once he is none.
    pub(crate) fn push(&self, item: Item) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        if let Some(log) = item.owned_by() {
            log.check_alive()?;
        }
        let cost = item.cost();
        state.push(item, cost);
        self.wake(state);
        Ok(())
    }

    /// Waits until rows of the metadata store may be queued.
    pub(crate) async fn rows_room(&self, checkpoints: &Checkpoints) {
        let has_room = |state: &State| {
            state.live_bytes + state.taken_bytes < self.bounds.rows
                && state.bytes < self.bounds.waiting
        };
        while !self.wait_until(checkpoints, has_room).await {}
    }

    /// Waits until an append that was refused is worth trying again.
    pub(crate) async fn data_room(&self, checkpoints: &Checkpoints) {
        let has_room = |state: &State| state.bytes == 0 && state.live_bytes <= self.bounds.data / 2;
        self.wait_until(checkpoints, has_room).await;
    }

    /// Journal bytes that are in use.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.state.lock().live_bytes
    }

    /// Waits, unless there is room, until room is announced. True when there was room at once.
    async fn wait_until(
        &self,
        checkpoints: &Checkpoints,
        has_room: impl Fn(&State) -> bool,
    ) -> bool {
        let announced = self.room.notified();
        let mut announced = std::pin::pin!(announced);
        announced.as_mut().enable();
        let needs_checkpoint = {
            let mut state = self.state.lock();
            if state.closed.is_some() || has_room(&state) {
                return true;
            }
            state.refused = true;
            state.live_bytes > self.bounds.data / 2
        };
        // Here, not only when an append is refused: the checkpoint that was asked for then may have
        // ended, or failed, before this wait began, and nobody else may come to ask for the next.
        if needs_checkpoint {
            checkpoints.request();
        }
        announced.await;
        false
    }

    pub(crate) fn control(&self, control: Control) {
        let mut state = self.state.lock();
        if state.is_abandoned {
            drop(state);
            drop(control);
            return;
        }
        state.controls.push_back(control);
        self.wake(state);
    }

    /// Refuses everything from now on with `error`; the ticket resolves when all that is queued is done.
    /// `None` when it was closed before.
    pub(crate) fn close_behind(&self, error: StorageError) -> Option<Ticket> {
        let mut state = self.state.lock();
        if state.closed.is_some() {
            return None;
        }
        state.closed = Some(error);
        let (completion, ticket) = Ticket::pair();
        state.push(Item::Barrier(completion), 0);
        self.wake(state);
        self.room.notify_waiters();
        Some(ticket)
    }

    /// Refuses everything from now on with `error`; what is queued stays. The first error counts.
    pub(crate) fn close(&self, error: StorageError) {
        self.state.lock().closed.get_or_insert(error);
        self.room.notify_waiters();
    }

    /// Why nothing is taken any more.
    pub(crate) fn closed(&self) -> Option<StorageError> {
        self.state.lock().closed.clone()
    }

    /// The commit thread is gone: everything that waits is dropped, which its waiters see.
    pub(crate) fn abandon(&self, error: StorageError) {
        let mut state = self.state.lock();
        state.closed.get_or_insert(error);
        state.stopping = true;
        state.is_abandoned = true;
        let dropped = (std::mem::take(&mut state.items), std::mem::take(&mut state.controls));
        drop(state);
        drop(dropped);
        self.room.notify_waiters();
    }

    /// Ends the commit thread once the queue is empty.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        self.wake(state);
    }

    /// Runs `change` while nothing can be queued.
    pub(crate) fn exclusively<T>(&self, change: impl FnOnce() -> T) -> T {
        let _state = self.state.lock();
        change()
    }

    /// The next work. `items` are those that were taken before; only when they are all done, or
    /// `controls_only` is asked for, does this sleep.
    pub(crate) fn take(
        &self,
        items: &mut VecDeque<Item>,
        deadline: Option<Instant>,
        controls_only: bool,
    ) -> Found {
        let mut state = self.state.lock();
        loop {
            if let Some(control) = state.controls.pop_front() {
                return Found::Control(control);
            }
            // Who stops does not wait for what is not coming any more.
            if !controls_only || state.stopping {
                if items.is_empty() && (!state.items.is_empty() || state.taken_bytes > 0) {
                    std::mem::swap(items, &mut state.items);
                    state.taken_bytes = std::mem::take(&mut state.bytes);
                    self.announce_room(&mut state);
                }
                if !items.is_empty() {
                    return Found::Items;
                }
                if state.stopping {
                    return Found::Stop;
                }
            }
            state.parked = true;
            match deadline {
                None => self.work.wait(&mut state),
                Some(deadline) => {
                    if self.work.wait_until(&mut state, deadline).timed_out() {
                        state.parked = false;
                        return Found::Nothing;
                    }
                }
            }
            state.parked = false;
        }
    }

    /// Notes how much of the journal is in use after a group: no less than before it.
    pub(crate) fn set_live_bytes(&self, live_bytes: u64) {
        self.state.lock().live_bytes = live_bytes;
    }

    /// A checkpoint ended and left so much of the journal in use. Whoever waits looks again even when
    /// that is no less than before: it was their checkpoint, and they ask for the next one.
    pub(crate) fn checkpoint_ended(&self, live_bytes: u64) {
        let mut state = self.state.lock();
        state.live_bytes = live_bytes;
        self.announce_room(&mut state);
    }

    fn announce_room(&self, state: &mut State) {
        if std::mem::take(&mut state.refused) {
            self.room.notify_waiters();
        }
    }

    fn wake(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        // Taken back at once, so that one sleep is ended by one signal.
        let parked = std::mem::take(&mut state.parked);
        drop(state);
        if parked {
            self.work.notify_one();
        }
    }
}

impl State {
    fn push(&mut self, item: Item, cost: u64) {
        self.bytes += cost;
        self.items.push_back(item);
    }

    /// Whether an append of `cost` may be queued. One that is larger than every bound still may when
    /// nothing else is there: a bound slows down, it never stops for good.
    const fn has_room(&self, cost: u64, bounds: Bounds) -> bool {
        let queue = self.bytes == 0 || self.bytes + cost <= bounds.waiting;
        let journal = self.live_bytes + self.taken_bytes + self.bytes + cost <= bounds.data
            || (self.bytes == 0 && self.live_bytes <= bounds.data / 2);
        queue && journal
    }
}

impl RowChange {
    /// Journal bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        const OVERHEAD_BYTES: usize = 16;
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len) + OVERHEAD_BYTES
    }
}

impl Item {
    /// The log whose handle asks for it.
    const fn owned_by(&self) -> Option<&Arc<LiveLog>> {
        match self {
            Self::Append(PendingAppend { log, .. }) | Self::Roll { log, .. } => Some(log),
            Self::Change(change) => change.log.as_ref(),
            Self::Retire { .. } | Self::Release(_) | Self::Barrier(_) => None,
        }
    }

    /// Journal bytes that it will take, about.
    fn cost(&self) -> u64 {
        match self {
            Self::Append(append) => append.batches.size().get() + APPEND_OVERHEAD_BYTES,
            Self::Change(change) => change.changes.iter().map(|row| row.size() as u64).sum(),
            Self::Roll { .. } | Self::Retire { .. } | Self::Release(_) | Self::Barrier(_) => 0,
        }
    }
}
