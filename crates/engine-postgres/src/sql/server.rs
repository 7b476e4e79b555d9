//! What is asked about the server itself, and what follows when it is another one.

/// Of other users' sessions it sees what its role may: all of it with `pg_monitor`.
pub(super) const UPKEEP: &str = "
SELECT (SELECT coalesce(sum(n_dead_tup), 0)::int8 FROM pg_stat_user_tables
        WHERE schemaname = current_schema()),
    (SELECT coalesce(max(age(held.xmin)), 0)::int8
     FROM (SELECT backend_xmin FROM pg_stat_activity
           UNION ALL SELECT backend_xid FROM pg_stat_activity
           UNION ALL SELECT xmin FROM pg_replication_slots
           UNION ALL SELECT transaction FROM pg_prepared_xacts) AS held(xmin)),
    (SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::float8
     FROM pg_stat_activity WHERE backend_type = 'client backend')";

/// A log of which the database knows nothing any more begins with the mark.
pub(super) const MARK_LOST: &str = "
INSERT INTO logs (topic_id, partition, epoch, opener, is_open, lost_end)
VALUES ($1, $2, $3::int4, 0, true, $4::int8)
ON CONFLICT (topic_id, partition) DO UPDATE
SET lost_end = greatest(logs.lost_end, excluded.lost_end)
WHERE logs.end_offset < excluded.lost_end";

pub(super) const NOTE_PLACE: &str = "
INSERT INTO place (is_only, system_identifier, timeline) VALUES (true, $1, $2)
ON CONFLICT DO NOTHING";

pub(super) const MOVE_PLACE: &str = "
WITH moved AS (
    UPDATE place SET system_identifier = $1, timeline = $2
    WHERE (system_identifier, timeline) IS DISTINCT FROM ($1::int8, $2::text)
    RETURNING is_only
), opened AS (
    UPDATE logs SET is_open = true, opener = 0 FROM moved WHERE moved.is_only
)
SELECT count(*) FROM moved";
