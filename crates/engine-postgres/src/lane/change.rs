//! Changes of a log by its owner: each is one statement, which may be carried out twice.

use strandline_model::Timestamp;
use strandline_storage::{ErrorKind, StorageError};
use tokio_postgres::Row;

use super::{CONFLICTS_MAX, Lane, REFUSALS_MAX};
use crate::connection::{Connection, Params, pause};
use crate::error::{Failure, closed};
use crate::facts::Facts;
use crate::queue::{Change, PendingChange};
use crate::sql::Query;

impl Lane {
    /// Carries out a change, however often its connection is lost.
    pub(super) async fn change(&mut self, pending: PendingChange) {
        let outcome = self.carry_out(&pending).await;
        match &outcome {
            Ok(()) => {
                let (log_id, went) = {
                    let mut state = pending.log.state.lock();
                    (state.log_id, state.apply(&pending.change))
                };
                self.sweeps.add(log_id, went);
            }
            // Nothing was decided on that others build on.
            Err(error) if error.kind() == ErrorKind::Full && !is_of_chunks(&pending.change) => {}
            Err(error) => pending.log.kill(pending.opening, error),
        }
        // Whoever asked may have gone.
        drop(pending.done.send(outcome));
    }

    async fn carry_out(&mut self, pending: &PendingChange) -> Result<(), StorageError> {
        let mut tries = 0;
        loop {
            let owner = {
                let state = pending.log.state.lock();
                if state.is_broken || state.opening != pending.opening {
                    return Err(state.fate.clone().unwrap_or_else(closed));
                }
                Owner { log_id: state.log_id, epoch: state.epoch.get(), session: state.session }
            };
            let answer = match self.connection().await {
                Ok(connection) => apply(connection, &owner, &pending.change).await,
                Err(failure) => Err(failure),
            };
            tries += 1;
            match answer {
                Ok(true) => {
                    self.troubled_since = None;
                    self.vitals().wrote();
                    return Ok(());
                }
                // Another session need not mean another owner: a settlement may have come late.
                Ok(false) if tries <= REFUSALS_MAX => self.renew_session(pending, &owner).await?,
                Ok(false) => return Err(other_owner(pending)),
                Err(failure) if failure.is_conflict() && tries <= CONFLICTS_MAX => {}
                Err(Failure::Lost(reason)) => {
                    tracing::debug!(%reason, "outcome of a change is unknown");
                    self.renew_session(pending, &owner).await?;
                }
                Err(failure) => {
                    self.vitals().refused(&failure);
                    return Err(failure.into_storage("change a log in PostgreSQL"));
                }
            }
            tokio::time::sleep(pause(tries)).await;
        }
    }

    /// Makes sure that what was sent under the session before does not come any more.
    async fn renew_session(
        &mut self,
        pending: &PendingChange,
        owner: &Owner,
    ) -> Result<(), StorageError> {
        let run = self.run;
        let mut tries = 0;
        loop {
            let answer = match self.connection().await {
                Ok(connection) => {
                    let key = (vec![owner.log_id], vec![owner.epoch]);
                    connection.query(Query::Settle, &[&key.0, &key.1, &run]).await
                }
                Err(failure) => Err(failure),
            };
            match answer {
                Ok(rows) => {
                    let row = rows.first().ok_or_else(|| other_owner(pending))?;
                    pending.log.state.lock().session = row.get(1);
                    return Ok(());
                }
                Err(failure) if !self.may_try_on() => {
                    return Err(failure.into_storage("find out what became of a change"));
                }
                Err(_) => {
                    tries += 1;
                    tokio::time::sleep(pause(tries)).await;
                }
            }
        }
    }
}

/// Whether memory follows the change before the rows do.
const fn is_of_chunks(change: &Change) -> bool {
    match change {
        Change::Seal(_) | Change::Trim { .. } | Change::Replace { .. } => true,
        Change::SaveState { .. } | Change::NoteCompacted(_) | Change::BeginChunk(_) => false,
    }
}

/// By what a statement knows that its sender owns the log.
struct Owner {
    log_id: i64,
    epoch: i32,
    session: i64,
}

fn other_owner(pending: &PendingChange) -> StorageError {
    let message = format!("the log has another owner. partition=`{}`", pending.log.id);
    StorageError::new(ErrorKind::Fenced, message)
}

/// Whether the sender owns the log: then it is done.
async fn apply(connection: &Connection, owner: &Owner, change: &Change) -> Result<bool, Failure> {
    let Owner { log_id, epoch, session } = owner;
    let rows = match change {
        Change::Seal(facts) => {
            let Columns { base, next, max, first, last } = Columns::of(facts);
            let values: Params<'_> = &[
                log_id,
                epoch,
                session,
                &facts.number,
                &base,
                &next,
                &facts.bytes,
                &max,
                &first,
                &last,
            ];
            connection.query(Query::Seal, values).await?
        }
        Change::Trim { log_start, dropped } => {
            let start = log_start.get();
            let values: Params<'_> = &[log_id, epoch, session, &start, dropped];
            connection.query(Query::Trim, values).await?
        }
        Change::SaveState { at, state } => {
            let (at, state) = (at.get(), state.as_ref());
            connection.query(Query::SaveState, &[log_id, epoch, session, &at, &state]).await?
        }
        Change::NoteCompacted(note) => {
            let horizon = note.delete_horizon.map(Timestamp::as_millis);
            let values: Params<'_> = &[log_id, epoch, session, &note.clean_end.get(), &horizon];
            connection.query(Query::NoteCompacted, values).await?
        }
        Change::BeginChunk(number) => {
            connection.query(Query::BeginChunk, &[log_id, epoch, session, number]).await?
        }
        Change::Replace { number, facts, replaced } => {
            replace(connection, owner, *number, facts.as_ref(), replaced).await?
        }
    };
    Ok(rows.first().is_some_and(|row| row.get::<_, i64>(0) == 1))
}

/// A chunk in which nothing is goes itself, with those that it was to replace.
async fn replace(
    connection: &Connection,
    owner: &Owner,
    number: i64,
    facts: Option<&Facts>,
    replaced: &Vec<i64>,
) -> Result<Vec<Row>, Failure> {
    const SEALED: i16 = 1;
    const DROPPED: i16 = 2;
    let state = if facts.is_some() { SEALED } else { DROPPED };
    let Columns { base, next, max, first, last } = facts.map(Columns::of).unwrap_or_default();
    let bytes = facts.map_or(0, |facts| facts.bytes);
    let Owner { log_id, epoch, session } = owner;
    let values: Params<'_> = &[
        log_id, epoch, session, &number, &state, &base, &next, &bytes, &max, &first, &last,
        replaced,
    ];
    connection.query(Query::Replace, values).await
}

/// Facts as columns have them.
#[derive(Default)]
struct Columns {
    base: i64,
    next: i64,
    max: Option<i64>,
    first: i64,
    last: i64,
}

impl Columns {
    fn of(facts: &Facts) -> Self {
        Self {
            base: facts.base.get(),
            next: facts.next.get(),
            max: facts.max_timestamp.map(Timestamp::as_millis),
            first: facts.first_at.as_millis(),
            last: facts.last_at.as_millis(),
        }
    }
}
