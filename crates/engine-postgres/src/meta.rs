//! Rows of metadata.
//!
//! A commit is one serializable statement: its expectations, its changes, and the number of the commit
//! in the row of its writer. When the answer is lost the writer's row says whether the commit happened;
//! asking for it raises the writer's session, so that nothing under way comes later.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use strandline_storage::{
    BoxFuture, Change, CommitError, Expectation, Key, MetaBatch, MetaStore, Page, Row,
    StorageError, Table, Value,
};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::connection::{Connection, Connector, Isolation, Params, Pool, pause};
use crate::error::Failure;
use crate::sql::Query;
use crate::vitals::count;
use crate::{PostgresConfig, PostgresEngine};

/// Those who commit rows.
pub(crate) struct RowWriters {
    connector: Arc<Connector>,
    pool: Arc<Pool>,
    writers: Vec<Mutex<Writer>>,
    ids: Vec<i64>,
    next: AtomicUsize,
    commit_wait: Duration,
    is_closed: AtomicBool,
}

/// One of them.
struct Writer {
    id: i64,
    connection: Option<Connection>,
    /// 0: it must be asked for.
    session: i64,
    /// Of the last commit that was sent.
    number: i64,
}

/// What a commit came to.
enum Outcome {
    Done,
    Unexpected(usize),
    /// The writer's session is another: nothing happened.
    NotMine,
}

/// A batch as the statement takes it.
#[derive(Default)]
struct Columns {
    expected: (Vec<i16>, Vec<Bytes>, Vec<Option<Bytes>>),
    put: (Vec<i16>, Vec<Bytes>, Vec<Bytes>),
    gone: (Vec<i16>, Vec<Bytes>),
}

impl Columns {
    fn of(batch: MetaBatch) -> Self {
        let mut columns = Self::default();
        for expectation in batch.expectations {
            let (table, key, value) = match expectation {
                Expectation::Absent(table, key) => (table, key, None),
                Expectation::Equals(table, key, value) => (table, key, Some(value)),
            };
            columns.expected.0.push(number_of(table));
            columns.expected.1.push(key);
            columns.expected.2.push(value);
        }
        // The last change of a row wins; in order, so that two commits wait for each other only once.
        let mut last: BTreeMap<(Table, Key), Option<Value>> = BTreeMap::new();
        for change in batch.changes {
            match change {
                Change::Put(table, key, value) => last.insert((table, key), Some(value)),
                Change::Delete(table, key) => last.insert((table, key), None),
            };
        }
        for ((table, key), value) in last {
            if let Some(value) = value {
                columns.put.0.push(number_of(table));
                columns.put.1.push(key);
                columns.put.2.push(value);
            } else {
                columns.gone.0.push(number_of(table));
                columns.gone.1.push(key);
            }
        }
        columns
    }
}

fn number_of(table: Table) -> i16 {
    i16::from(table.number())
}

fn slices(bytes: &[Bytes]) -> Vec<&[u8]> {
    bytes.iter().map(AsRef::as_ref).collect()
}

impl Writer {
    /// Sends a commit under the next number.
    async fn send(&mut self, columns: &Columns) -> Result<Outcome, Failure> {
        let Some(connection) = &self.connection else { return Err(Failure::Lost("none".into())) };
        self.number += 1;
        let expected: Vec<Option<&[u8]>> =
            columns.expected.2.iter().map(|value| value.as_deref()).collect();
        let values: Params<'_> = &[
            &self.id,
            &self.session,
            &self.number,
            &columns.expected.0,
            &slices(&columns.expected.1),
            &expected,
            &columns.put.0,
            &slices(&columns.put.1),
            &slices(&columns.put.2),
            &columns.gone.0,
            &slices(&columns.gone.1),
        ];
        let rows = connection.query(Query::CommitRows, values).await?;
        let Some(row) = rows.first() else { return Ok(Outcome::NotMine) };
        if row.get::<_, i64>(0) == 0 {
            return Ok(Outcome::NotMine);
        }
        Ok(match row.get::<_, Option<i64>>(1) {
            None => Outcome::Done,
            Some(ordinal) => Outcome::Unexpected(usize::try_from(ordinal - 1).unwrap_or(0)),
        })
    }
}

impl RowWriters {
    pub(crate) fn new(connector: Arc<Connector>, pool: Arc<Pool>, config: &PostgresConfig) -> Self {
        // One more: whether writes work is found out under a name of its own.
        let ids: Vec<i64> = (0..=config.row_writers).map(|_| rand::random()).collect();
        let writer = |&id| Mutex::new(Writer { id, connection: None, session: 0, number: 0 });
        let writers = ids.iter().skip(1).map(writer).collect();
        let (next, is_closed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let commit_wait = config.commit_wait;
        Self { connector, pool, writers, ids, next, commit_wait, is_closed }
    }

    pub(crate) fn writer_ids(&self) -> Vec<i64> {
        self.ids.clone()
    }

    /// A writer that commits nothing.
    pub(crate) fn probe_id(&self) -> i64 {
        self.ids[0]
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        for writer in &self.writers {
            drop(writer.lock().await.connection.take());
        }
    }

    /// A writer that nobody uses, or the next one once it is free.
    async fn writer(&self) -> MutexGuard<'_, Writer> {
        if let Some(free) = self.writers.iter().find_map(|writer| writer.try_lock().ok()) {
            return free;
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.writers[turn % self.writers.len()].lock().await
    }

    /// Makes the writer ready. Says whether the commit of `number` happened.
    async fn settle(&self, writer: &mut Writer, number: i64) -> Result<bool, Failure> {
        if !writer.connection.as_ref().is_some_and(Connection::is_usable) {
            writer.connection = None;
            writer.session = 0;
            writer.connection = Some(self.connector.connect(Isolation::Serializable).await?);
        }
        let rows = self.pool.query(Query::SettleWriter, &[&writer.id]).await?;
        let Some(row) = rows.first() else { return Err(Failure::Lost("no writer".into())) };
        writer.session = row.get(0);
        Ok(row.get::<_, i64>(1) == number)
    }

    /// A commit that was not sent is given up after a while; one that was is found out about, however
    /// long that takes: who asked for it must not go on as if it had not happened.
    async fn commit(&self, batch: MetaBatch) -> Result<(), CommitError> {
        let columns = Columns::of(batch);
        let vitals = self.connector.vitals();
        // Nobody waits anew for a database that was waited for already.
        let gone_for = vitals.gone_for().unwrap_or_default();
        let until = Instant::now() + self.commit_wait.saturating_sub(gone_for);
        let busy = |_| Failure::Lost("the database is not reached, and others wait".into());
        let guard = tokio::time::timeout_at(until, self.writer()).await.map_err(busy);
        let mut guard = guard.map_err(refused)?;
        let writer = &mut *guard;
        let mut tries = 0;
        // What was sent and not answered.
        let mut unknown = None;
        loop {
            let is_ready = writer.session != 0
                && writer.connection.as_ref().is_some_and(Connection::is_usable);
            let answer = if is_ready && unknown.is_none() {
                let answer = writer.send(&columns).await;
                unknown = matches!(answer, Err(Failure::Lost(_))).then_some(writer.number);
                answer
            } else {
                match self.settle(writer, unknown.unwrap_or(-1)).await {
                    Ok(true) => {
                        count(&vitals.counts.outcomes_done);
                        return Ok(());
                    }
                    Ok(false) => {
                        if unknown.take().is_some() {
                            count(&vitals.counts.outcomes_not_done);
                        }
                        continue;
                    }
                    Err(failure) => Err(failure),
                }
            };
            let failure = match answer {
                Ok(Outcome::Done) => {
                    vitals.wrote();
                    return Ok(());
                }
                Ok(Outcome::Unexpected(index)) => return Err(CommitError::Unexpected { index }),
                Ok(Outcome::NotMine) => {
                    writer.session = 0;
                    continue;
                }
                Err(failure) => failure,
            };
            vitals.refused(&failure);
            let passes = failure.is_conflict() || matches!(failure, Failure::Lost(_));
            let is_known = unknown.is_none() || self.is_closed.load(Ordering::Acquire);
            if !passes || is_known && Instant::now() > until {
                writer.session = 0;
                return Err(refused(failure));
            }
            tries += 1;
            count(&vitals.counts.statements_retried);
            tokio::time::sleep(pause(tries)).await;
        }
    }
}

fn refused(failure: Failure) -> CommitError {
    failure.into_storage("commit rows to PostgreSQL").into()
}

impl MetaStore for PostgresEngine {
    fn get(&self, table: Table, key: Key) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let values: Params<'_> = &[&number_of(table), &key.as_ref()];
            let rows = self.shared.query("read a row", Query::Row, values).await?;
            Ok(rows.first().map(|row| Bytes::copy_from_slice(row.get::<_, &[u8]>(0))))
        })
    }

    fn scan(
        &self,
        table: Table,
        after: Option<Key>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Page, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            // One more, which says whether rows follow.
            let count = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let table = number_of(table);
            let rows = match &after {
                None => self.shared.query("read rows", Query::FirstRows, &[&table, &count]).await?,
                Some(key) => {
                    let values: Params<'_> = &[&table, &count, &key.as_ref()];
                    self.shared.query("read rows", Query::RowsAfter, values).await?
                }
            };
            let more = rows.len() > limit;
            let row = |row: &tokio_postgres::Row| Row {
                key: Bytes::copy_from_slice(row.get::<_, &[u8]>(0)),
                value: Bytes::copy_from_slice(row.get::<_, &[u8]>(1)),
            };
            Ok(Page { rows: rows.iter().take(limit).map(row).collect(), more })
        })
    }

    fn commit(&self, batch: MetaBatch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            self.shared.rows.commit(batch).await
        })
    }
}

impl fmt::Debug for RowWriters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowWriters").field("writers", &self.ids.len()).finish_non_exhaustive()
    }
}
