//! What a database does without a broker: the least that a commit log asks of it.
//!
//! The ideal single statement is one transaction in one round trip that moves a log's row, if it is as
//! the sender believes, and adds an entry. Its tables have the columns, keys and storage parameters of
//! the engine's (`crates/engine-postgres/src/schema`). `pgbench` sends it, prepared, on as many
//! connections as there are producers: each waits for its commit, as a producer of one record a request
//! does. The server syncs for all that wait together, so nothing is left to gain but by fewer statements.
//!
//! On one log these connections stand in line: whoever moves the row holds it until its commit is on
//! disk. That is the ideal of a single statement for each append; a broker may do better, since it may
//! put several appends into one.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;

use super::server::{Database, run};
use crate::drive::{Latency, Load};

const TABLES: &str = "
CREATE TABLE logs (
    log_id bigint PRIMARY KEY, topic_id uuid NOT NULL, partition integer NOT NULL,
    epoch integer NOT NULL, opener bigint NOT NULL, is_open boolean NOT NULL,
    session bigint NOT NULL, log_start bigint NOT NULL, end_offset bigint NOT NULL,
    active_number bigint NOT NULL, active_base bigint NOT NULL, active_bytes bigint NOT NULL,
    active_max_timestamp bigint, active_first_at bigint NOT NULL, active_last_at bigint NOT NULL,
    last_number bigint NOT NULL, UNIQUE (topic_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE entries (
    log_id bigint NOT NULL, chunk bigint NOT NULL, next_offset bigint NOT NULL,
    base_offset bigint NOT NULL, epoch integer NOT NULL, digest bigint NOT NULL,
    length integer NOT NULL, max_timestamp bigint, newest_so_far bigint, data bytea NOT NULL,
    PRIMARY KEY (log_id, chunk, next_offset)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE entries ALTER COLUMN data SET STORAGE EXTERNAL;
INSERT INTO logs
SELECT n, gen_random_uuid(), n, 0, 1, true, 1, 0, 0, 1, 0, 0, NULL, 0, 0, 1
FROM generate_series(1, 64) n";

/// Each client knows where its log ends.
const OWN_LOG: &str = r"\set log :client_id + 1
\set next :at + 1
WITH moved AS (
    UPDATE logs SET end_offset = :next, active_number = 1, active_base = 0,
        active_bytes = active_bytes + :size, active_max_timestamp = :next, active_first_at = 1,
        active_last_at = :next
    WHERE log_id = :log AND epoch = 0 AND session = 1 AND end_offset = :at
    RETURNING log_id, epoch
)
INSERT INTO entries
SELECT log_id, 1, CAST(:next AS bigint), CAST(:at AS bigint), epoch, CAST(:at AS bigint),
    CAST(:size AS integer), CAST(:at AS bigint), CAST(:at AS bigint), CAST(:data AS bytea)
FROM moved;
\set at :next
";

/// All clients move one log: the row itself knows where it ends.
const ONE_LOG: &str = r"
WITH moved AS (
    UPDATE logs SET end_offset = end_offset + 1, active_number = 1, active_base = 0,
        active_bytes = active_bytes + :size, active_max_timestamp = end_offset, active_first_at = 1,
        active_last_at = end_offset
    WHERE log_id = 1 AND epoch = 0 AND session = 1
    RETURNING log_id, epoch, end_offset
)
INSERT INTO entries
SELECT log_id, 1, end_offset, end_offset - 1, epoch, end_offset, CAST(:size AS integer), end_offset,
    end_offset, CAST(:data AS bytea)
FROM moved;
";

/// What `COPY … (FORMAT binary)` begins and ends with.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const COPY_END: &[u8] = &[0xff, 0xff];

/// Connections that append one entry at a time.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// How many.
    pub connections: usize,
    /// Whether all append to one log, not each to its own.
    pub is_one_log: bool,
    /// Bytes of an entry.
    pub entry_bytes: usize,
    /// What ends in it does not count.
    pub warm_up: Duration,
    /// How long to measure after that.
    pub duration: Duration,
}

/// Appends entry by entry.
pub fn single(database: &Database, load: &Single) -> Result<Load> {
    database.sql(TABLES)?;
    let folder = tempfile::tempdir().context("make a folder for pgbench")?;
    let script = folder.path().join("script");
    fs::write(&script, if load.is_one_log { ONE_LOG } else { OWN_LOG })?;
    let seconds = (load.warm_up + load.duration).as_secs_f64().ceil() as u64;
    let mut pgbench = database.program("pgbench");
    pgbench.current_dir(folder.path()).args(["-n", "-M", "prepared", "-j", "2"]);
    pgbench.args(["-T", &seconds.to_string(), "-c", &load.connections.to_string()]);
    pgbench.args(["-D", "at=0", "-D", &format!("size={}", load.entry_bytes)]);
    pgbench.args(["-D", &format!("data=\\x{}", "a5".repeat(load.entry_bytes))]);
    pgbench.args(["-l", "--log-prefix=each"]).arg("-f").arg(&script).arg(&database.name);
    run(&mut pgbench)?;
    let mut text = String::new();
    for entry in fs::read_dir(folder.path())? {
        let path = entry?.path();
        if path != script {
            text.push_str(&fs::read_to_string(path)?);
        }
    }
    // A statement whose comparison failed adds nothing and is no error.
    let added: u64 = database.sql("SELECT count(*) FROM entries")?.parse()?;
    let done = text.lines().count() as u64;
    ensure!(added == done, "not every transaction added an entry. added=`{added}`, done=`{done}`");
    counted(&text, load)
}

/// The transactions behind the warm-up, as pgbench logged each.
fn counted(log: &str, load: &Single) -> Result<Load> {
    let mut each = Vec::new();
    for line in log.lines() {
        let fields: Vec<u64> = line.split(' ').map_while(|field| field.parse().ok()).collect();
        let [_client, _number, took_us, _script, seconds, micros] = fields[..] else {
            anyhow::bail!("a line of pgbench's log is not as expected. line=`{line}`");
        };
        let ended = Duration::new(seconds, micros as u32 * 1000);
        let took = Duration::from_micros(took_us);
        each.push((ended.saturating_sub(took), took));
    }
    let first = each.iter().map(|&(begun, _)| begun).min();
    let from = first.context("pgbench did nothing")? + load.warm_up;
    let mut nanos: Histogram<u64> = crate::drive::histogram();
    let mut last = from;
    for &(begun, took) in each.iter().filter(|&&(begun, _)| begun >= from) {
        nanos.saturating_record(took.as_nanos() as u64);
        last = last.max(begun + took);
    }
    Ok(Load {
        records: nanos.len(),
        bytes: nanos.len() * load.entry_bytes as u64,
        requests: nanos.len(),
        elapsed: last.saturating_sub(from).max(Duration::from_nanos(1)),
        latency: Some(Latency::of(&nanos)),
    })
}

/// Puts `bytes` in entries of `entry_bytes` into an empty table, by one COPY.
pub fn copy_in(database: &Database, bytes: u64, entry_bytes: usize) -> Result<Load> {
    database.sql(TABLES)?;
    let entries = bytes / entry_bytes as u64;
    let data = vec![0xa5; entry_bytes];
    let begin = Instant::now();
    database.copy_in("COPY entries FROM STDIN (FORMAT binary)", |out| {
        let mut out = std::io::BufWriter::with_capacity(1 << 20, out);
        out.write_all(COPY_HEADER)?;
        for number in 0..entries {
            out.write_all(&entry(number as i64, &data))?;
            out.write_all(&data)?;
        }
        out.write_all(COPY_END)?;
        out.flush()
    })?;
    let elapsed = begin.elapsed();
    let bytes = entries * entry_bytes as u64;
    Ok(Load { records: entries, bytes, requests: 1, elapsed, latency: None })
}

/// A row of `entries` up to the bytes of its data, as COPY reads it.
fn entry(number: i64, data: &[u8]) -> Vec<u8> {
    const COLUMNS: i16 = 10;
    let mut row = COLUMNS.to_be_bytes().to_vec();
    let mut put = |value: &[u8]| {
        row.extend_from_slice(&(value.len() as i32).to_be_bytes());
        row.extend_from_slice(value);
    };
    for value in [1, 1, number + 1, number] {
        put(&value.to_be_bytes());
    }
    put(&0_i32.to_be_bytes());
    put(&number.to_be_bytes());
    put(&(data.len() as i32).to_be_bytes());
    put(&number.to_be_bytes());
    put(&number.to_be_bytes());
    row.extend_from_slice(&(data.len() as i32).to_be_bytes());
    row
}

/// Reads the data of all entries that a broker has written, in the order of their logs.
pub fn copy_out(database: &Database) -> Result<Load> {
    let counted = database.sql("SELECT count(*), sum(length) FROM strandline.entries")?;
    let (entries, bytes) = counted.split_once('|').context("two columns")?;
    let (entries, bytes): (u64, u64) = (entries.parse()?, bytes.parse()?);
    let begin = Instant::now();
    let copied = database.copy_out(
        "COPY (SELECT data FROM strandline.entries ORDER BY log_id, chunk, next_offset) \
         TO STDOUT (FORMAT binary)",
    )?;
    let elapsed = begin.elapsed();
    ensure!(copied > bytes, "COPY gave less than there is. bytes=`{bytes}`, copied=`{copied}`");
    Ok(Load { records: entries, bytes, requests: 1, elapsed, latency: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_in_the_warm_up_does_not_count() {
        let load = Single {
            connections: 2,
            is_one_log: false,
            entry_bytes: 10,
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(2),
        };
        // client, number, microseconds, script, end as seconds and microseconds
        let log = "0 1 1000 0 100 1000\n\
                   1 1 500 0 101 400\n\
                   0 2 2000 0 101 2000\n\
                   1 2 4000 0 103 0\n";
        let counted = counted(log, &load).unwrap();
        assert_eq!((counted.records, counted.bytes), (2, 20));
        assert_eq!(counted.elapsed, Duration::from_secs(2));
        assert!(counted.latency.is_some_and(|latency| latency.p99_us > 3900.0));
        assert!(super::counted("pgbench says something\n", &load).is_err());
    }

    #[test]
    fn a_row_for_copy_has_ten_columns_and_ends_before_its_data() {
        let row = entry(7, &[1; 300]);
        let mut r = crate::frame::Reader::new(&row);
        assert_eq!(r.i16(), Some(10));
        let sizes: Vec<_> = (0..9)
            .map(|_| {
                let size = r.i32().unwrap();
                r.take(size as usize).unwrap();
                size
            })
            .collect();
        assert_eq!(sizes, [8, 8, 8, 8, 4, 8, 4, 8, 8]);
        assert_eq!(r.i32(), Some(300));
        assert_eq!(r.position(), row.len());
    }
}
