//! What became of a statement whose answer was lost.
//!
//! The old connection's backend may still be carrying it out, or find it in its buffer later. So the
//! log's row is asked by a statement that waits for whoever holds the row and raises its session: what
//! comes after that under the old session changes nothing. Where the log ends then is the outcome, and
//! the digest of its last entry says whose it is.

use strandline_model::Offset;
use strandline_storage::{ErrorKind, StorageError};

use super::group::Run;
use super::{Lane, end, other_owner};
use crate::connection::pause;
use crate::error::Failure;
use crate::sql::Query;
use crate::vitals::count;

/// What became of one run.
enum Outcome {
    /// It was carried out.
    Written,
    /// It was not, and never will be.
    NotWritten,
    /// The log has another owner.
    Fenced,
    /// The log ends where nobody can have put its end.
    Corrupt(StorageError),
}

/// A log as the settlement found it.
struct Found {
    log_id: i64,
    session: i64,
    end: Offset,
}

impl Lane {
    /// Settles the runs that were carried out, fails those that never can be, and leaves the others to
    /// be tried again.
    pub(super) async fn settle(&mut self, runs: &mut Vec<Run>) {
        let mut tries = 0;
        let outcomes = loop {
            match self.outcomes(runs).await {
                Ok(outcomes) => break outcomes,
                Err(failure) if self.may_try_on() => {
                    tries += 1;
                    tracing::debug!(?failure, tries, "outcome of an append is still unknown");
                    tokio::time::sleep(pause(tries)).await;
                }
                Err(failure) => {
                    // What was sent may still come; whoever opens the log next raises its epoch.
                    let error = failure.into_storage("find out what became of an append");
                    let error = StorageError::new(ErrorKind::Unavailable, error.to_string());
                    return runs.drain(..).for_each(|run| end(run, &error));
                }
            }
        };
        let mut left = Vec::new();
        for (run, outcome) in runs.drain(..).zip(outcomes) {
            match outcome {
                Outcome::Written => {
                    count(&self.vitals().counts.outcomes_done);
                    self.publish(run);
                }
                Outcome::NotWritten => {
                    count(&self.vitals().counts.outcomes_not_done);
                    left.push(run);
                }
                Outcome::Fenced => {
                    let error = other_owner(&run);
                    end(run, &error);
                }
                Outcome::Corrupt(error) => end(run, &error),
            }
        }
        *runs = left;
    }

    async fn outcomes(&mut self, runs: &[Run]) -> Result<Vec<Outcome>, Failure> {
        let run_id = self.run;
        let keys: Vec<_> = runs.iter().map(|run| (run.log_id, run.epoch.get())).collect();
        let connection = self.connection().await?;
        let (ids, epochs): (Vec<i64>, Vec<i32>) = keys.into_iter().unzip();
        let rows = connection.query(Query::Settle, &[&ids, &epochs, &run_id]).await?;
        let found: Vec<_> = rows
            .iter()
            .map(|row| Found {
                log_id: row.get(0),
                session: row.get(1),
                end: Offset::new(row.get(2)),
            })
            .collect();
        let mut outcomes = Vec::with_capacity(runs.len());
        for run in runs {
            let found = found.iter().find(|found| found.log_id == run.log_id);
            outcomes.push(match found {
                None => Outcome::Fenced,
                Some(found) => {
                    run.log.state.lock().session = found.session;
                    outcome(connection, run, found.end).await?
                }
            });
        }
        Ok(outcomes)
    }
}

async fn outcome(
    connection: &crate::connection::Connection,
    run: &Run,
    end: Offset,
) -> Result<Outcome, Failure> {
    let corrupt = |what: &str| {
        let (id, at, next) = (run.log.id, run.at, run.next);
        let message = format!("{what}. partition=`{id}`, end=`{end}`, append=`{at}..{next}`");
        tracing::error!("{message}");
        Outcome::Corrupt(StorageError::new(ErrorKind::Corrupt, message))
    };
    if end == run.at {
        return Ok(Outcome::NotWritten);
    }
    let last = run.entries.last().filter(|_| end == run.next);
    let Some(last) = last else {
        return Ok(corrupt("the database has lost appends or gained some"));
    };
    let params = (run.log_id, last.chunk, last.next.get());
    let rows = connection.query(Query::EntryAt, &[&params.0, &params.1, &params.2]).await?;
    let is_ours = rows.first().is_some_and(|row| {
        (row.get::<_, i32>(0), row.get::<_, i64>(1)) == (run.epoch.get(), last.digest)
    });
    Ok(if is_ours { Outcome::Written } else { corrupt("the last entry is not what was appended") })
}
