//! The rows about PostgreSQL as storage: beside `pgbench` and COPY on the same server.

use super::suite::{STRANDLINE, side};
use super::workload::{Bound, Check, Fate, Kind, Many, Metric, Shape, Side, Volume, Workload};
use crate::contender::Durability;

/// One record of this many bytes makes a batch of 1 KiB.
const VALUE_OF_1K: usize = 954;
/// And of 64 KiB.
const VALUE_OF_64K: usize = 65_464;
const MIB: u64 = 1 << 20;
/// What a consumer catches up with: 512 MiB.
const PAST: Volume = Volume { value_bytes: 1024, records: 512 * 1024, partitions: 1 };
/// A million records, about 1 GiB.
const DELETED: Volume = Volume { value_bytes: 1024, records: 1_000_000, partitions: 4 };
const BYSTANDERS: Many = Many { connections: 10, partitions: 10 };

/// What is done with a database.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// A broker that keeps its records there takes one record a request.
    Produce {
        /// On how many connections, to how many partitions.
        many: Many,
        /// Bytes of each record's value.
        value_bytes: usize,
    },
    /// pgbench appends, one entry a transaction.
    Single {
        /// On how many connections.
        connections: usize,
        /// Whether all append to one log.
        is_one_log: bool,
        /// Bytes of the value of the one record that is in an entry.
        value_bytes: usize,
    },
    /// One COPY puts entries into a table.
    CopyIn {
        /// How many bytes.
        bytes: u64,
        /// As above.
        value_bytes: usize,
    },
    /// A consumer reads all of a topic from a broker that has just started.
    CatchUp(Volume),
    /// One COPY reads what such a topic has in the database.
    CopyOut(Volume),
    /// One record a request beside a topic that lies there, or is deleted.
    Deletion(Many, Volume, Fate),
}

const fn task(label: &'static str, task: Task) -> Side {
    side(label, Durability::Disk, Shape::Database(task))
}

/// Strandline on PostgreSQL beside PostgreSQL.
fn pair(
    name: &'static str,
    what: &'static str,
    (reference, ideal): (&'static str, Task),
    ours: Task,
    metrics: &[(Kind, Metric, Bound)],
) -> Workload {
    let check = |&(kind, metric, bound)| Check {
        kind,
        metric,
        of: STRANDLINE,
        against: Some(reference),
        bound,
    };
    Workload {
        name,
        what,
        sides: vec![task(reference, ideal), task(STRANDLINE, ours)],
        checks: metrics.iter().map(check).collect(),
        rounds_max: usize::MAX,
    }
}

/// All rows.
pub(super) fn rows() -> Vec<Workload> {
    let (connections, value_bytes) = (16, 100);
    let single = |is_one_log| Task::Single { connections, is_one_log, value_bytes };
    let produce = |partitions| {
        let many = Many { connections, partitions };
        Task::Produce { many, value_bytes }
    };
    let commits = [
        (Kind::Bar, Metric::RecordsPerSecond, Bound::AtLeast(0.7)),
        (Kind::Note, Metric::P50Micros, Bound::Any),
        (Kind::Note, Metric::P99Micros, Bound::Any),
        (Kind::Note, Metric::CpuNanosPerRecord, Bound::Any),
    ];
    let speed = [(Kind::Note, Metric::GigabytesPerSecond, Bound::Any)];
    let batches = |value_bytes| {
        let many = Many { connections: 64, partitions: 16 };
        Task::Produce { many, value_bytes }
    };
    vec![
        pair(
            "postgres-commits",
            "16 connections to 16 partitions, one record a request, records in PostgreSQL; beside pgbench, which moves 16 rows and adds an entry of the same size in one statement",
            ("pgbench", single(false)),
            produce(16),
            &commits,
        ),
        pair(
            "postgres-hot",
            "the same, all to one partition; pgbench moves one row",
            ("pgbench", single(true)),
            produce(1),
            &commits,
        ),
        pair(
            "postgres-1k",
            "64 connections to 16 partitions, batches of 1 KiB; beside one COPY of 64 MiB in rows of that size",
            ("copy", Task::CopyIn { bytes: 64 * MIB, value_bytes: VALUE_OF_1K }),
            batches(VALUE_OF_1K),
            &speed,
        ),
        pair(
            "postgres-64k",
            "the same, batches of 64 KiB; beside one COPY of 512 MiB",
            ("copy", Task::CopyIn { bytes: 512 * MIB, value_bytes: VALUE_OF_64K }),
            batches(VALUE_OF_64K),
            &speed,
        ),
        pair(
            "postgres-catch-up",
            "a raw consumer reads 512 MiB of 1 KiB records in batches of 64 KiB from a broker that has just started; beside one COPY of the same rows",
            ("copy", Task::CopyOut(PAST)),
            Task::CatchUp(PAST),
            &speed,
        ),
        deletion(),
    ]
}

fn deletion() -> Workload {
    let check =
        |kind, metric, against, bound| Check { kind, metric, of: "deleting", against, bound };
    let deletion = |label, fate| task(label, Task::Deletion(BYSTANDERS, DELETED, fate));
    Workload {
        name: "postgres-deletion",
        what: "10 connections, one record a request, records in PostgreSQL, quiet and while a topic of 1 000 000 records of 1 KiB is deleted, until its rows are gone",
        sides: vec![deletion("quiet", Fate::Stays), deletion("deleting", Fate::Goes)],
        checks: vec![
            check(Kind::Bar, Metric::DeleteMillis, None, Bound::AtMost(20.0)),
            check(Kind::Bar, Metric::P99Micros, Some("quiet"), Bound::AtMost(1.5)),
            check(Kind::Note, Metric::WorstMicros, Some("quiet"), Bound::Any),
            check(Kind::Note, Metric::RecordsPerSecond, Some("quiet"), Bound::Any),
            check(Kind::Note, Metric::PassMillis, None, Bound::Any),
        ],
        rounds_max: 5,
    }
}
