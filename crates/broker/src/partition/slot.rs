//! The place of one partition: closed until it is asked for, open, or deleted.
//!
//! # States
//!
//! ```text
//!            first use               opened
//!  Closed ───────────────▶ Opening ─────────▶ Open
//!    ▲                        │ failed          │ the log died, or nobody used it for long
//!    └────────────────────────┴─────────────────┘
//!  any ── topic deleted ──▶ Deleted
//!  Closed, Open ── something of its log is gone ──▶ Withheld ── it is there again ──▶ Closed
//!
//!  An opening that failed is not repeated within a second: the next callers get the same answer.
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use strandline_model::{PartitionId, Timestamp};
use strandline_storage::{ErrorKind, StorageError};
use tokio::sync::oneshot;

use super::{OpenContext, Partition, Signals};
use crate::tasks;

/// Callers that wait for the same opening.
type Waiters = Vec<oneshot::Sender<Result<Arc<Partition>, SlotError>>>;

/// One partition of a topic, open or not.
#[derive(Debug)]
pub(crate) struct PartitionSlot {
    id: PartitionId,
    signals: Arc<Signals>,
    state: Mutex<State>,
    /// Somebody used the partition since that was last asked.
    is_used: AtomicBool,
}

/// How long the answer of an opening that failed stands: opening may read a whole log.
const FAILURE_STANDS_MS: i64 = 1_000;

#[derive(Debug)]
enum State {
    Closed,
    Failed(SlotError, Timestamp),
    Opening(Waiters),
    Open(Arc<Partition>),
    Withheld(SlotError),
    Deleted,
}

/// Why a partition can't be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SlotError {
    /// Its topic was deleted.
    #[error("partition was deleted")]
    Deleted,
    /// Its log could not be opened.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl PartitionSlot {
    pub(crate) fn new(id: PartitionId) -> Self {
        let (state, is_used) = (Mutex::new(State::Closed), AtomicBool::new(false));
        Self { id, signals: Arc::default(), state, is_used }
    }

    pub(crate) const fn id(&self) -> PartitionId {
        self.id
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The partition, if it is open.
    pub(crate) fn opened(&self) -> Option<Arc<Partition>> {
        let mut state = self.state.lock();
        let partition = match &*state {
            State::Open(partition) => Arc::clone(partition),
            State::Closed
            | State::Failed(..)
            | State::Opening(_)
            | State::Withheld(_)
            | State::Deleted => return None,
        };
        if partition.is_dead() {
            *state = State::Closed;
            return None;
        }
        Some(partition)
    }

    /// The partition, opened now if it was not. Callers that overlap share one opening, which goes
    /// on when they go away.
    pub(crate) async fn open(
        self: &Arc<Self>,
        context: &OpenContext,
    ) -> Result<Arc<Partition>, SlotError> {
        let receiver = {
            let mut state = self.state.lock();
            match &mut *state {
                State::Open(partition) if !partition.is_dead() => {
                    return Ok(Arc::clone(partition));
                }
                State::Deleted => return Err(SlotError::Deleted),
                State::Withheld(error) => return Err(error.clone()),
                State::Failed(error, at)
                    if (0..FAILURE_STANDS_MS).contains(&context.now.millis_since(*at)) =>
                {
                    return Err(error.clone());
                }
                State::Opening(waiters) => {
                    let (sender, receiver) = oneshot::channel();
                    waiters.push(sender);
                    receiver
                }
                State::Closed | State::Failed(..) | State::Open(_) => {
                    let (sender, receiver) = oneshot::channel();
                    *state = State::Opening(vec![sender]);
                    self.start_opening(context.clone());
                    receiver
                }
            }
        };
        receiver.await.unwrap_or_else(|_| {
            Err(StorageError::new(ErrorKind::Unavailable, "opening was given up at shutdown")
                .into())
        })
    }

    fn start_opening(self: &Arc<Self>, context: OpenContext) {
        let slot = Arc::clone(self);
        tasks::spawn(&context.runtime.clone(), "open partition", async move {
            let slot = GiveUp(slot);
            let signals = Arc::clone(&slot.0.signals);
            let opened = Partition::open(slot.0.id, signals, &context).await;
            if let Err(error) = &opened {
                log_failure(slot.0.id, error);
            }
            slot.0.finish_opening(opened.map(Arc::new).map_err(SlotError::Storage), context.now);
            // The topic was perhaps configured anew while the log was not open for it to be told.
            if let Some(partition) = slot.0.opened() {
                partition.log().configure(context.settings.load().log.clone());
            }
        });
    }

    fn finish_opening(&self, opened: Result<Arc<Partition>, SlotError>, now: Timestamp) {
        let mut state = self.state.lock();
        let (waiters, outcome) = match std::mem::replace(&mut *state, State::Closed) {
            State::Deleted => {
                *state = State::Deleted;
                return;
            }
            State::Opening(waiters) => (waiters, opened),
            State::Closed | State::Failed(..) | State::Open(_) | State::Withheld(_) => {
                panic!("only one opening of {} runs at a time", self.id)
            }
        };
        *state = match &outcome {
            Ok(partition) => State::Open(Arc::clone(partition)),
            Err(error) => State::Failed(error.clone(), now),
        };
        drop(state);
        for waiter in waiters {
            // Whoever asked may have gone away with its connection.
            drop(waiter.send(outcome.clone()));
        }
    }

    /// Serves the partition to nobody from now on: `error` says what of it is gone. Whoever waits wakes
    /// and learns it. Does nothing while the partition is being opened: the engine answers first.
    pub(crate) fn withhold(&self, error: StorageError) {
        {
            let mut state = self.state.lock();
            match &*state {
                State::Deleted | State::Opening(_) => return,
                State::Closed | State::Failed(..) | State::Open(_) | State::Withheld(_) => {}
            }
            let before = std::mem::replace(&mut *state, State::Withheld(error.into()));
            drop(state);
            drop(before);
        }
        self.signals.wake();
    }

    /// Why the partition is served to nobody, while something of it is gone.
    pub(crate) fn withheld(&self) -> Option<SlotError> {
        match &*self.state.lock() {
            State::Withheld(error) => Some(error.clone()),
            State::Closed
            | State::Failed(..)
            | State::Opening(_)
            | State::Open(_)
            | State::Deleted => None,
        }
    }

    /// Ends what [`withhold`](Self::withhold) began.
    pub(crate) fn serve_again(&self) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Withheld(_)) {
            *state = State::Closed;
        }
    }

    /// Whether the partition is gone for good.
    pub(crate) fn is_deleted(&self) -> bool {
        matches!(&*self.state.lock(), State::Deleted)
    }

    /// Drops `dead`, whose log failed, so that the next use opens the partition anew.
    pub(crate) fn close_dead(&self, dead: &Arc<Partition>) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Open(open) if Arc::ptr_eq(open, dead)) {
            *state = State::Closed;
        }
    }

    /// Somebody uses the partition now.
    pub(crate) fn note_use(&self) {
        // Mostly it is noted already, and a look takes the line from no other core.
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether somebody used the partition since this was asked last.
    pub(crate) fn take_use(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    /// Closes the partition if only the caller has it in hand, it is at rest, and nobody used it since
    /// that was last asked. Says whether it did. Who waits for it goes on waiting: the next append opens
    /// it again and wakes them.
    pub(crate) fn close_idle(&self, idle: Arc<Partition>) -> bool {
        let mut state = self.state.lock();
        // The slot's and the caller's: others are only given out under this lock.
        let is_alone = Arc::strong_count(&idle) == 2;
        let is_open = matches!(&*state, State::Open(open) if Arc::ptr_eq(open, &idle));
        let closes =
            is_open && is_alone && !self.is_used.load(Ordering::Relaxed) && idle.is_at_rest();
        if closes {
            // Under the lock, so that who opens the log next finds that its owner let go of it.
            *state = State::Closed;
            drop(idle);
        }
        closes
    }

    /// Ends the partition for good: whoever waits wakes and learns that it is gone.
    pub(crate) fn delete(&self) {
        let waiters = match std::mem::replace(&mut *self.state.lock(), State::Deleted) {
            State::Opening(waiters) => waiters,
            State::Closed
            | State::Failed(..)
            | State::Open(_)
            | State::Withheld(_)
            | State::Deleted => Vec::new(),
        };
        for waiter in waiters {
            drop(waiter.send(Err(SlotError::Deleted)));
        }
        self.signals.delete();
    }
}

/// Ends an opening that panicked or was cancelled: the slot is closed again, and whoever waits sees
/// its channel close. Does nothing when the opening came to its end.
struct GiveUp(Arc<PartitionSlot>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if matches!(&*state, State::Opening(_)) {
            *state = State::Closed;
        }
    }
}

fn log_failure(partition: PartitionId, error: &StorageError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Missing => {
            tracing::error!(%partition, %error, cause, "partition can't be opened");
        }
        ErrorKind::Unavailable
        | ErrorKind::Closed
        | ErrorKind::Fenced
        | ErrorKind::Full
        | ErrorKind::Invalid => {
            tracing::warn!(%partition, %error, cause, "partition can't be opened now");
        }
    }
}
