//! What takes logs, chunks and their entries away: each statement a bounded piece.

pub(super) const MARK_REMOVING: &str = "
WITH marked AS (
    UPDATE logs l
    SET is_removing = true, is_open = false, session = session + 1,
        remaining = l.active_bytes + coalesce(
            (SELECT sum(c.bytes) FROM chunks c WHERE c.log_id = l.log_id AND c.state = 1), 0)
    WHERE l.topic_id = $1 AND l.partition = $2 AND NOT l.is_removing
    RETURNING l.log_id
)
SELECT log_id FROM marked
UNION SELECT log_id FROM logs WHERE topic_id = $1 AND partition = $2";

/// Those behind a key: what went before leaves the index full of entries that would be walked over.
/// Tells how many it looked at, too: 256, unless these are the last.
pub(super) const REMOVE_ENTRIES: &str = "
WITH oldest AS (
    SELECT place, length, sum(length) OVER (ORDER BY chunk, next_offset) AS total
    FROM (
        SELECT ctid AS place, chunk, next_offset, length FROM entries
        WHERE log_id = $1 AND (chunk, next_offset) > ($3::int8, $4::int8)
        ORDER BY chunk, next_offset LIMIT 256
    ) first_entries
), gone AS (
    DELETE FROM entries
    WHERE ctid = ANY (ARRAY(SELECT place FROM oldest WHERE total <= $2::int8 OR total = length))
    RETURNING chunk, next_offset, length
), told AS (
    UPDATE logs SET remaining = greatest(remaining - (SELECT coalesce(sum(length), 0) FROM gone), 1)
    WHERE log_id = $1 AND is_removing
    RETURNING remaining
), last AS (
    SELECT chunk, next_offset FROM gone ORDER BY chunk DESC, next_offset DESC LIMIT 1
)
SELECT (SELECT count(*) FROM gone), (SELECT coalesce(sum(length), 0)::int8 FROM gone),
    (SELECT coalesce(max(remaining), 0) FROM told), (SELECT count(*) FROM oldest),
    (SELECT chunk FROM last), (SELECT next_offset FROM last)";

pub(super) const REMOVE_CHUNKS: &str = "
WITH gone AS (
    DELETE FROM chunks
    WHERE ctid = ANY (ARRAY(
        SELECT c.ctid FROM chunks c JOIN logs l USING (log_id)
        WHERE log_id = $1 AND l.is_removing AND number > $2 ORDER BY number LIMIT 4096))
    RETURNING number
)
SELECT max(number) FROM gone";

pub(super) const REMOVE_LOG: &str = "
WITH log AS (DELETE FROM logs WHERE log_id = $1 AND is_removing RETURNING log_id),
    chunk AS (DELETE FROM chunks c USING log WHERE c.log_id = log.log_id),
    state AS (DELETE FROM saved_states s USING log WHERE s.log_id = log.log_id)
SELECT count(*) FROM log";

pub(super) const SWEEP_ENTRIES: &str = "
WITH oldest AS (
    SELECT place, length, sum(length) OVER (ORDER BY next_offset) AS total
    FROM (
        SELECT ctid AS place, next_offset, length FROM entries
        WHERE log_id = $1 AND chunk = $2 AND next_offset > $4::int8
        ORDER BY next_offset LIMIT 256
    ) first_entries
), gone AS (
    DELETE FROM entries
    WHERE ctid = ANY (ARRAY(SELECT place FROM oldest WHERE total <= $3::int8 OR total = length))
    RETURNING next_offset
)
SELECT max(next_offset), (SELECT count(*) FROM oldest) FROM gone";

pub(super) const SWEEP_CHUNK: &str =
    "DELETE FROM chunks WHERE log_id = $1 AND number = $2 AND state = 2";
