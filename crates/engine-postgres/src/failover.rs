//! Which server the database is on, and in which of its histories: a promotion, and a restore of a backup,
//! begin another one, from which commits may be missing.
//!
//! Every new connection tells. When it is another one than before, what memory holds is worth nothing: the
//! caches go, the rows of all logs are read again, every handle dies, and every log's next opening raises
//! its epoch. A log that ends below what was acknowledged has lost records. Its row is marked, and nobody
//! opens it until somebody takes the mark away: its offsets are given to no other records in silence.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use strandline_model::{LeaderEpoch, Offset, PartitionId};
use strandline_storage::{ErrorKind, StorageError};
use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::cache::Cache;
use crate::connection::Params;
use crate::error::Failure;
use crate::facts::Facts;
use crate::load::{DROPPED, PAGE_ROWS};
use crate::logs::Logs;
use crate::row::{LogRow, columns_of};
use crate::sql::Query;
use crate::state::Log;
use crate::vitals::{Vitals, count};

/// Any role may ask these. A standby has no end of its write-ahead log to ask for.
const WHERE_AM_I: &str = "
SELECT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
    CASE WHEN pg_is_in_recovery() THEN ''
        ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END";

/// A server, and a history of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    system: i64,
    timeline: String,
}

/// See the [module](self).
pub(crate) struct Failover {
    known: Mutex<Option<Place>>,
    /// How many histories there were before.
    turns: AtomicI64,
    logs: Arc<Logs>,
    caches: [Arc<Cache>; 2],
    vitals: Arc<Vitals>,
}

impl Failover {
    pub(crate) fn new(logs: Arc<Logs>, caches: [Arc<Cache>; 2], vitals: Arc<Vitals>) -> Self {
        Self { known: Mutex::new(None), turns: AtomicI64::new(0), logs, caches, vitals }
    }

    /// How many histories came to an end in this run: what is kept of one is not found in the next.
    pub(crate) fn turns(&self) -> i64 {
        self.turns.load(Ordering::Acquire)
    }

    /// Looks where a new connection leads, before anybody uses it.
    /// One whose commits are not durable at once (`is_relaxed`) may not be the first to see another place.
    pub(crate) async fn look(&self, client: &Client, is_relaxed: bool) -> Result<(), Failure> {
        let row = match client.query_one(WHERE_AM_I, &[]).await.map_err(|e| Failure::of(&e)) {
            Ok(row) => row,
            Err(Failure::Refused { message, .. }) => {
                tracing::debug!(reason = %message, "which server this is can't be asked");
                return Ok(());
            }
            Err(lost) => return Err(lost),
        };
        if row.get(0) {
            return Err(Failure::Lost("the server is a standby, which takes no writes".into()));
        }
        let place = Place { system: row.get(1), timeline: row.get(2) };
        let mut known = self.known.lock().await;
        match &*known {
            Some(before) if *before == place => return Ok(()),
            _ if is_relaxed => {
                return Err(Failure::Lost("the database is on another server".into()));
            }
            Some(before) => {
                tracing::warn!(
                    system = place.system,
                    timeline = place.timeline,
                    system_before = before.system,
                    timeline_before = before.timeline,
                    "the database is on another server, or in another history: reading all logs again"
                );
                self.turn(client, &place).await.map_err(|e| Failure::of(&e))?;
            }
            None => {
                if note(client, &place).await.map_err(|error| Failure::of(&error))? {
                    tracing::warn!(
                        system = place.system,
                        timeline = place.timeline,
                        "the database is on another server than it was, or in another history: \
                         leader epochs rise"
                    );
                }
            }
        }
        *known = Some(place);
        Ok(())
    }

    /// Everything that was known is known no more. Does no harm when it is begun anew after a failure.
    async fn turn(&self, client: &Client, place: &Place) -> Result<(), tokio_postgres::Error> {
        count(&self.vitals.counts.failovers);
        note(client, place).await?;
        self.turns.fetch_add(1, Ordering::AcqRel);
        self.caches.iter().for_each(|cache| cache.clear());
        let found = rows(client).await?;
        for log in self.logs.all() {
            let row = found.get(&log.id).map(|(row, _)| row);
            if let Some(end) = acknowledged_beyond(&log, row.map(|row| row.end_offset)) {
                mark_lost(client, &log, end, row).await?;
            }
        }
        let found = rows(client).await?;
        let message = "the database failed over: the log must be opened again";
        let error = StorageError::new(ErrorKind::Unavailable, message);
        for log in self.logs.all() {
            let opening = log.state.lock().opening;
            log.kill(opening, &error);
        }
        for (id, (row, chunks)) in found {
            self.logs.known_or_new(id).state.lock().take_rows(&row, chunks);
        }
        Ok(())
    }
}

/// What was acknowledged of a log, when that is more than what is there.
fn acknowledged_beyond(log: &Log, end: Option<Offset>) -> Option<Offset> {
    let state = log.state.lock();
    let acknowledged = state.bounds.durable_end;
    (state.removing.is_none() && acknowledged > end.unwrap_or(Offset::ZERO)).then_some(acknowledged)
}

async fn mark_lost(
    client: &Client,
    log: &Log,
    acknowledged: Offset,
    row: Option<&LogRow>,
) -> Result<(), tokio_postgres::Error> {
    let left = row.map_or(Offset::ZERO, |row| row.end_offset);
    tracing::error!(
        partition = %log.id, %acknowledged, %left,
        "the database lost acknowledged records in a failover; the partition is served to nobody"
    );
    let (topic, partition) = columns_of(log.id);
    let epoch: LeaderEpoch = log.state.lock().epoch;
    let text = Query::MarkLost.text();
    client.execute(text, &[&topic, &partition, &epoch.get(), &acknowledged.get()]).await?;
    Ok(())
}

/// Notes where the database is. Whether it was elsewhere: then every log counts as not closed.
async fn note(client: &Client, place: &Place) -> Result<bool, tokio_postgres::Error> {
    let Place { system, timeline } = place;
    client.execute(Query::NotePlace.text(), &[system, timeline]).await?;
    let row = client.query_one(Query::MovePlace.text(), &[system, timeline]).await?;
    Ok(row.get::<_, i64>(0) > 0)
}

/// The rows of all logs. One that can't be read is told of, and left as it is known.
async fn rows(
    client: &Client,
) -> Result<BTreeMap<PartitionId, (LogRow, Vec<Facts>)>, tokio_postgres::Error> {
    let mut chunks = chunks(client).await?;
    let mut found = BTreeMap::new();
    let mut after = 0_i64;
    loop {
        let logs = client.query(Query::LogsFrom.text(), &[&after, &PAGE_ROWS]).await?;
        let Some(last) = logs.last() else { return Ok(found) };
        after = last.get(0);
        for row in &logs {
            match LogRow::of_row(row) {
                Ok(row) => {
                    let mut sealed = chunks.remove(&row.log_id).unwrap_or_default();
                    sealed.sort_unstable_by_key(|facts| facts.base);
                    found.insert(row.id, (row, sealed));
                }
                Err(error) => tracing::error!(%error, "the row of a log can't be read"),
            }
        }
    }
}

/// The sealed chunks of all logs.
async fn chunks(client: &Client) -> Result<BTreeMap<i64, Vec<Facts>>, tokio_postgres::Error> {
    let mut chunks: BTreeMap<i64, Vec<Facts>> = BTreeMap::new();
    let mut after = (0_i64, 0_i64);
    loop {
        let values: Params<'_> = &[&after.0, &after.1, &PAGE_ROWS];
        let rows = client.query(Query::ChunksFrom.text(), values).await?;
        let Some(last) = rows.last() else { return Ok(chunks) };
        after = (last.get(0), last.get(1));
        for row in rows.iter().filter(|row| row.get::<_, i16>(8) != DROPPED) {
            let (log_id, facts) = Facts::of_row(row);
            chunks.entry(log_id).or_default().push(facts);
        }
    }
}

impl fmt::Debug for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failover").field("turns", &self.turns()).finish_non_exhaustive()
    }
}
