//! The workloads as data: what is run, by whom, and what must hold between the sides.

use serde::Serialize;

use super::database::Task;
use crate::contender::{Contender, Durability};

/// One comparison.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is run, for people.
    pub what: &'static str,
    /// Who runs it, in the order of a round.
    pub sides: Vec<Side>,
    /// What must, or should, hold.
    pub checks: Vec<Check>,
    /// More rounds than this take too long.
    pub rounds_max: usize,
}

/// One contender under one load.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Its name within the workload.
    pub label: &'static str,
    /// Who.
    pub contender: Contender,
    /// When acknowledgements are sent.
    pub durability: Durability,
    /// Under what.
    pub shape: Shape,
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// librdkafka produces.
    Produce(Volume),
    /// librdkafka consumes what was produced before.
    Consume(Volume),
    /// Prepared batches as raw frames.
    Batches(Volume),
    /// A raw consumer reads what was produced before.
    Fetch(Volume),
    /// One record a request on many connections.
    Unbatched(Many),
    /// The same, beside hostile peers.
    Besieged(Many),
    /// The same for some seconds, while retention removes this many segments; with none, quiet.
    Retained(Many, usize),
    /// The same, beside a topic of 4 GiB that lies there, or is deleted.
    Removal(Many, Fate),
    /// A log of 1 GiB that is compacted, or lies there, alone or beside the same.
    Compaction(Many, Pass),
    /// Nothing but a start.
    Start,
    /// Consumer groups at work.
    Groups(Crowd),
    /// Many topics that nobody uses.
    Estate(Lands),
    /// Records kept in PostgreSQL, or what it does by itself.
    Database(Task),
    /// Idle connections.
    Idle {
        /// How many.
        connections: usize,
    },
}

/// How much of what.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    /// Bytes of a record's value.
    pub value_bytes: usize,
    /// How many records.
    pub records: u64,
    /// Over how many partitions.
    pub partitions: usize,
}

/// How many connections to how many partitions.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    /// Connections with one request in flight each.
    pub connections: usize,
    /// Partitions that they spread over.
    pub partitions: usize,
}

/// Many topics.
#[derive(Clone, Copy, Debug)]
pub struct Lands {
    /// How many.
    pub topics: usize,
    /// Partitions of each.
    pub partitions: usize,
    /// Whether each partition has taken a record before it is left alone.
    pub written: bool,
}

/// What becomes of a topic that lies beside a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    Stays,
    /// It is deleted, and its bytes go.
    Goes,
}

/// What becomes of a log that can be compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Nothing, while others produce.
    None,
    /// It is compacted, and nobody produces.
    Alone,
    /// It is compacted while others produce.
    Beside,
}

/// Consumer groups.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Groups whose members work.
    pub groups: usize,
    /// Members of each.
    pub members: usize,
    /// Groups whose rebalances hang.
    pub hanging: usize,
    /// Members of a large group that join again and again; none: nothing is beside the others.
    pub crowd: usize,
    /// Whether members commit after each heartbeat.
    pub commits: bool,
}

/// What must hold.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// How much depends on it.
    pub kind: Kind,
    /// Which figure.
    pub metric: Metric,
    /// Of which side.
    pub of: &'static str,
    /// Divided by the same figure of this side; alone when `None`.
    pub against: Option<&'static str>,
    /// The bound.
    pub bound: Bound,
}

/// How much depends on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A release has it.
    Bar,
    /// We want it.
    Aim,
    /// For the reader.
    Note,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Records per second.
    RecordsPerSecond,
    /// Gigabytes of values per second.
    GigabytesPerSecond,
    /// Nanoseconds of the broker's processor time per record.
    CpuNanosPerRecord,
    /// Seconds of the broker's processor time per gigabyte of values.
    CpuSecondsPerGigabyte,
    /// The 99th percentile of request latency, in microseconds.
    P99Micros,
    /// The median of request latency, in microseconds.
    P50Micros,
    /// The longest request latency, in microseconds.
    WorstMicros,
    /// Milliseconds from a request that deletes a topic to its answer.
    DeleteMillis,
    /// Milliseconds from a deletion until nine tenths of the topic's bytes were gone.
    RemovedMillis,
    /// Milliseconds that a pass over a log took beside others' load, until the old files were gone.
    PassMillis,
    /// Milliseconds from the start of the process to its first answer.
    ReadyMillis,
    /// Resident memory at the end, in MiB.
    ResidentMib,
    /// The most of memory and page cache together, in MiB.
    PeakMib,
    /// The most resident memory, in MiB.
    ResidentPeakMib,
    /// Resident memory per idle connection, in KiB.
    KibPerConnection,
    /// Milliseconds from the question for all topics to the end of the answer.
    MetadataMillis,
    /// The same for the settings of all topics.
    DescribeMillis,
    /// Milliseconds from a request that changes all topics to its answer.
    AlterMillis,
    /// Resident memory per idle partition, in KiB.
    KibPerPartition,
    /// Milliseconds from the start of a process to its first answer, after `kill -9` of the one before.
    RestartMillis,
}

impl Metric {
    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RecordsPerSecond => "records/s",
            Self::GigabytesPerSecond => "GB/s",
            Self::CpuNanosPerRecord => "broker CPU ns/record",
            Self::CpuSecondsPerGigabyte => "broker CPU s/GB",
            Self::P99Micros => "p99 us",
            Self::P50Micros => "p50 us",
            Self::WorstMicros => "worst us",
            Self::DeleteMillis => "DeleteTopics answered after ms",
            Self::RemovedMillis => "4 GiB gone after ms",
            Self::PassMillis => "pass beside the load ms",
            Self::ReadyMillis => "ready ms",
            Self::ResidentMib => "resident MiB",
            Self::PeakMib => "peak memory and page cache MiB",
            Self::ResidentPeakMib => "peak resident MiB",
            Self::KibPerConnection => "KiB/connection",
            Self::MetadataMillis => "metadata of all topics ms",
            Self::DescribeMillis => "settings of all topics ms",
            Self::AlterMillis => "change of all topics ms",
            Self::KibPerPartition => "KiB/partition",
            Self::RestartMillis => "ready after kill -9 ms",
        }
    }
}

/// A bound of a check.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
    /// Whatever it is.
    Any,
}

impl Bound {
    /// Whether `figure` keeps it.
    pub fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(least) => figure >= least,
            Self::AtMost(most) => figure <= most,
            Self::Any => true,
        }
    }
}
