//! The place of one partition: closed until it is asked for, open, or deleted.
//!
//! # States
//!
//! ```text
//!            first use               opened
//!  Closed ───────────────▶ Opening ─────────▶ Open
//!    ▲                        │ failed          │ the log died
//!    └────────────────────────┴─────────────────┘
//!  any ── topic deleted ──▶ Deleted
//! ```

use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::PartitionId;
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
}

#[derive(Debug)]
enum State {
    Closed,
    Opening(Waiters),
    Open(Arc<Partition>),
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
        Self { id, signals: Arc::default(), state: Mutex::new(State::Closed) }
    }

    pub(crate) const fn id(&self) -> PartitionId {
        self.id
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The partition, if it is open.
    pub(crate) fn opened(&self) -> Option<Arc<Partition>> {
        match &*self.state.lock() {
            State::Open(partition) => Some(Arc::clone(partition)),
            State::Closed | State::Opening(_) | State::Deleted => None,
        }
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
                State::Open(partition) => return Ok(Arc::clone(partition)),
                State::Deleted => return Err(SlotError::Deleted),
                State::Opening(waiters) => {
                    let (sender, receiver) = oneshot::channel();
                    waiters.push(sender);
                    receiver
                }
                State::Closed => {
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
        tasks::spawn("open partition", async move {
            let opened = Partition::open(slot.id, Arc::clone(&slot.signals), &context).await;
            slot.finish_opening(opened.map(Arc::new).map_err(SlotError::Storage));
        });
    }

    fn finish_opening(&self, opened: Result<Arc<Partition>, SlotError>) {
        let mut state = self.state.lock();
        let (waiters, outcome) = match std::mem::replace(&mut *state, State::Closed) {
            State::Deleted => {
                *state = State::Deleted;
                return;
            }
            State::Opening(waiters) => (waiters, opened),
            State::Closed | State::Open(_) => {
                panic!("only one opening of {} runs at a time", self.id)
            }
        };
        if let Ok(partition) = &outcome {
            *state = State::Open(Arc::clone(partition));
        }
        drop(state);
        for waiter in waiters {
            // Whoever asked may have gone away with its connection.
            drop(waiter.send(outcome.clone()));
        }
    }

    /// Drops `dead`, whose log failed, so that the next use opens the partition anew.
    pub(crate) fn close_dead(&self, dead: &Arc<Partition>) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Open(open) if Arc::ptr_eq(open, dead)) {
            *state = State::Closed;
        }
    }

    /// Ends the partition for good: whoever waits wakes and learns that it is gone.
    pub(crate) fn delete(&self) {
        let waiters = match std::mem::replace(&mut *self.state.lock(), State::Deleted) {
            State::Opening(waiters) => waiters,
            State::Closed | State::Open(_) | State::Deleted => Vec::new(),
        };
        for waiter in waiters {
            drop(waiter.send(Err(SlotError::Deleted)));
        }
        self.signals.wake();
    }
}
