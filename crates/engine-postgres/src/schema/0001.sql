-- One row for each log: the only row that every append touches. No column that changes is indexed, so
-- its versions stay in one page (fillfactor leaves room) and cost no index anything.
CREATE TABLE logs (
    log_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_id uuid NOT NULL,
    partition integer NOT NULL,
    -- The epoch of the last opener, which run of a broker it was, and whether it has not closed.
    epoch integer NOT NULL,
    opener bigint NOT NULL,
    is_open boolean NOT NULL,
    found_unclean boolean NOT NULL DEFAULT false,
    -- Raised by every opening, and whenever somebody must know that nothing under way still comes.
    session bigint NOT NULL DEFAULT 1,
    log_start bigint NOT NULL DEFAULT 0,
    end_offset bigint NOT NULL DEFAULT 0,
    -- The chunk that grows; number 0: there is none.
    active_number bigint NOT NULL DEFAULT 0,
    active_base bigint NOT NULL DEFAULT 0,
    active_bytes bigint NOT NULL DEFAULT 0,
    active_max_timestamp bigint,
    active_first_at bigint NOT NULL DEFAULT 0,
    active_last_at bigint NOT NULL DEFAULT 0,
    last_number bigint NOT NULL DEFAULT 0,
    clean_end bigint NOT NULL DEFAULT 0,
    delete_horizon bigint,
    is_removing boolean NOT NULL DEFAULT false,
    remaining bigint NOT NULL DEFAULT 0,
    quarantined_since bigint,
    -- Where a failover found that what was acknowledged ended, though the log ends before: nobody opens it.
    lost_end bigint,
    UNIQUE (topic_id, partition),
    CHECK (partition >= 0 AND epoch >= 0 AND 0 <= log_start AND log_start <= end_offset),
    CHECK (active_base >= 0 AND active_bytes >= 0 AND clean_end >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Chunks that do not grow. State 0: being written by a compaction; 1: part of the log; 2: dropped, its
-- entries go in the background.
CREATE TABLE chunks (
    log_id bigint NOT NULL,
    number bigint NOT NULL,
    state smallint NOT NULL,
    base_offset bigint NOT NULL,
    next_offset bigint NOT NULL,
    bytes bigint NOT NULL,
    max_timestamp bigint,
    first_at bigint NOT NULL,
    last_at bigint NOT NULL,
    PRIMARY KEY (log_id, number),
    CHECK (number > 0 AND base_offset >= 0 AND next_offset >= base_offset AND bytes >= 0)
);

-- One row for each group of batches that was appended together: bytes as they came, never changed.
CREATE TABLE entries (
    log_id bigint NOT NULL,
    chunk bigint NOT NULL,
    next_offset bigint NOT NULL,
    base_offset bigint NOT NULL,
    epoch integer NOT NULL,
    digest bigint NOT NULL,
    length integer NOT NULL,
    max_timestamp bigint,
    -- The newest timestamp of the chunk up to the end of the entry: it never falls, so that a time is
    -- found by halves.
    newest_so_far bigint,
    data bytea NOT NULL,
    PRIMARY KEY (log_id, chunk, next_offset),
    CHECK (base_offset >= 0 AND next_offset > base_offset)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_cost_delay = 0
);
-- Batches are compressed by whoever sent them, or are not meant to be.
ALTER TABLE entries ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE saved_states (
    log_id bigint PRIMARY KEY,
    at_offset bigint NOT NULL CHECK (at_offset >= 0),
    state bytea NOT NULL
);

CREATE TABLE meta_rows (
    tab smallint NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (tab, key)
);

-- One row for each connection that commits rows: the number of its last commit, by which the outcome
-- of a commit whose answer was lost is known.
CREATE TABLE writers (
    writer bigint PRIMARY KEY,
    session bigint NOT NULL,
    number bigint NOT NULL,
    touched timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- Which server the tables are on, and in which of its histories: a promotion begins another.
CREATE TABLE place (
    is_only boolean PRIMARY KEY CHECK (is_only),
    system_identifier bigint NOT NULL,
    timeline text NOT NULL
);
