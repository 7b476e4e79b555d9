//! Every statement. Each is one round trip and a transaction of its own; values are parameters.
//!
//! A statement that changes a log names the epoch and the session of whoever believes to own it and
//! changes nothing when the log's row has others.

mod removal;
mod rows;
mod server;

use removal::{
    MARK_REMOVING, REMOVE_CHUNKS, REMOVE_ENTRIES, REMOVE_LOG, SWEEP_CHUNK, SWEEP_ENTRIES,
};
use rows::{COMMIT_ROWS, FIRST_ROWS, REMOVE_WRITERS, ROWS_AFTER, SETTLE_WRITER};
use server::{MARK_LOST, MOVE_PLACE, NOTE_PLACE, UPKEEP};

/// A statement that a connection prepares when it is first needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// Appends to several logs.
    Append,
    /// Appends one entry to one log.
    AppendOne,
    /// Finds out where logs end, and that nothing that is under way still comes.
    Settle,
    /// Epoch and digest of the entry that ends at an offset.
    EntryAt,
    /// Closes the active chunk.
    Seal,
    /// Raises the log start and drops chunks.
    Trim,
    /// Keeps a saved state.
    SaveState,
    /// Reads a saved state.
    LoadState,
    /// Keeps how far a log is compacted.
    NoteCompacted,
    /// Begins a chunk that is to take the place of others.
    BeginChunk,
    /// Adds an entry to it.
    AddEntry,
    /// Puts it in their place.
    Replace,
    /// Gives a begun chunk up.
    Discard,
    /// Claims a log.
    Claim,
    /// One log's row.
    Log,
    /// Logs' rows, from an id on.
    LogsFrom,
    /// Which partitions have a log.
    Partitions,
    /// The sealed chunks of a log.
    ChunksOf,
    /// The sealed and the dropped chunks of all logs, from one on.
    ChunksFrom,
    /// Gives up what openers before were writing in the place of chunks.
    DiscardAll,
    /// Entries from an offset on.
    Read,
    /// The first entry that reaches a timestamp.
    FindTimestamp,
    /// The last of the logs that come next.
    LogPage,
    /// Chunks of a range of logs whose last entry is missing.
    Lost,
    /// Marks a log as being removed.
    MarkRemoving,
    /// Removes the oldest entries of a log.
    RemoveEntries,
    /// Removes chunks of a log without entries.
    RemoveChunks,
    /// Removes what is left of a log without entries and chunks.
    RemoveLog,
    /// Removes the oldest entries of a dropped chunk.
    SweepEntries,
    /// Removes a dropped chunk without entries.
    SweepChunk,
    /// Puts a log into quarantine.
    Quarantine,
    /// Ends a quarantine.
    Release,
    /// The logs in quarantine.
    Quarantined,
    /// Marks the stop of a run as clean.
    Close,
    /// One metadata row.
    Row,
    /// The first metadata rows of a table.
    FirstRows,
    /// The metadata rows after a key.
    RowsAfter,
    /// Commits metadata rows.
    CommitRows,
    /// Finds out the last commit of a writer, and that none that is under way still comes.
    SettleWriter,
    /// Nothing but an answer.
    Pulse,
    /// What keeps dead rows from being removed, and how many there are.
    Upkeep,
    /// Marks a log that ends below what was acknowledged.
    MarkLost,
    /// Notes which server the database is on, where that was not noted before.
    NotePlace,
    /// Notes that it is another one, or another history: every log counts as not closed.
    MovePlace,
    /// Forgets writers, and those of runs that ended without closing.
    RemoveWriters,
}

impl Query {
    pub(crate) const COUNT: usize = Self::RemoveWriters as usize + 1;

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Append => APPEND,
            Self::AppendOne => APPEND_ONE,
            Self::Settle => SETTLE,
            Self::EntryAt => ENTRY_AT,
            Self::Seal => SEAL,
            Self::Trim => TRIM,
            Self::SaveState => SAVE_STATE,
            Self::LoadState => "SELECT at_offset, state FROM saved_states WHERE log_id = $1",
            Self::NoteCompacted => NOTE_COMPACTED,
            Self::BeginChunk => BEGIN_CHUNK,
            Self::AddEntry => ADD_ENTRY,
            Self::Replace => REPLACE,
            Self::Discard => DISCARD,
            Self::Claim => CLAIM,
            Self::Log => LOG,
            Self::LogsFrom => LOGS_FROM,
            Self::Partitions => "SELECT topic_id, partition FROM logs ORDER BY topic_id, partition",
            Self::ChunksOf => CHUNKS_OF,
            Self::ChunksFrom => CHUNKS_FROM,
            Self::DiscardAll => DISCARD_ALL,
            Self::Read => READ,
            Self::FindTimestamp => FIND_TIMESTAMP,
            Self::LogPage => LOG_PAGE,
            Self::Lost => LOST,
            Self::MarkRemoving => MARK_REMOVING,
            Self::RemoveEntries => REMOVE_ENTRIES,
            Self::RemoveChunks => REMOVE_CHUNKS,
            Self::RemoveLog => REMOVE_LOG,
            Self::SweepEntries => SWEEP_ENTRIES,
            Self::SweepChunk => SWEEP_CHUNK,
            Self::Quarantine => QUARANTINE,
            Self::Release => RELEASE,
            Self::Quarantined => QUARANTINED,
            Self::Close => CLOSE,
            Self::Row => "SELECT value FROM meta_rows WHERE tab = $1 AND key = $2",
            Self::FirstRows => FIRST_ROWS,
            Self::RowsAfter => ROWS_AFTER,
            Self::CommitRows => COMMIT_ROWS,
            Self::SettleWriter => SETTLE_WRITER,
            Self::Pulse => "SELECT 1",
            Self::Upkeep => UPKEEP,
            Self::MarkLost => MARK_LOST,
            Self::NotePlace => NOTE_PLACE,
            Self::MovePlace => MOVE_PLACE,
            Self::RemoveWriters => REMOVE_WRITERS,
        }
    }
}

/// Every log moves or stays by itself: those that did are returned. A chunk that an append closed
/// becomes a row.
const APPEND: &str = "
WITH moved AS (
    UPDATE logs l
    SET end_offset = m.next_offset, active_number = m.number, active_base = m.base,
        active_bytes = m.bytes, active_max_timestamp = m.max_timestamp,
        active_first_at = m.first_at, active_last_at = m.last_at,
        last_number = greatest(l.last_number, m.number)
    FROM unnest($1::int8[], $2::int4[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[],
                $8::int8[], $9::int8[], $10::int8[], $11::int8[])
        AS m(log_id, epoch, session, at, next_offset, number, base, bytes, max_timestamp, first_at,
             last_at)
    WHERE l.log_id = m.log_id AND l.epoch = m.epoch AND l.session = m.session
        AND l.end_offset = m.at
    RETURNING l.log_id, l.epoch
), added AS (
    INSERT INTO entries
        (log_id, chunk, next_offset, base_offset, epoch, digest, length, max_timestamp,
         newest_so_far, data)
    SELECT moved.log_id, e.chunk, e.next_offset, e.base, moved.epoch, e.digest, length(e.data),
           e.max_timestamp, e.newest_so_far, e.data
    FROM unnest($12::int8[], $13::int8[], $14::int8[], $15::int8[], $16::int8[], $17::int8[],
                $18::int8[], $19::bytea[])
        AS e(log_id, chunk, next_offset, base, digest, max_timestamp, newest_so_far, data)
    JOIN moved ON moved.log_id = e.log_id
), sealed AS (
    INSERT INTO chunks
        (log_id, number, state, base_offset, next_offset, bytes, max_timestamp, first_at, last_at)
    SELECT moved.log_id, s.number, 1, s.base, s.next_offset, s.bytes, s.max_timestamp, s.first_at,
           s.last_at
    FROM unnest($20::int8[], $21::int8[], $22::int8[], $23::int8[], $24::int8[], $25::int8[],
                $26::int8[], $27::int8[])
        AS s(log_id, number, base, next_offset, bytes, max_timestamp, first_at, last_at)
    JOIN moved ON moved.log_id = s.log_id
)
SELECT log_id FROM moved";

/// The same for one log and one entry that closes no chunk: two thirds of the database's processor time.
const APPEND_ONE: &str = "
WITH moved AS (
    UPDATE logs
    SET end_offset = $5, active_number = $6, active_base = $7, active_bytes = $8,
        active_max_timestamp = $9, active_first_at = $10, active_last_at = $11,
        last_number = greatest(last_number, $6)
    WHERE log_id = $1 AND epoch = $2 AND session = $3 AND end_offset = $4
    RETURNING log_id, epoch
)
INSERT INTO entries
    (log_id, chunk, next_offset, base_offset, epoch, digest, length, max_timestamp, newest_so_far,
     data)
SELECT log_id, $6::int8, $5::int8, $4::int8, epoch, $12::int8, length($14::bytea), $13::int8,
       $9::int8, $14::bytea
FROM moved
RETURNING log_id";

/// Waits for whatever holds the rows; what comes later under the old session changes nothing.
const SETTLE: &str = "
UPDATE logs l SET session = l.session + 1
FROM unnest($1::int8[], $2::int4[]) AS k(log_id, epoch)
WHERE l.log_id = k.log_id AND l.epoch = k.epoch AND l.opener = $3 AND l.is_open
    AND NOT l.is_removing AND l.quarantined_since IS NULL
RETURNING l.log_id, l.session, l.end_offset";

const ENTRY_AT: &str = "
SELECT epoch, digest FROM entries WHERE log_id = $1 AND chunk = $2 AND next_offset = $3";

const SEAL: &str = "
WITH owner AS (
    UPDATE logs
    SET active_number = 0, active_base = 0, active_bytes = 0, active_max_timestamp = NULL,
        active_first_at = 0, active_last_at = 0
    WHERE log_id = $1 AND epoch = $2 AND session = $3
    RETURNING log_id
), sealed AS (
    INSERT INTO chunks
        (log_id, number, state, base_offset, next_offset, bytes, max_timestamp, first_at, last_at)
    SELECT log_id, $4::int8, 1, $5::int8, $6::int8, $7::int8, $8::int8, $9::int8, $10::int8
    FROM owner
    ON CONFLICT (log_id, number) DO NOTHING
)
SELECT count(*) FROM owner";

const TRIM: &str = "
WITH owner AS (
    UPDATE logs SET log_start = greatest(log_start, $4::int8)
    WHERE log_id = $1 AND epoch = $2 AND session = $3
    RETURNING log_id
), dropped AS (
    UPDATE chunks c SET state = 2 FROM owner
    WHERE c.log_id = owner.log_id AND c.number = ANY($5::int8[])
)
SELECT count(*) FROM owner";

const SAVE_STATE: &str = "
WITH owner AS (
    SELECT log_id FROM logs WHERE log_id = $1 AND epoch = $2 AND session = $3 FOR UPDATE
), saved AS (
    INSERT INTO saved_states (log_id, at_offset, state)
    SELECT log_id, $4::int8, $5::bytea FROM owner
    ON CONFLICT (log_id) DO UPDATE SET at_offset = excluded.at_offset, state = excluded.state
)
SELECT count(*) FROM owner";

const NOTE_COMPACTED: &str = "
WITH owner AS (
    UPDATE logs SET clean_end = $4::int8, delete_horizon = $5::int8
    WHERE log_id = $1 AND epoch = $2 AND session = $3
    RETURNING log_id
)
SELECT count(*) FROM owner";

const BEGIN_CHUNK: &str = "
WITH owner AS (
    UPDATE logs SET last_number = greatest(last_number, $4::int8)
    WHERE log_id = $1 AND epoch = $2 AND session = $3
    RETURNING log_id
), begun AS (
    INSERT INTO chunks
        (log_id, number, state, base_offset, next_offset, bytes, max_timestamp, first_at, last_at)
    SELECT log_id, $4::int8, 0, 0, 0, 0, NULL, 0, 0 FROM owner
    ON CONFLICT (log_id, number) DO NOTHING
)
SELECT count(*) FROM owner";

/// Only while nobody has given the chunk up. A second try of the same entry adds nothing.
const ADD_ENTRY: &str = "
WITH begun AS (
    SELECT log_id, number FROM chunks WHERE log_id = $1 AND number = $2 AND state = 0 FOR SHARE
), added AS (
    INSERT INTO entries
        (log_id, chunk, next_offset, base_offset, epoch, digest, length, max_timestamp,
         newest_so_far, data)
    SELECT log_id, number, $3::int8, $4::int8, $5::int4, $6::int8, length($9::bytea), $7::int8,
           $8::int8, $9::bytea
    FROM begun
    ON CONFLICT (log_id, chunk, next_offset) DO NOTHING
)
SELECT count(*) FROM begun";

/// A chunk that is in its place already was put there before, and the answer was lost.
const REPLACE: &str = "
WITH owner AS (
    UPDATE logs SET epoch = epoch WHERE log_id = $1 AND epoch = $2 AND session = $3
    RETURNING log_id
), replacement AS (
    UPDATE chunks c
    SET state = $5::int2, base_offset = $6, next_offset = $7, bytes = $8, max_timestamp = $9,
        first_at = $10, last_at = $11
    FROM owner WHERE c.log_id = owner.log_id AND c.number = $4 AND c.state = 0
    RETURNING c.log_id
), replaced AS (
    UPDATE chunks c SET state = 2 FROM replacement
    WHERE c.log_id = replacement.log_id AND c.number = ANY($12::int8[])
)
SELECT count(*) FROM owner
WHERE EXISTS (SELECT FROM replacement)
    OR EXISTS (SELECT FROM chunks c WHERE c.log_id = $1 AND c.number = $4 AND c.state = $5)";

const DISCARD: &str = "
UPDATE chunks SET state = 2 WHERE log_id = $1 AND number = $2 AND state = 0";

/// By whoever has seen the row's session (0: that there is no row), so that a claim that comes late
/// takes the log from nobody.
const CLAIM: &str = "
INSERT INTO logs (topic_id, partition, epoch, opener, is_open) VALUES ($1, $2, $3, $4, true)
ON CONFLICT (topic_id, partition) DO UPDATE
SET epoch = greatest(excluded.epoch, logs.epoch
        + CASE WHEN logs.is_open AND NOT ($5 AND logs.opener = $4) THEN 1 ELSE 0 END),
    found_unclean = logs.is_open AND NOT ($5 AND logs.opener = $4),
    session = logs.session + 1, opener = $4, is_open = true
WHERE logs.session = $6 AND NOT logs.is_removing AND logs.quarantined_since IS NULL
    AND logs.lost_end IS NULL
RETURNING log_id, topic_id, partition, epoch, session, is_open, found_unclean, log_start,
    end_offset, active_number, active_base, active_bytes, active_max_timestamp, active_first_at,
    active_last_at, last_number, clean_end, delete_horizon, is_removing, remaining,
    quarantined_since, lost_end";

const LOG: &str = "
SELECT log_id, topic_id, partition, epoch, session, is_open, found_unclean, log_start, end_offset,
    active_number, active_base, active_bytes, active_max_timestamp, active_first_at, active_last_at,
    last_number, clean_end, delete_horizon, is_removing, remaining, quarantined_since,
    lost_end
FROM logs WHERE topic_id = $1 AND partition = $2";

const LOGS_FROM: &str = "
SELECT log_id, topic_id, partition, epoch, session, is_open, found_unclean, log_start, end_offset,
    active_number, active_base, active_bytes, active_max_timestamp, active_first_at, active_last_at,
    last_number, clean_end, delete_horizon, is_removing, remaining, quarantined_since,
    lost_end
FROM logs WHERE log_id > $1 ORDER BY log_id LIMIT $2";

const CHUNKS_OF: &str = "
SELECT log_id, number, base_offset, next_offset, bytes, max_timestamp, first_at, last_at
FROM chunks WHERE log_id = $1 AND state = 1 ORDER BY base_offset";

const CHUNKS_FROM: &str = "
SELECT log_id, number, base_offset, next_offset, bytes, max_timestamp, first_at, last_at, state
FROM chunks WHERE (log_id, number) > ($1, $2) AND state > 0 ORDER BY log_id, number LIMIT $3";

const DISCARD_ALL: &str = "
UPDATE chunks SET state = 2 WHERE log_id = $1 AND number <= $2 AND state = 0
RETURNING log_id, number";

/// The first whatever its size, then those that begin within the budget.
const READ: &str = "
SELECT base_offset, next_offset, epoch, digest, data
FROM (
    SELECT base_offset, next_offset, epoch, digest, data,
           sum(length) OVER (ORDER BY next_offset) - length AS before
    FROM (
        SELECT * FROM entries WHERE log_id = $1 AND chunk = $2 AND next_offset > $3
        ORDER BY next_offset LIMIT 64
    ) first_entries
) sized
WHERE before < $4::int8 ORDER BY next_offset";

/// Halves what lies between the chunk's ends ($5, $6) until what reaches the time is the first entry
/// after `low`: twenty steps of the index for a million entries. What lies below $3 may have reached it
/// earlier, so that the entry's own time is asked for, too.
const FIND_TIMESTAMP: &str = "
WITH RECURSIVE search(low, high) AS (
    SELECT $5::int8, $6::int8
    UNION ALL
    SELECT CASE WHEN probe.newest_so_far >= $4 THEN s.low ELSE probe.next_offset END,
           CASE WHEN probe.newest_so_far >= $4 THEN s.low + (s.high - s.low) / 2 ELSE s.high END
    FROM search s CROSS JOIN LATERAL (
        SELECT next_offset, newest_so_far FROM entries
        WHERE log_id = $1 AND chunk = $2 AND next_offset > s.low + (s.high - s.low) / 2
        ORDER BY next_offset LIMIT 1
    ) probe
    WHERE s.low < s.high
)
SELECT base_offset, next_offset, data FROM entries
WHERE log_id = $1 AND chunk = $2
    AND next_offset > greatest($3, (SELECT max(low) FROM search)) AND max_timestamp >= $4
ORDER BY next_offset LIMIT 1";

const LOG_PAGE: &str = "
SELECT max(log_id) FROM (SELECT log_id FROM logs WHERE log_id > $1 ORDER BY log_id LIMIT $2) page";

/// A look into the index for each chunk: the planner must not read all entries instead.
const LOST: &str = "
SELECT l.topic_id, l.partition, c.number
FROM logs l CROSS JOIN LATERAL (
    SELECT number, next_offset FROM chunks WHERE log_id = l.log_id AND state = 1
    UNION ALL
    SELECT l.active_number, l.end_offset WHERE l.active_number > 0
) c LEFT JOIN LATERAL (
    SELECT true AS is_there FROM entries e
    WHERE e.log_id = l.log_id AND e.chunk = c.number AND e.next_offset = c.next_offset LIMIT 1
) e ON true
WHERE l.log_id > $1 AND l.log_id <= $2 AND NOT l.is_removing AND e.is_there IS NULL
ORDER BY l.log_id, c.number LIMIT 10000";

/// Of several calls the first moment counts. A call that comes late has an old session.
const QUARANTINE: &str = "
UPDATE logs SET quarantined_since = coalesce(quarantined_since, $3::int8), session = session + 1
WHERE topic_id = $1 AND partition = $2 AND session = $4
RETURNING quarantined_since";

const RELEASE: &str = "
UPDATE logs SET quarantined_since = NULL, session = session + 1
WHERE topic_id = $1 AND partition = $2 AND session = $3
RETURNING session";

const QUARANTINED: &str = "
SELECT l.topic_id, l.partition, l.quarantined_since,
    (l.active_bytes + coalesce(
        (SELECT sum(c.bytes) FROM chunks c WHERE c.log_id = l.log_id AND c.state = 1), 0))::int8
FROM logs l WHERE l.quarantined_since IS NOT NULL ORDER BY l.topic_id, l.partition";

const CLOSE: &str = "
UPDATE logs SET is_open = false
WHERE opener = $1 AND is_open AND NOT log_id = ANY($2::int8[])";
