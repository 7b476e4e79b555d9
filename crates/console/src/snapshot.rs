//! What is counted and measured, at one moment: plain numbers, read for every scrape.

use strandline_model::{ByteCount, NodeId, Offset, PartitionIndex, Timestamp};

use crate::Reconciliation;

/// The upper bounds of the buckets of [`Durations`]; a last bucket has none.
pub const BUCKET_BOUNDS_SECONDS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Everything that metrics are made of.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The version of the binary.
    pub version: &'static str,
    /// The commit that it was built from, when known.
    pub revision: Option<&'static str>,
    /// This broker.
    pub node_id: NodeId,
    /// How many brokers the cluster has.
    pub broker_count: u32,
    /// When the broker was started.
    pub started_at: Timestamp,
    /// Each API that was called.
    pub apis: Vec<ApiStats>,
    /// Each listener.
    pub listeners: Vec<ListenerStats>,
    /// Clients that ask where to connect and never arrive.
    pub clients_stranded: u64,
    /// Positions that groups have committed.
    pub offsets_committed: u64,
    /// Positions that are gone: deleted, expired, or with their topic.
    pub offsets_removed: u64,
    /// How often groups left a generation, by what happened; every reason is there.
    pub group_rebalances: Vec<(&'static str, u64)>,
    /// Partitions of which retention could remove nothing.
    pub retention_failures: u64,
    /// When retention last came to the end of a pass.
    pub retention_checked_at: Option<Timestamp>,
    /// Deleted topics whose bytes are not all gone, by state; every state is there.
    pub deletions: Vec<DeletionStats>,
    /// For how many seconds the oldest of them has been deleted.
    pub deletion_oldest_seconds: Option<f64>,
    /// Bytes of deleted topics that were freed.
    pub deletion_freed_bytes: u64,
    /// Steps of deletions that failed.
    pub deletion_failures: u64,
    /// Compaction of topics that keep the newest record of each key.
    pub compaction: CompactionStats,
    /// Each topic.
    pub topics: Vec<TopicStats>,
    /// Each storage engine in use.
    pub storage: Vec<StorageStats>,
    /// Failures of reconciliation.
    pub reconciliation_failures: u64,
    /// What was found last of each engine.
    pub reconciliation: Vec<Reconciliation>,
}

/// How compaction stands, and what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompactionStats {
    /// The dirty part of the dirtiest partition, from 0 to 1.
    pub max_dirty_ratio: f64,
    /// Partitions whose last pass failed.
    pub failing_partitions: u64,
    /// When a pass last came to its end.
    pub last_pass_at: Option<Timestamp>,
    /// Passes that came to their end.
    pub passes: u64,
    /// Passes that failed.
    pub failures: u64,
    /// Bytes of segments before.
    pub read_bytes: u64,
    /// Bytes of those that took their place.
    pub written_bytes: u64,
    /// Records that went.
    pub removed_records: u64,
}

/// Deleted topics in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionStats {
    /// Which: `grace`, `running`.
    pub state: &'static str,
    /// How many.
    pub topics: u64,
    /// Bytes that they still have.
    pub bytes: u64,
}

/// The calls of one API.
#[derive(Clone, Debug)]
pub struct ApiStats {
    /// Kafka's name: `Produce`.
    pub request: &'static str,
    /// Answers, each by the first error in it; the good ones under `NONE`.
    pub answers: Vec<ErrorCount>,
    /// All codes in answers: one for each thing that was asked for, as Kafka counts them.
    pub codes: Vec<ErrorCount>,
    /// From the whole request read to its answer ready.
    pub duration: Durations,
}

/// How often something ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// In which: Kafka's name of an error code.
    pub error: &'static str,
    /// How often.
    pub count: u64,
}

/// One listener.
#[derive(Clone, Debug)]
pub struct ListenerStats {
    /// Its name.
    pub listener: String,
    /// Connections that are open.
    pub connections: u64,
}

/// One topic. Counters start at zero with the broker.
#[derive(Clone, Debug)]
pub struct TopicStats {
    /// Its name.
    pub topic: String,
    /// Bytes of batches taken from producers.
    pub received_bytes: u64,
    /// Records taken from producers.
    pub received_records: u64,
    /// Bytes of batches given to consumers.
    pub sent_bytes: u64,
    /// Batches refused, by error code.
    pub rejected: Vec<ErrorCount>,
    /// What retention removed, by limit.
    pub removed: Vec<RemovedStats>,
    /// Each partition.
    pub partitions: Vec<PartitionStats>,
}

/// What one limit of retention removed of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedStats {
    /// The key that sets the limit.
    pub limit: &'static str,
    /// Segments.
    pub segments: u64,
    /// Bytes of their batches.
    pub bytes: u64,
}

/// One partition.
#[derive(Clone, Copy, Debug)]
pub struct PartitionStats {
    /// Which one.
    pub partition: PartitionIndex,
    /// Whether its log is open: it was used a moment ago.
    pub is_open: bool,
    /// The first offset that may be read.
    pub log_start: Offset,
    /// The first offset that is not assigned yet.
    pub log_end: Offset,
    /// The first offset that is not durable yet.
    pub high_watermark: Offset,
    /// Bytes of its batches.
    pub size: ByteCount,
    /// Chunks that hold them.
    pub segments: u64,
    /// Bytes that are beyond a limit of retention and still there.
    pub overdue: ByteCount,
}

/// One storage engine.
#[derive(Clone, Debug)]
pub struct StorageStats {
    /// Its name: `file`, `memory`.
    pub engine: &'static str,
    /// Bytes that it occupies.
    pub used: ByteCount,
    /// Bytes of dropped chunks that are still there.
    pub dropped: ByteCount,
    /// Bytes that may still be written; `None` when the engine can't know.
    pub free: Option<ByteCount>,
    /// Syncs of its journal; `None` when it has none.
    pub fsync: Option<Durations>,
    /// Failures since the start, by what was tried.
    pub errors: Vec<(&'static str, u64)>,
    /// What the engine counts and measures beside: figures of one name have one help and one kind.
    pub figures: Vec<StorageFigure>,
}

/// Something that an engine counts or measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StorageFigure {
    /// Comes after `strandline_storage_`.
    pub name: &'static str,
    /// A line of help.
    pub help: &'static str,
    /// What tells those of one name apart.
    pub label: Option<(&'static str, &'static str)>,
    /// Its value.
    pub value: FigureKind,
}

/// The value of a [`StorageFigure`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureKind {
    /// Only rises.
    Count(u64),
    /// Rises and falls.
    Level(f64),
    /// How long things took.
    Durations(Durations),
}

/// How long things took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Durations {
    /// How many took at most as long as each of [`BUCKET_BOUNDS_SECONDS`] and longer than the one
    /// before; in the last, those that took longer than all.
    pub buckets: [u64; BUCKET_BOUNDS_SECONDS.len() + 1],
    /// All together.
    pub sum_seconds: f64,
}
