//! Appends of several logs as the parameters of one statement.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, checksum};
use strandline_model::{LeaderEpoch, Offset, Timestamp};
use strandline_storage::{Completion, StorageError};

use crate::connection::{Connection, Params};
use crate::error::Failure;
use crate::facts::Facts;
use crate::queue::PendingAppend;
use crate::sql::Query;
use crate::state::Log;

/// Bytes of one entry. Reached: the next append begins another; a larger append is one alone.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// What one log appends in a group.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) log: Arc<Log>,
    pub(super) log_id: i64,
    pub(super) cache_id: i64,
    pub(super) opening: u64,
    pub(super) epoch: LeaderEpoch,
    pub(super) at: Offset,
    pub(super) next: Offset,
    /// The growing chunk, once all of it is appended.
    active: Facts,
    closed: Vec<Facts>,
    pub(super) entries: Vec<NewEntry>,
    completions: Vec<Completion>,
}

/// A row to come.
#[derive(Debug)]
pub(super) struct NewEntry {
    pub(super) chunk: i64,
    pub(super) base: Offset,
    pub(super) next: Offset,
    pub(super) digest: i64,
    max_timestamp: Option<Timestamp>,
    newest_so_far: Option<Timestamp>,
    pub(super) data: Bytes,
}

/// The digest that an entry is known by.
pub(crate) fn digest(data: &[u8]) -> i64 {
    checksum(CrcAlgorithm::Crc64Nvme, data).cast_signed()
}

/// The runs of a group, by log. An append whose log has failed is settled at once.
pub(super) fn runs_of(group: Vec<PendingAppend>) -> Vec<Run> {
    let mut by_log: BTreeMap<i64, Vec<PendingAppend>> = BTreeMap::new();
    for append in group {
        let dead = {
            let state = append.log.state.lock();
            let is_dead = state.is_broken || state.opening != append.opening;
            if is_dead { Err(state.fate.clone()) } else { Ok(state.log_id) }
        };
        match dead {
            Ok(log_id) => by_log.entry(log_id).or_default().push(append),
            Err(fate) => append.completion.settle(Err(fate.unwrap_or_else(crate::error::closed))),
        }
    }
    by_log.into_iter().filter_map(|(log_id, appends)| Run::of(log_id, appends)).collect()
}

impl Run {
    fn of(log_id: i64, appends: Vec<PendingAppend>) -> Option<Self> {
        let (first, last) = (appends.first()?, appends.last()?);
        let (epoch, cache_id) = {
            let state = first.log.state.lock();
            (state.epoch, state.cache_id)
        };
        let mut run = Self {
            log: Arc::clone(&first.log),
            log_id,
            cache_id,
            opening: first.opening,
            epoch,
            at: first.batches.base_offset(),
            next: last.batches.next_offset(),
            active: last.placement.active,
            closed: appends.iter().filter_map(|append| append.placement.closed).collect(),
            entries: Vec::new(),
            completions: Vec::with_capacity(appends.len()),
        };
        let mut rest = appends.as_slice();
        while let Some(count) = entry_length(rest) {
            let (together, after) = rest.split_at(count);
            run.entries.push(NewEntry::of(together));
            rest = after;
        }
        run.completions.extend(appends.into_iter().map(|append| append.completion));
        Some(run)
    }

    /// Settles all tickets, in order.
    pub(super) fn settle(self, outcome: &Result<(), StorageError>) {
        for completion in self.completions {
            completion.settle(outcome.clone());
        }
    }
}

/// How many appends make the next entry; `None` when there are none.
fn entry_length(appends: &[PendingAppend]) -> Option<usize> {
    let chunk = appends.first()?.placement.active.number;
    let mut bytes = 0;
    let fits = appends.iter().take_while(|append| {
        bytes += append.batches.bytes().len();
        append.placement.active.number == chunk && bytes <= ENTRY_BYTES_MAX
    });
    Some(fits.count().max(1))
}

impl NewEntry {
    /// A copy, so that a small batch never keeps a large request alive.
    fn of(appends: &[PendingAppend]) -> Self {
        let size = appends.iter().map(|append| append.batches.bytes().len()).sum();
        let mut data = BytesMut::with_capacity(size);
        for append in appends {
            data.extend_from_slice(append.batches.bytes());
        }
        let (first, last) = (&appends[0], &appends[appends.len() - 1]);
        Self {
            chunk: first.placement.active.number,
            base: first.batches.base_offset(),
            next: last.batches.next_offset(),
            digest: digest(&data),
            max_timestamp: appends.iter().filter_map(|one| one.batches.max_timestamp()).max(),
            newest_so_far: last.placement.active.max_timestamp,
            data: data.freeze(),
        }
    }
}

/// Columns of facts.
#[derive(Default)]
struct Columns {
    log: Vec<i64>,
    number: Vec<i64>,
    base: Vec<i64>,
    next: Vec<i64>,
    bytes: Vec<i64>,
    max_timestamp: Vec<Option<i64>>,
    first_at: Vec<i64>,
    last_at: Vec<i64>,
}

impl Columns {
    fn push(&mut self, log_id: i64, facts: &Facts) {
        self.log.push(log_id);
        self.number.push(facts.number);
        self.base.push(facts.base.get());
        self.next.push(facts.next.get());
        self.bytes.push(facts.bytes);
        self.max_timestamp.push(facts.max_timestamp.map(Timestamp::as_millis));
        self.first_at.push(facts.first_at.as_millis());
        self.last_at.push(facts.last_at.as_millis());
    }
}

/// Appends all runs, in one statement. Returns the ids of the logs that took theirs.
pub(super) async fn append(connection: &Connection, runs: &[Run]) -> Result<Vec<i64>, Failure> {
    if let [run] = runs
        && let ([entry], []) = (run.entries.as_slice(), run.closed.as_slice())
    {
        return append_one(connection, run, entry).await;
    }
    let epochs: Vec<i32> = runs.iter().map(|run| run.epoch.get()).collect();
    // Not before: a settlement may have raised it.
    let sessions: Vec<i64> = runs.iter().map(|run| run.log.state.lock().session).collect();
    let at: Vec<i64> = runs.iter().map(|run| run.at.get()).collect();
    let (mut active, mut closed) = (Columns::default(), Columns::default());
    for run in runs {
        active.push(run.log_id, &run.active);
        run.closed.iter().for_each(|facts| closed.push(run.log_id, facts));
    }
    let entries =
        || runs.iter().flat_map(|run| run.entries.iter().map(|entry| (run.log_id, entry)));
    let logs: Vec<i64> = entries().map(|(log_id, _)| log_id).collect();
    let chunks: Vec<i64> = entries().map(|(_, entry)| entry.chunk).collect();
    let nexts: Vec<i64> = entries().map(|(_, entry)| entry.next.get()).collect();
    let bases: Vec<i64> = entries().map(|(_, entry)| entry.base.get()).collect();
    let digests: Vec<i64> = entries().map(|(_, entry)| entry.digest).collect();
    let stamps: Vec<Option<i64>> =
        entries().map(|(_, entry)| entry.max_timestamp.map(Timestamp::as_millis)).collect();
    let newest: Vec<Option<i64>> =
        entries().map(|(_, entry)| entry.newest_so_far.map(Timestamp::as_millis)).collect();
    let data: Vec<&[u8]> = entries().map(|(_, entry)| entry.data.as_ref()).collect();
    let values: Params<'_> = &[
        &active.log,
        &epochs,
        &sessions,
        &at,
        &active.next,
        &active.number,
        &active.base,
        &active.bytes,
        &active.max_timestamp,
        &active.first_at,
        &active.last_at,
        &logs,
        &chunks,
        &nexts,
        &bases,
        &digests,
        &stamps,
        &newest,
        &data,
        &closed.log,
        &closed.number,
        &closed.base,
        &closed.next,
        &closed.bytes,
        &closed.max_timestamp,
        &closed.first_at,
        &closed.last_at,
    ];
    let rows = connection.query(Query::Append, values).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Appends a run of one entry that closes no chunk.
async fn append_one(
    connection: &Connection,
    run: &Run,
    entry: &NewEntry,
) -> Result<Vec<i64>, Failure> {
    let session = run.log.state.lock().session;
    let Facts { number, base, bytes, max_timestamp, first_at, last_at, .. } = run.active;
    let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let values: Params<'_> = &[
        &run.log_id,
        &run.epoch.get(),
        &session,
        &run.at.get(),
        &run.next.get(),
        &number,
        &base.get(),
        &bytes,
        &millis(max_timestamp),
        &first_at.as_millis(),
        &last_at.as_millis(),
        &entry.digest,
        &millis(entry.max_timestamp),
        &entry.data.as_ref(),
    ];
    let rows = connection.query(Query::AppendOne, values).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
