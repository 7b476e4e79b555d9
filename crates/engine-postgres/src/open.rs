//! Opening a log, and taking it out of service.

use std::sync::Arc;

use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_storage::{Completion, ErrorKind, Found, OpenLog, Opened, Removal, StorageError};

use crate::background::step_bytes;
use crate::connection::Params;
use crate::engine::Shared;
use crate::facts::Facts;
use crate::handle::PgLog;
use crate::row::{LogRow, columns_of};
use crate::sql::Query;
use crate::state::{Key, Log, Opener, State, fenced};

/// Logs that one history of the database may have; there are no more numbers than that in a lifetime.
const CACHE_ID_BITS: u32 = 40;

/// How often a change is tried that others came before.
const CHANGES_MAX: usize = 5;

/// Statements of one step of removal, each of which a rest follows.
const REMOVE_STATEMENTS_MAX: usize = 16;

/// Rows that such a statement looks at.
const REMOVE_ROWS_MAX: i64 = 256;

/// Who had a log open, and is told when what was submitted is done.
struct Former {
    opener: Option<Opener>,
    error: StorageError,
    log_id: i64,
}

/// The first session of a log: nobody opened it before.
const FIRST_SESSION: i64 = 1;

impl Shared {
    pub(crate) async fn open(self: &Arc<Self>, request: OpenLog) -> Result<Opened, StorageError> {
        self.check_open()?;
        let OpenLog { id, at_least, settings, listener } = request;
        let log = self.logs.known_or_new(id);
        let _turn = log.turn.lock().await;
        let turns = self.failover.turns();
        let (former, is_clean) = {
            let mut state = log.state.lock();
            if let Some(why) = state.withdrawn(id) {
                return Err(StorageError::new(ErrorKind::Invalid, why));
            }
            let is_clean = state.ended_well();
            let owner = state.epoch.next().max(at_least);
            (state.end_handle(fenced(id, owner)), is_clean)
        };
        self.tell_former(&log, former).await?;
        let row = self.claim(&log, at_least, is_clean).await?;
        let sealed = self.load_chunks(&row).await?;
        let found = match (row.session, row.found_unclean) {
            (FIRST_SESSION, _) => Found::Created,
            (_, true) => Found::Unclean,
            (_, false) => Found::Clean,
        };
        let opening = {
            let mut state = log.state.lock();
            state.take_rows(&row, sealed);
            state.cache_id = row.log_id | turns << CACHE_ID_BITS;
            state.opening += 1;
            state.opener = Some(Opener { listener, settings });
            state.fate = None;
            state.is_broken = false;
            state.is_rewriting = false;
            state.opening
        };
        if self.failover.turns() != turns {
            // What was claimed was a row of another history.
            let message = format!("the database failed over just now. partition=`{id}`");
            let error = StorageError::new(ErrorKind::Unavailable, message);
            log.kill(opening, &error);
            return Err(error);
        }
        let handle = PgLog {
            shared: Arc::clone(self),
            lane: self.lane(row.log_id),
            log_id: row.log_id,
            cache_id: row.log_id | turns << CACHE_ID_BITS,
            log: Arc::clone(&log),
            opening,
            epoch: row.epoch,
        };
        Ok(Opened { log: Arc::new(handle), epoch: row.epoch, found })
    }

    /// Claims a log, as it was seen a moment before.
    async fn claim(
        &self,
        log: &Log,
        at_least: LeaderEpoch,
        is_clean: bool,
    ) -> Result<LogRow, StorageError> {
        let (topic, partition) = columns_of(log.id);
        for _ in 0..CHANGES_MAX {
            let seen = self.look_up(log.id).await?;
            if let Some(row) = &seen {
                let mut state = log.state.lock();
                (state.removing, state.quarantined) = (row.removing, row.quarantined);
                state.lost = row.lost;
                if let Some(why) = state.withdrawn(log.id) {
                    return Err(StorageError::new(ErrorKind::Invalid, why));
                }
                if let Some(end) = row.lost {
                    return Err(StorageError::new(
                        ErrorKind::Corrupt,
                        lost_records(log.id, row.end_offset, end),
                    ));
                }
            }
            let session = seen.map_or(0, |row| row.session);
            let values: Params<'_> =
                &[&topic, &partition, &at_least.get(), &self.run, &is_clean, &session];
            let rows = self.query("open a log", Query::Claim, values).await?;
            if let Some(row) = rows.first() {
                return LogRow::of_row(row);
            }
        }
        Err(changes_hands(log.id))
    }

    /// A log's row.
    pub(crate) async fn look_up(&self, id: PartitionId) -> Result<Option<LogRow>, StorageError> {
        let (topic, partition) = columns_of(id);
        let rows = self.query("look up a log", Query::Log, &[&topic, &partition]).await?;
        rows.first().map(LogRow::of_row).transpose()
    }

    /// The sealed chunks of a log that was just claimed, whose newest entry must be there.
    async fn load_chunks(&self, row: &LogRow) -> Result<Vec<Facts>, StorageError> {
        // What openers before were writing in the place of chunks comes to nothing.
        let values: Params<'_> = &[&row.log_id, &row.last_number];
        let begun = self.query("open a log", Query::DiscardAll, values).await?;
        self.sweeps.add(row.log_id, begun.iter().map(|row| (row.get(1), 0)));
        let rows = self.query("open a log", Query::ChunksOf, &[&row.log_id]).await?;
        let sealed: Vec<_> = rows.iter().map(|row| Facts::of_row(row).1).collect();
        if let Some(newest) = row.active.or_else(|| sealed.last().copied()) {
            let values: Params<'_> = &[&row.log_id, &newest.number, &newest.next.get()];
            if self.query("open a log", Query::EntryAt, values).await?.is_empty() {
                let (id, end) = (row.id, newest.next);
                let message = format!("the newest entry is gone. partition=`{id}`, end=`{end}`");
                return Err(StorageError::new(ErrorKind::Missing, message));
            }
        }
        Ok(sealed)
    }

    /// Waits until what was submitted is done, and tells who had the log open.
    async fn tell_former(&self, log: &Log, former: Former) -> Result<(), StorageError> {
        if former.log_id != 0 {
            self.lane(former.log_id).barrier().await?;
        }
        let waiting: Vec<(_, Completion)> = std::mem::take(&mut log.state.lock().waiting);
        for (_, completion) in waiting {
            completion.settle(Err(former.error.clone()));
        }
        if let Some(Opener { listener, .. }) = former.opener {
            listener.died(&former.error);
        }
        Ok(())
    }

    pub(crate) async fn quarantine(
        &self,
        id: PartitionId,
        since: Timestamp,
    ) -> Result<(), StorageError> {
        self.check_open()?;
        let Some(log) = self.known(id) else {
            // Somebody else may have stored something.
            return self.mark_quarantine(id, since).await.map(drop);
        };
        let _turn = log.turn.lock().await;
        let former = {
            let mut state = log.state.lock();
            if state.removing.is_some() {
                let message = format!("log is being removed. partition=`{id}`");
                return Err(StorageError::new(ErrorKind::Invalid, message));
            }
            let message = format!("log is in quarantine. partition=`{id}`");
            state.end_handle(StorageError::new(ErrorKind::Closed, message))
        };
        self.tell_former(&log, former).await?;
        let marked = self.mark_quarantine(id, since).await?;
        log.state.lock().quarantined = marked;
        Ok(())
    }

    async fn mark_quarantine(
        &self,
        id: PartitionId,
        since: Timestamp,
    ) -> Result<Option<Timestamp>, StorageError> {
        let (topic, partition) = columns_of(id);
        for _ in 0..CHANGES_MAX {
            let Some(row) = self.look_up(id).await? else { return Ok(None) };
            let values: Params<'_> = &[&topic, &partition, &since.as_millis(), &row.session];
            let rows = self.query("set a log aside", Query::Quarantine, values).await?;
            if let Some(row) = rows.first() {
                return Ok(Some(Timestamp::from_millis(row.get(0))));
            }
        }
        Err(changes_hands(id))
    }

    pub(crate) async fn release(&self, id: PartitionId) -> Result<(), StorageError> {
        self.check_open()?;
        let (topic, partition) = columns_of(id);
        for _ in 0..CHANGES_MAX {
            let row = self.look_up(id).await?;
            let Some(row) = row.filter(|row| row.quarantined.is_some()) else { break };
            let values: Params<'_> = &[&topic, &partition, &row.session];
            self.query("end a quarantine", Query::Release, values).await?;
        }
        match self.look_up(id).await? {
            Some(row) if row.quarantined.is_some() => Err(changes_hands(id)),
            _ => {
                if let Some(log) = self.known(id) {
                    log.state.lock().quarantined = None;
                }
                Ok(())
            }
        }
    }

    pub(crate) async fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> Result<Removal, StorageError> {
        self.check_open()?;
        let known = self.known(id);
        let turn = match &known {
            Some(log) => Some(log.turn.lock().await),
            None => None,
        };
        if let Some(log) = &known {
            let former = {
                let mut state = log.state.lock();
                let message = format!("log is being removed. partition=`{id}`");
                state.end_handle(StorageError::new(ErrorKind::Closed, message))
            };
            self.tell_former(log, former).await?;
        }
        let (topic, partition) = columns_of(id);
        let rows = self.query("remove a log", Query::MarkRemoving, &[&topic, &partition]).await?;
        let Some(log_id) = rows.first().map(|row| row.get::<_, i64>(0)) else {
            self.logs.forget(id);
            return Ok(Removal::Done);
        };
        if let Some(log) = &known {
            let mut state = log.state.lock();
            let bytes = ByteCount::new(state.bytes());
            state.removing.get_or_insert(bytes);
            state.chunks.clear();
        }
        self.query("remove a log", Query::DiscardAll, &[&log_id, &i64::MAX]).await?;
        let mut after = known.as_ref().map(|log| log.state.lock().removed_to).unwrap_or_default();
        let removal = self.remove_entries(log_id, &mut after, budget).await?;
        if let Some(log) = &known {
            log.state.lock().removed_to = after;
        }
        if removal == Removal::Done {
            self.logs.forget(id);
        }
        drop(turn);
        Ok(removal)
    }

    /// Removes entries, and the rest when there are none.
    async fn remove_entries(
        &self,
        log_id: i64,
        after: &mut Key,
        budget: ByteCount,
    ) -> Result<Removal, StorageError> {
        let mut left = i64::try_from(budget.get()).unwrap_or(i64::MAX);
        let mut remaining = 1_i64;
        for _ in 0..REMOVE_STATEMENTS_MAX {
            let backlog = remaining.max(0).cast_unsigned();
            let bytes_max = left.min(step_bytes(backlog));
            let values: Params<'_> = &[&log_id, &bytes_max, &after.chunk, &after.next_offset];
            let answer = self.background.step(Query::RemoveEntries, values, backlog).await;
            let rows = answer.map_err(|failure| failure.into_storage("remove a log"))?;
            let Some(row) = rows.first() else { break };
            let (count, bytes): (i64, i64) = (row.get(0), row.get(1));
            let looked_at: i64 = row.get(3);
            if looked_at == 0 && *after == Key::default() {
                return self.remove_rows(log_id).await;
            }
            let newest = row.get::<_, Option<i64>>(4).zip(row.get(5));
            let is_end = count == looked_at && count < REMOVE_ROWS_MAX;
            // At the end once more from the beginning: nothing may be left before the log's row goes. The
            // same when nothing went: a statement whose answer was lost was at work on these entries.
            *after = newest
                .filter(|_| !is_end)
                .map(|(chunk, next_offset)| Key { chunk, next_offset })
                .unwrap_or_default();
            left -= bytes;
            remaining = row.get(2);
            if left <= 0 {
                break;
            }
        }
        Ok(Removal::Remaining(ByteCount::new(remaining.max(1).cast_unsigned())))
    }

    /// What is left of a log without entries: its chunks in small steps, then its own row.
    async fn remove_rows(&self, log_id: i64) -> Result<Removal, StorageError> {
        let mut done = 0_i64;
        for _ in 0..REMOVE_STATEMENTS_MAX {
            let rows = self.query("remove a log", Query::RemoveChunks, &[&log_id, &done]).await?;
            let Some(newest) = rows.first().and_then(|row| row.get(0)) else {
                self.query("remove a log", Query::RemoveLog, &[&log_id]).await?;
                return Ok(Removal::Done);
            };
            done = newest;
        }
        Ok(Removal::Remaining(ByteCount::new(1)))
    }
}

/// What a failover did to a log.
pub(crate) fn lost_records(id: PartitionId, left: Offset, end: Offset) -> String {
    format!(
        "the database lost acknowledged records in a failover. partition=`{id}`, left=`{left}`, \
         acknowledged=`{end}`"
    )
}

fn changes_hands(id: PartitionId) -> StorageError {
    let message = format!("the log changes hands just now. partition=`{id}`");
    StorageError::new(ErrorKind::Unavailable, message)
}

impl State {
    /// Ends whoever has the log open: nothing is submitted any more.
    fn end_handle(&mut self, error: StorageError) -> Former {
        let opener = if self.fate.is_none() { self.opener.take() } else { None };
        if opener.is_some() {
            self.fate = Some(error.clone());
        }
        Former { opener, error, log_id: self.log_id }
    }

    /// The last opening in this run was given up without anything unknown or lost.
    pub(crate) fn ended_well(&self) -> bool {
        self.opening > 0 && self.opener.is_none() && !self.is_broken && self.fate.is_none()
    }
}
