//! Runs a machine: one task owns it, feeds it one input at a time, and keeps its rows.
//!
//! ```text
//!  ask ─▶ mailbox ─▶ step ─▶ rows ─▶ one commit at a time ─▶ replies
//!                     ▲        └─ what comes meanwhile is the next commit
//!                     └── deadlines
//! ```
//!
//! # Invariants
//! - A reply is released when the rows of its step, and of all before it, are durable.
//! - One commit is under way at a time and carries all rows that came before it, so rows are kept in
//!   the order of the steps, and many commands share one sync.
//! - When a commit fails, or the machine panics, the machine is dropped, whoever waits is told that
//!   the coordinator is not available, and a new machine is built from the rows that are durable.

mod batch;
mod owner;

use std::fmt::Debug;
use std::sync::Arc;

use strandline_coordination::{Effects, Machine, Now};
use strandline_storage::{BoxFuture, Change, MetaStore, StorageError};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::environment::Environment;
use owner::Owner;

/// Commands that wait for one owner. Reached: whoever asks waits to be let in.
const MAILBOX_COMMANDS_MAX: usize = 256;

/// The rows and replies of a machine's steps.
pub(crate) type EffectsOf<M> =
    Effects<<M as Machine>::Reply, <M as Machine>::Row, <M as Machine>::Event>;

/// What the driver must know of a machine beside its steps.
pub(crate) trait Keeper: Debug + Send + Sync + 'static {
    /// The machine.
    type Machine: Machine<Command: Send, Reply: Send, Row: Send, Event: Send> + Send;

    /// Builds the machine from what is kept.
    fn load(&self, now: Now) -> BoxFuture<'_, Result<Loaded<Self::Machine>, StorageError>>;

    /// What a row is in the store.
    fn change(&self, row: &<Self::Machine as Machine>::Row) -> Change;

    /// These rows have become durable, in this order. The seam for whatever follows the machine's
    /// state from outside: it sees each change once, after it can't be taken back.
    fn durable(&self, rows: &[<Self::Machine as Machine>::Row]);

    /// This has happened in a step; it may still be that its rows are not kept.
    fn happened(&self, events: &[<Self::Machine as Machine>::Event]);
}

/// A machine that was just built, with what that asks for.
pub(crate) type Loaded<M> = (M, EffectsOf<M>);

/// The coordinator can't answer now: the client tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable;

/// A command under way to an owner.
pub(crate) struct Mail<M: Machine> {
    command: M::Command,
    reply: oneshot::Sender<M::Reply>,
}

/// Where an owner takes commands.
#[derive(Debug)]
pub(crate) struct Mailbox<M: Machine>(mpsc::Sender<Mail<M>>);

impl<M: Machine> Mailbox<M> {
    /// Asks the machine. Waits as long as the machine lets the command wait.
    pub(crate) async fn ask(&self, command: M::Command) -> Result<M::Reply, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Mail { command, reply }).await.map_err(|_| Unavailable)?;
        answer.await.map_err(|_| Unavailable)
    }
}

/// Where owners run: a few runtimes, dealt out in turn.
#[derive(Clone, Debug)]
pub(crate) struct Runtimes {
    own: Vec<Handle>,
    fallback: Handle,
}

impl Runtimes {
    /// These runtimes, or `fallback` when there are none.
    pub(crate) const fn new(own: Vec<Handle>, fallback: Handle) -> Self {
        Self { own, fallback }
    }

    pub(crate) fn of(&self, index: usize) -> &Handle {
        let turn = index.checked_rem(self.own.len());
        turn.and_then(|turn| self.own.get(turn)).unwrap_or(&self.fallback)
    }
}

/// Where owners run, and what they run with.
#[derive(Clone, Debug)]
pub(crate) struct Drivers {
    pub(crate) meta: Arc<dyn MetaStore>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) runtimes: Runtimes,
    /// Cancelled: owners finish the commit that is under way and end.
    pub(crate) close: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Drivers {
    pub(crate) fn new(
        meta: &Arc<dyn MetaStore>,
        environment: &Arc<dyn Environment>,
        runtimes: Runtimes,
    ) -> Self {
        Self {
            meta: Arc::clone(meta),
            environment: Arc::clone(environment),
            runtimes,
            close: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Builds a machine and starts the task that owns it, on the runtime that `index` chooses.
    pub(crate) async fn start<K: Keeper>(
        &self,
        name: &'static str,
        index: usize,
        keeper: Arc<K>,
    ) -> Result<Mailbox<K::Machine>, StorageError> {
        let (sender, receiver) = mpsc::channel(MAILBOX_COMMANDS_MAX);
        let runtime = self.runtimes.of(index);
        let owner = Owner::new(self.clone(), runtime.clone(), name, keeper, receiver);
        let loaded = owner.load().await?;
        let supervised = self.tasks.track_future(owner.run(loaded));
        crate::tasks::spawn(runtime, name, supervised);
        Ok(Mailbox(sender))
    }

    /// Ends all owners. Returns when they have ended.
    pub(crate) async fn close(&self) {
        self.close.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
