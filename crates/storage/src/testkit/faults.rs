//! Any engine, failing by plan: for the tests of whoever uses one.
//!
//! A test wraps an engine, says which of the next calls fail and how, and may hold back all
//! progress of durability until it lets go. Everything else goes to the engine inside.
//!
//! # Invariants
//! - A ticket resolves only after the listener was told, held back or not, as with any engine.
//! - A handle that died stays dead; opening again is what mends it.

mod gate;
mod log;
mod store;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::PartitionId;
use tokio::sync::{Notify, watch};

use super::Engine;
use crate::{CommitLog, ErrorKind, LossCertainty, Lost, StorageError};
use gate::Gate;

/// The plan of failures: a handle that the test keeps. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
    held: Arc<watch::Sender<bool>>,
    paused: Arc<Paused>,
}

/// A trim that waits for the test.
#[derive(Debug, Default)]
struct Paused {
    reached: Notify,
    resume: Notify,
}

/// What happens to a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitFault {
    /// Refused with `Busy`; the engine is ready at once.
    Busy,
    /// Refused with `Full`.
    Full,
    /// Taken and lost: the ticket fails, the handle dies.
    LoseAndDie,
    /// Taken and kept, which nobody is told: the ticket fails, the handle dies. After reopening the
    /// records are there, as after a crash between the write and its answer.
    KeepAndDie,
}

/// What happens to a trim, or to the beginning of a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimFault {
    /// It fails; nothing happens.
    Fail(ErrorKind),
    /// It never comes to an end.
    Hang,
    /// It panics.
    Panic,
    /// It waits until the test lets it go on, and works then.
    Pause,
}

/// What happens to a step of removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveFault {
    /// It fails; nothing is removed.
    Fail(ErrorKind),
    /// It never comes to an end.
    Hang,
}

/// What happens to a metadata commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// Fails with `Unavailable`; nothing changed.
    Lose,
    /// Fails with `Unavailable`; everything changed all the same.
    Keep,
}

#[derive(Debug, Default)]
struct Plan {
    submits: Schedule<SubmitFault>,
    commits: Schedule<CommitFault>,
    opens: Schedule<ErrorKind>,
    reads: Schedule<ErrorKind>,
    trims: Schedule<TrimFault>,
    removals: Schedule<RemoveFault>,
    /// Logs that are told to be lost.
    lost: Vec<Lost>,
    rewrites: Schedule<TrimFault>,
    chunks: Schedule<()>,
    /// Metadata commits that were asked for.
    commits_asked: usize,
    gates: Vec<Arc<Gate>>,
    /// Handles that died, kept until the next opening so that the engine inside sees an unclean stop.
    dead: Vec<Arc<dyn CommitLog>>,
}

/// Faults by the number of calls before them.
#[derive(Debug)]
struct Schedule<F> {
    coming: VecDeque<(usize, F)>,
}

impl Faults {
    /// A plan without failures.
    pub fn none() -> Self {
        Self::default()
    }

    /// The engine, failing by this plan.
    pub fn wrap(&self, engine: Engine) -> Engine {
        store::wrap(engine, self)
    }

    /// Lets the submit after the next `skip` ones fail, whichever log it goes to.
    pub fn on_submit(&self, skip: usize, fault: SubmitFault) {
        self.plan.lock().submits.add(skip, fault);
    }

    /// Lets the metadata commit after the next `skip` ones fail.
    pub fn on_commit(&self, skip: usize, fault: CommitFault) {
        self.plan.lock().commits.add(skip, fault);
    }

    /// Lets the opening after the next `skip` ones fail.
    pub fn on_open(&self, skip: usize, kind: ErrorKind) {
        self.plan.lock().opens.add(skip, kind);
    }

    /// Lets the read after the next `skip` ones fail.
    pub fn on_read(&self, skip: usize, kind: ErrorKind) {
        self.plan.lock().reads.add(skip, kind);
    }

    /// Lets the trim after the next `skip` ones fail, whichever log it is for.
    pub fn on_trim(&self, skip: usize, fault: TrimFault) {
        self.plan.lock().trims.add(skip, fault);
    }

    /// Lets the step of removal after the next `skip` ones fail, whichever log it is for.
    pub fn on_remove(&self, skip: usize, fault: RemoveFault) {
        self.plan.lock().removals.add(skip, fault);
    }

    /// From now on the store says that of this log something is gone; `None`: that it is back.
    pub fn lose(&self, id: PartitionId, what: Option<&str>) {
        let lost = &mut self.plan.lock().lost;
        lost.retain(|one| one.id != id);
        let certainty = LossCertainty::Gone;
        lost.extend(what.map(|what| Lost { id, what: what.to_owned(), certainty }));
    }

    /// From now on the store says that a part of this log is gone.
    pub fn damage(&self, id: PartitionId, what: &str) {
        let lost = &mut self.plan.lock().lost;
        lost.retain(|one| one.id != id);
        lost.push(Lost { id, what: what.to_owned(), certainty: LossCertainty::InPart });
    }

    /// From now on the store says that this log can't be looked at.
    pub fn hide(&self, id: PartitionId, what: &str) {
        let lost = &mut self.plan.lock().lost;
        lost.retain(|one| one.id != id);
        lost.push(Lost { id, what: what.to_owned(), certainty: LossCertainty::Unreadable });
    }

    /// Lets the rewrite after the next `skip` ones fail before it begins, whichever log it is of.
    pub fn on_rewrite(&self, skip: usize, fault: TrimFault) {
        self.plan.lock().rewrites.add(skip, fault);
    }

    /// Waits until a trim is paused.
    pub async fn trim_paused(&self) {
        self.paused.reached.notified().await;
    }

    /// Lets a paused trim go on.
    pub fn resume_trim(&self) {
        self.paused.resume.notify_one();
    }

    /// Lets the look at chunks after the next `skip` ones panic, whichever log it is at.
    pub fn on_chunks_panic(&self, skip: usize) {
        self.plan.lock().chunks.add(skip, ());
    }

    /// How many metadata commits were asked for so far.
    pub fn commits_asked(&self) -> usize {
        self.plan.lock().commits_asked
    }

    /// From now on nothing becomes durable as far as anybody can see.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    /// Lets everything become durable that was held back, and what comes after it.
    pub fn release(&self) {
        let gates = self.plan.lock().gates.clone();
        for gate in &gates {
            gate.let_through();
        }
        // After the owners were told: now the tickets resolve.
        self.held.send_replace(false);
        // What became durable in between.
        for gate in &gates {
            gate.let_through();
        }
    }

    fn is_held(&self) -> bool {
        *self.held.borrow()
    }

    /// Waits while progress is held back.
    async fn released(&self) {
        let released = self.held.subscribe().wait_for(|held| !held).await.map(drop);
        released.expect("the sender lives as long as this");
    }
}

impl<F> Schedule<F> {
    fn add(&mut self, skip: usize, fault: F) {
        self.coming.push_back((skip, fault));
    }

    /// The fault of this call; all others come one call closer.
    fn next(&mut self) -> Option<F> {
        let due = self.coming.iter().position(|(skip, _)| *skip == 0);
        let fault = due.and_then(|position| self.coming.remove(position)).map(|(_, fault)| fault);
        for (skip, _) in &mut self.coming {
            *skip = skip.saturating_sub(1);
        }
        fault
    }
}

impl<F> Default for Schedule<F> {
    fn default() -> Self {
        Self { coming: VecDeque::new() }
    }
}

fn injected(kind: ErrorKind) -> StorageError {
    StorageError::new(kind, "injected by a test")
}

#[cfg(test)]
mod tests;
