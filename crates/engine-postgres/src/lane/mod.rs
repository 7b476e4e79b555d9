//! A lane: one connection that appends for its logs, and changes what they own, in order.
//!
//! Whatever waits is committed together while the commit before is under way. One statement at a time:
//! when its connection is lost, its outcome alone is unknown, and everything later is held until it is
//! [settled](settle).
//!
//! # Invariants
//! - A ticket resolves after its log's listener was told, and after the entry is in the tail.
//! - A log of which an append failed takes no more: what was queued behind it fails too.

mod change;
mod gather;
mod group;
mod settle;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use strandline_storage::{ErrorKind, StorageError};
use tokio::time::Instant;

use crate::cache::{Cache, Entry};
use crate::connection::{Connection, Connector, Isolation, pause};
use crate::error::Failure;
use crate::queue::{PendingAppend, Queue, Work};
use crate::sql::Query;
use crate::sweeper::Sweeps;
use crate::vitals::{Vitals, count};
pub(crate) use gather::Gather;
pub(crate) use group::digest;
use group::{Run, append, runs_of};

/// How often a statement is tried that others were in the way of.
const CONFLICTS_MAX: usize = 20;

/// How often a statement is tried whose session is not the row's.
const REFUSALS_MAX: usize = 5;

/// See the [module](self).
pub(crate) struct Lane {
    queue: Arc<Queue>,
    connector: Arc<Connector>,
    tail: Arc<Cache>,
    sweeps: Arc<Sweeps>,
    /// This run of the engine.
    run: i64,
    outcome_wait: Duration,
    connection: Option<Connection>,
    /// Since when nothing works.
    troubled_since: Option<Instant>,
}

impl Lane {
    pub(crate) fn new(
        queue: Arc<Queue>,
        connector: Arc<Connector>,
        (tail, sweeps): (Arc<Cache>, Arc<Sweeps>),
        run: i64,
        outcome_wait: Duration,
    ) -> Self {
        let (connection, troubled_since) = (None, None);
        Self { queue, connector, tail, sweeps, run, outcome_wait, connection, troubled_since }
    }

    /// Works until the queue is closed and empty.
    pub(crate) async fn run(mut self) {
        let mut gather = Gather::default();
        while let Some(work) = self.queue.next(&mut gather).await {
            match work {
                Work::Appends(group) => {
                    let (answered, begun) = (group.len(), Instant::now());
                    self.commit(group).await;
                    let now = Instant::now();
                    gather.committed(answered, self.queue.appends(), now - begun, now);
                }
                Work::Change(pending) => self.change(pending).await,
                // Whoever waited may have gone.
                Work::Barrier(done) => drop(done.send(())),
                #[cfg(feature = "testkit")]
                Work::Panic => panic!("a test makes the lane panic"),
            }
        }
    }

    /// The lane's connection, ready to append.
    async fn connection(&mut self) -> Result<&Connection, Failure> {
        if !self.connection.as_ref().is_some_and(Connection::is_usable) {
            self.connection = None;
            let connection = self.connector.connect(Isolation::Appending).await?;
            connection.prepare(Query::Append).await?;
            connection.prepare(Query::AppendOne).await?;
            self.connection = Some(connection);
        }
        Ok(self.connection.as_ref().expect("it was just made"))
    }

    async fn commit(&mut self, group: Vec<PendingAppend>) {
        let mut runs = runs_of(group);
        let (mut conflicts, mut refusals) = (0, 0);
        let begun = Instant::now();
        while !runs.is_empty() {
            let answer = match self.connection().await {
                Ok(connection) => append(connection, &runs).await,
                Err(failure) => Err(failure),
            };
            match answer {
                Ok(moved) => {
                    self.troubled_since = None;
                    self.vitals().wrote();
                    self.vitals().counts.commits.lock().add(begun.elapsed());
                    for run in runs.extract_if(.., |run| moved.contains(&run.log_id)) {
                        self.publish(run);
                    }
                    // Another session need not mean another owner: a settlement may have come late.
                    if !runs.is_empty() && refusals < REFUSALS_MAX {
                        refusals += 1;
                        self.settle(&mut runs).await;
                    } else {
                        runs.drain(..).for_each(|run| {
                            let error = other_owner(&run);
                            end(run, &error);
                        });
                    }
                }
                Err(failure) if failure.is_conflict() && conflicts < CONFLICTS_MAX => {
                    conflicts += 1;
                    count(&self.vitals().counts.statements_retried);
                    tokio::time::sleep(pause(conflicts)).await;
                }
                Err(Failure::Lost(reason)) => {
                    tracing::debug!(%reason, "outcome of an append is unknown");
                    self.settle(&mut runs).await;
                }
                Err(failure) => {
                    self.vitals().refused(&failure);
                    let error = failure.into_storage("append to PostgreSQL");
                    runs.drain(..).for_each(|run| end(run, &error));
                }
            }
        }
    }

    /// What a run appended is committed.
    fn publish(&self, run: Run) {
        for entry in &run.entries {
            let kept = Entry { from: entry.base, next: entry.next, data: entry.data.clone() };
            self.tail.insert(run.cache_id, entry.chunk, kept);
        }
        run.log.publish(run.opening, run.next);
        run.settle(&Ok(()));
    }

    fn vitals(&self) -> &Vitals {
        self.connector.vitals()
    }

    /// Whether trying on is of use; notes that something failed.
    fn may_try_on(&mut self) -> bool {
        let since = *self.troubled_since.get_or_insert_with(Instant::now);
        since.elapsed() < self.outcome_wait
    }
}

/// The log's row is not as whoever opened it left it.
fn other_owner(run: &Run) -> StorageError {
    let message = format!("the log has another owner. partition=`{}`", run.log.id);
    StorageError::new(ErrorKind::Fenced, message)
}

/// The run failed, and its log's handle with it.
fn end(run: Run, error: &StorageError) {
    run.log.kill(run.opening, error);
    run.settle(&Err(error.clone()));
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("run", &self.run).finish_non_exhaustive()
    }
}
