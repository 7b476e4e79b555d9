//! What the world may see of one open log: its durable end, and its death.

use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::Offset;

use super::Faults;
use crate::{LogListener, StorageError, Ticket};

/// Stands between the engine's listener calls and the owner of the log.
#[derive(Debug)]
pub(super) struct Gate {
    faults: Faults,
    owner: Arc<dyn LogListener>,
    ends: Mutex<Ends>,
}

#[derive(Debug)]
struct Ends {
    /// What is durable in the engine.
    real: Offset,
    /// What is durable as far as anybody can see.
    shown: Offset,
    death: Option<StorageError>,
}

impl Gate {
    pub(super) fn new(faults: &Faults, owner: Arc<dyn LogListener>) -> Arc<Self> {
        let ends = Ends { real: Offset::ZERO, shown: Offset::ZERO, death: None };
        Arc::new(Self { faults: faults.clone(), owner, ends: Mutex::new(ends) })
    }

    /// What opening the log found is durable.
    pub(super) fn begin_at(&self, end: Offset) {
        let mut ends = self.ends.lock();
        ends.real = end;
        ends.shown = end;
    }

    /// The durable end as far as anybody can see.
    pub(super) fn shown_end(&self) -> Offset {
        self.ends.lock().shown
    }

    pub(super) fn death(&self) -> Option<StorageError> {
        self.ends.lock().death.clone()
    }

    /// Shows everything that is durable, and tells the owner.
    pub(super) fn let_through(&self) {
        let end = {
            let mut ends = self.ends.lock();
            if ends.death.is_some() || ends.shown == ends.real {
                return;
            }
            ends.shown = ends.real;
            ends.shown
        };
        self.owner.durable_end_moved(end);
    }

    /// From now on the handle is dead. Whether it was alive.
    pub(super) fn kill(&self, error: &StorageError) -> bool {
        let mut ends = self.ends.lock();
        let alive = ends.death.is_none();
        ends.death.get_or_insert_with(|| error.clone());
        alive
    }

    /// Tells the owner of the death.
    pub(super) fn announce_death(&self, error: &StorageError) {
        self.owner.died(error);
    }

    /// A ticket that resolves as `inner` does, but not while progress is held back, and not well
    /// once the handle is dead.
    pub(super) fn ticket(self: &Arc<Self>, inner: Ticket) -> Ticket {
        let (completion, ticket) = Ticket::pair();
        let gate = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = inner.await;
            gate.faults.released().await;
            completion.settle(match gate.death() {
                Some(error) => outcome.and(Err(error)),
                None => outcome,
            });
        });
        ticket
    }
}

impl LogListener for Gate {
    fn durable_end_moved(&self, end: Offset) {
        self.ends.lock().real = end;
        if !self.faults.is_held() {
            self.let_through();
        }
    }

    fn died(&self, error: &StorageError) {
        if self.kill(error) {
            self.announce_death(error);
        }
    }
}
