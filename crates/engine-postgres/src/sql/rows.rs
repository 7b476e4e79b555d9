//! What is asked and changed of metadata rows.

pub(super) const FIRST_ROWS: &str =
    "SELECT key, value FROM meta_rows WHERE tab = $1 ORDER BY key LIMIT $2";

pub(super) const ROWS_AFTER: &str = "
SELECT key, value FROM meta_rows WHERE tab = $1 AND key > $3 ORDER BY key LIMIT $2";

/// In a serializable transaction. A value that is expected and not there is NULL.
pub(super) const COMMIT_ROWS: &str = "
WITH writer AS (
    SELECT writer FROM writers WHERE writer = $1 AND session = $2
), failed AS (
    SELECT min(e.ordinal) AS first
    FROM unnest($4::int2[], $5::bytea[], $6::bytea[]) WITH ORDINALITY
        AS e(tab, key, value, ordinal)
    LEFT JOIN meta_rows r ON r.tab = e.tab AND r.key = e.key
    WHERE r.value IS DISTINCT FROM e.value
), going AS (
    SELECT writer FROM writer, failed WHERE failed.first IS NULL
), noted AS (
    UPDATE writers w SET number = $3::int8, touched = now()
    FROM going WHERE w.writer = going.writer
), put AS (
    INSERT INTO meta_rows (tab, key, value)
    SELECT p.tab, p.key, p.value
    FROM unnest($7::int2[], $8::bytea[], $9::bytea[]) AS p(tab, key, value), going
    ON CONFLICT (tab, key) DO UPDATE SET value = excluded.value
), gone AS (
    DELETE FROM meta_rows r
    USING unnest($10::int2[], $11::bytea[]) AS d(tab, key), going
    WHERE r.tab = d.tab AND r.key = d.key
)
SELECT (SELECT count(*) FROM writer), (SELECT first FROM failed)";

pub(super) const SETTLE_WRITER: &str = "
INSERT INTO writers (writer, session, number) VALUES ($1, 1, 0)
ON CONFLICT (writer) DO UPDATE SET session = writers.session + 1, touched = now()
RETURNING session, number";

pub(super) const REMOVE_WRITERS: &str = "
DELETE FROM writers WHERE writer = ANY($1::int8[]) OR touched < now() - interval '1 day'";
