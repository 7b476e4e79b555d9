//! The task that owns a machine.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use strandline_coordination::{Input, Machine, Now, ReplyToken};
use strandline_storage::{BoxFuture, CommitError, MetaBatch, MetaStore, StorageError};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::batch::{Batch, commits};
use super::{Drivers, EffectsOf, Keeper, Loaded, Mail};

/// Pause before a machine is built anew after it was dropped; doubled with each time that follows
/// soon.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// The longest pause.
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A machine that ran so long before it was dropped begins again with the shortest pause.
const SOON: Duration = Duration::from_mins(1);
/// How long the owner sleeps when the machine names no deadline.
const NO_DEADLINE: Duration = Duration::from_hours(1);

/// See the [module](self).
pub(super) struct Owner<K: Keeper> {
    drivers: Drivers,
    runtime: Handle,
    name: &'static str,
    keeper: Arc<K>,
    /// Shared with the task that runs the machine, so that it outlives a panic there.
    receiver: Arc<Mutex<mpsc::Receiver<Mail<K::Machine>>>>,
}

/// Why a machine is not run any more.
enum End {
    /// The broker closes.
    Closed,
    /// Rows could not be kept.
    CommitFailed(StorageError),
}

impl<K: Keeper> Owner<K> {
    pub(super) fn new(
        drivers: Drivers,
        runtime: Handle,
        name: &'static str,
        keeper: Arc<K>,
        receiver: mpsc::Receiver<Mail<K::Machine>>,
    ) -> Self {
        Self { drivers, runtime, name, keeper, receiver: Arc::new(Mutex::new(receiver)) }
    }

    fn now(&self) -> Now {
        now(&self.drivers)
    }

    pub(super) async fn load(&self) -> Result<Loaded<K::Machine>, StorageError> {
        self.keeper.load(self.now()).await
    }

    /// Runs the machine, and those that follow it, until the broker closes.
    pub(super) async fn run(self, first: Loaded<K::Machine>) {
        let mut loaded = first;
        let mut pause = BACKOFF_MIN;
        loop {
            let began = self.now().elapsed;
            let running = Running::new(&self, loaded);
            let receiver = Arc::clone(&self.receiver);
            // A task of its own, so that a panic ends that machine and nothing else.
            let ended = self.runtime.spawn(async move {
                let mut receiver = receiver.lock().await;
                running.run(&mut receiver).await
            });
            match ended.await {
                Ok(End::CommitFailed(error)) => {
                    tracing::warn!(machine = self.name, %error, "rows were not kept, starting again from those that are");
                }
                Err(error) if error.is_panic() => {
                    tracing::error!(machine = self.name, %error, "machine panicked, starting again from its rows");
                }
                // The broker closes, or the runtime does.
                Ok(End::Closed) | Err(_) => return,
            }
            let ran = self.now().elapsed.saturating_sub(began);
            pause = if ran > SOON { BACKOFF_MIN } else { (pause * 2).min(BACKOFF_MAX) };
            loaded = match self.reload(pause).await {
                Some(loaded) => loaded,
                None => return,
            };
        }
    }

    /// Builds the next machine. Whoever asks meanwhile is sent away.
    async fn reload(&self, pause: Duration) -> Option<Loaded<K::Machine>> {
        let mut receiver = self.receiver.lock().await;
        let mut building = std::pin::pin!(async {
            let (mut pause, mut is_told) = (pause, false);
            loop {
                self.drivers.environment.sleep(pause).await;
                match self.load().await {
                    Ok(loaded) => return loaded,
                    Err(error) if is_told => {
                        tracing::debug!(machine = self.name, %error, "rows still can't be read");
                    }
                    Err(error) => {
                        tracing::warn!(machine = self.name, %error, "rows can't be read, will try again");
                        is_told = true;
                    }
                }
                pause = (pause * 2).min(BACKOFF_MAX);
            }
        });
        loop {
            tokio::select! {
                loaded = &mut building => return Some(loaded),
                () = self.drivers.close.cancelled() => return None,
                mail = receiver.recv() => drop(mail?),
            }
        }
    }
}

fn now(drivers: &Drivers) -> Now {
    let environment = &drivers.environment;
    Now { elapsed: environment.monotonic(), time: environment.now() }
}

/// A machine at work.
struct Running<K: Keeper> {
    drivers: Drivers,
    keeper: Arc<K>,
    machine: K::Machine,
    /// Who waits for a reply.
    waiting: HashMap<ReplyToken, oneshot::Sender<<K::Machine as Machine>::Reply>>,
    /// Those that have gone away are looked for when there are so many.
    sweep_at: usize,
    next_token: u64,
    collected: Batch<K::Machine>,
    commit: Option<Commit<K::Machine>>,
}

/// A commit under way, and what becomes of it.
struct Commit<M: Machine> {
    done: BoxFuture<'static, Result<(), CommitError>>,
    rows: Vec<M::Row>,
    replies: Vec<(ReplyToken, M::Reply)>,
}

impl<K: Keeper> Running<K> {
    fn new(owner: &Owner<K>, (machine, effects): Loaded<K::Machine>) -> Self {
        let mut running = Self {
            drivers: owner.drivers.clone(),
            keeper: Arc::clone(&owner.keeper),
            machine,
            waiting: HashMap::new(),
            sweep_at: 64,
            next_token: 0,
            collected: Batch::default(),
            commit: None,
        };
        running.keeper.happened(&effects.events);
        running.collected.push(effects);
        running
    }

    async fn run(mut self, receiver: &mut mpsc::Receiver<Mail<K::Machine>>) -> End {
        let close = self.drivers.close.clone();
        let mut alarm = Alarm::default();
        loop {
            self.advance();
            let deadline = self.machine.next_deadline();
            let ring = alarm.set(deadline, &self.drivers);
            let may_take = !self.collected.is_full();
            tokio::select! {
                biased;
                done = finished(&mut self.commit) => match done {
                    Ok(()) => self.committed(),
                    Err(CommitError::Storage(error)) => return End::CommitFailed(error),
                    Err(CommitError::Unexpected { .. }) => {
                        panic!("a commit without expectations can't miss one")
                    }
                },
                () = close.cancelled(), if self.commit.is_none() => return End::Closed,
                () = ring, if may_take => {
                    alarm.rang();
                    self.step(Input::DeadlinePassed);
                    // However many deadlines are due, commands have their turn.
                    if let Ok(mail) = receiver.try_recv() {
                        self.take(mail);
                    }
                }
                mail = receiver.recv(), if may_take => match mail {
                    Some(mail) => self.take(mail),
                    // Nobody can ask any more.
                    None => return End::Closed,
                },
            }
        }
    }

    fn take(&mut self, Mail { command, reply }: Mail<K::Machine>) {
        let token = self.admit(reply);
        self.step(Input::Command(token, command));
    }

    fn admit(&mut self, reply: oneshot::Sender<<K::Machine as Machine>::Reply>) -> ReplyToken {
        if self.waiting.len() >= self.sweep_at {
            // What a client waited for whose connection is gone.
            self.waiting.retain(|_, waiting| !waiting.is_closed());
            self.sweep_at = (self.waiting.len() * 2).max(64);
        }
        let token = ReplyToken(self.next_token);
        self.next_token += 1;
        self.waiting.insert(token, reply);
        token
    }

    fn step(&mut self, input: Input<<K::Machine as Machine>::Command>) {
        let mut effects = EffectsOf::<K::Machine>::default();
        self.machine.step(now(&self.drivers), input, &mut effects);
        self.keeper.happened(&effects.events);
        self.collected.push(effects);
    }

    /// Releases what waits for nothing, and begins the next commit when none is under way.
    fn advance(&mut self) {
        if self.commit.is_some() {
            return;
        }
        let Batch { early, rows, steps, late } = std::mem::take(&mut self.collected);
        self.release(early);
        if rows.is_empty() {
            return self.release(late);
        }
        let changes =
            |step: Range<usize>| rows[step].iter().map(|row| self.keeper.change(row)).collect();
        let batches = commits(steps.into_iter().map(changes));
        let done = commit_all(Arc::clone(&self.drivers.meta), batches);
        self.commit = Some(Commit { done: Box::pin(done), rows, replies: late });
    }

    fn committed(&mut self) {
        if let Some(Commit { rows, replies, .. }) = self.commit.take() {
            self.keeper.durable(&rows);
            self.release(replies);
        }
    }

    fn release(&mut self, replies: Vec<(ReplyToken, <K::Machine as Machine>::Reply)>) {
        for (token, reply) in replies {
            if let Some(waiting) = self.waiting.remove(&token) {
                // Nobody is left to tell when the connection went away.
                drop(waiting.send(reply));
            }
        }
    }
}

async fn commit_all(meta: Arc<dyn MetaStore>, batches: Vec<MetaBatch>) -> Result<(), CommitError> {
    for batch in batches {
        meta.commit(batch).await?;
    }
    Ok(())
}

/// The outcome of the commit under way; never, when there is none.
async fn finished<M: Machine>(commit: &mut Option<Commit<M>>) -> Result<(), CommitError> {
    match commit {
        Some(commit) => commit.done.as_mut().await,
        None => std::future::pending().await,
    }
}

/// Waits for a machine's deadline. A timer that is set stays until it rings, unless an earlier one
/// is needed: most deadlines are put off before they come.
#[derive(Default)]
struct Alarm(Option<(Duration, BoxFuture<'static, ()>)>);

impl Alarm {
    fn set(
        &mut self,
        deadline: Option<Duration>,
        drivers: &Drivers,
    ) -> &mut BoxFuture<'static, ()> {
        let now = drivers.environment.monotonic();
        let at = deadline.unwrap_or_else(|| now.saturating_add(NO_DEADLINE));
        if self.0.as_ref().is_some_and(|(set, _)| *set > at) {
            self.0 = None;
        }
        let sleep = || (at, drivers.environment.sleep(at.saturating_sub(now)));
        &mut self.0.get_or_insert_with(sleep).1
    }

    fn rang(&mut self) {
        self.0 = None;
    }
}
