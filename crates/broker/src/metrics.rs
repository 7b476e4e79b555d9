//! What is counted while the broker works: plain atomics that a scrape walks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use strandline_coordination::group::RebalanceCause;
use strandline_model::ByteCount;
use strandline_partition::retention::Cause;
use strandline_wire::{ApiKey, ErrorCode};

use crate::fetch::{Asked, Found};
use crate::topic::Topic;

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often groups left a generation, by what happened.
#[derive(Debug, Default)]
pub struct RebalanceCounters([Counter; RebalanceCause::ALL.len()]);

impl RebalanceCounters {
    /// Each reason with its number.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RebalanceCause::ALL.iter().map(|cause| cause.name()).zip(self.0.iter().map(Counter::get))
    }

    pub(crate) fn add(&self, cause: RebalanceCause) {
        let counted = RebalanceCause::ALL.iter().zip(&self.0);
        for (_, counter) in counted.filter(|(one, _)| **one == cause) {
            counter.add(1);
        }
    }
}

/// What is counted of one topic.
#[derive(Debug, Default)]
pub struct TopicMetrics {
    /// Bytes of batches that were appended.
    pub received_bytes: Counter,
    /// Records that were appended.
    pub received_records: Counter,
    /// Bytes of batches that were sent to readers.
    pub sent_bytes: Counter,
    /// Batches that were refused.
    pub rejected_batches: Counter,
    /// What retention removed, by the limit that it was beyond.
    removed: [RemovedMetrics; Cause::ALL.len()],
}

/// What one limit removed of a topic.
#[derive(Debug, Default)]
pub struct RemovedMetrics {
    /// Segments.
    pub segments: Counter,
    /// Bytes of their batches.
    pub bytes: Counter,
}

impl TopicMetrics {
    /// What retention removed, by the key that sets the limit.
    pub fn removed_by(&self) -> impl Iterator<Item = (&'static str, &RemovedMetrics)> {
        Cause::ALL.iter().map(|cause| cause.name()).zip(&self.removed)
    }

    pub(crate) fn removed(&self, cause: Cause, segments: u64, bytes: ByteCount) {
        let causes = Cause::ALL.iter().zip(&self.removed);
        for (_, removed) in causes.filter(|(known, _)| **known == cause) {
            removed.segments.add(segments);
            removed.bytes.add(bytes.get());
        }
    }
}

/// Upper bounds of the buckets of [`ApiMetrics::buckets`], inclusive, in microseconds: a millisecond
/// to ten seconds, by about 2.5 each. What took longer is in one bucket more.
pub const BUCKET_BOUNDS_MICROS: [u64; 13] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// How often each error code came, `NONE` among them. What Kafka has not given out counts as
/// `UNKNOWN_SERVER_ERROR`.
#[derive(Debug)]
pub struct CodeCounters(Box<[Counter]>);

impl Default for CodeCounters {
    fn default() -> Self {
        Self(ErrorCode::all().iter().map(|_| Counter::default()).collect())
    }
}

impl CodeCounters {
    fn add(&self, code: i16) {
        let place =
            |code: i16| ErrorCode::all().binary_search_by_key(&code, |info| info.code.get());
        let unknown = ErrorCode::UNKNOWN_SERVER_ERROR.get();
        if let Ok(place) = place(code).or_else(|_| place(unknown)) {
            self.0[place].add(1);
        }
    }

    /// Codes that came, by Kafka's names, and how often.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counted = ErrorCode::all().iter().zip(&self.0);
        counted.map(|(info, counter)| (info.name, counter.get())).filter(|(_, count)| *count > 0)
    }
}

/// What is counted of one API.
#[derive(Debug, Default)]
pub struct ApiMetrics {
    /// Answers, each by the first error in it, or `NONE`.
    pub answers: CodeCounters,
    /// All codes in answers: one for each thing that was asked for.
    pub codes: CodeCounters,
    /// Requests that were answered, by the time from arrival to answer; not cumulative.
    pub buckets: [Counter; BUCKET_BOUNDS_MICROS.len() + 1],
    /// The sum of these times, in microseconds.
    pub micros: Counter,
}

impl ApiMetrics {
    /// Requests that were answered.
    pub fn requests(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    fn answered(&self, after: Duration) {
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKET_BOUNDS_MICROS.partition_point(|&bound| bound < micros);
        self.buckets[bucket].add(1);
        self.micros.add(micros);
    }
}

/// What the broker counts.
#[derive(Debug)]
pub struct Metrics {
    apis: Vec<(ApiKey, ApiMetrics)>,
    /// Connections that were opened.
    pub connections_opened: Counter,
    /// Connections that were closed.
    pub connections_closed: Counter,
    /// Connections that were closed because of what the peer sent.
    pub connections_refused: Counter,
    /// Positions of groups that were committed.
    pub offsets_committed: Counter,
    /// Positions of groups that were removed: deleted, expired, or gone with their topic.
    pub offsets_removed: Counter,
    /// Groups that left a generation.
    pub group_rebalances: RebalanceCounters,
    /// Partitions of which retention removed nothing, because their log failed.
    pub retention_failures: Counter,
    /// Bytes of deleted topics that were freed.
    pub deletion_freed_bytes: Counter,
    /// Steps of deletions that failed.
    pub deletion_failures: Counter,
    /// Looks at an engine, and logs that no topic knows, that reconciliation failed with.
    pub reconciliation_failures: Counter,
    /// Passes of compaction that came to their end.
    pub compaction_passes: Counter,
    /// Passes that failed.
    pub compaction_failures: Counter,
    /// Bytes of segments that compaction looked at, when it came to its end.
    pub compaction_read_bytes: Counter,
    /// Bytes of the segments that took the place of others.
    pub compaction_written_bytes: Counter,
    /// Records that compaction removed.
    pub compaction_removed_records: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let apis = strandline_wire::served().iter().map(|api| (api.key, ApiMetrics::default()));
        Self {
            apis: apis.collect(),
            connections_opened: Counter::default(),
            connections_closed: Counter::default(),
            connections_refused: Counter::default(),
            offsets_committed: Counter::default(),
            offsets_removed: Counter::default(),
            group_rebalances: RebalanceCounters::default(),
            retention_failures: Counter::default(),
            deletion_freed_bytes: Counter::default(),
            deletion_failures: Counter::default(),
            reconciliation_failures: Counter::default(),
            compaction_passes: Counter::default(),
            compaction_failures: Counter::default(),
            compaction_read_bytes: Counter::default(),
            compaction_written_bytes: Counter::default(),
            compaction_removed_records: Counter::default(),
        }
    }
}

impl Metrics {
    /// By API.
    pub fn apis(&self) -> &[(ApiKey, ApiMetrics)] {
        &self.apis
    }

    pub(crate) fn answered(&self, key: ApiKey, after: Duration) {
        if let Some(api) = self.api(key) {
            api.answered(after);
        }
    }

    /// Counts an answer with these codes.
    pub(crate) fn answer(&self, key: ApiKey, codes: impl Iterator<Item = i16>) {
        let Some(api) = self.api(key) else { return };
        let mut first = ErrorCode::NONE.get();
        for code in codes {
            api.codes.add(code);
            if ErrorCode::from_wire(first).is_none() {
                first = code;
            }
        }
        api.answers.add(first);
    }

    fn api(&self, key: ApiKey) -> Option<&ApiMetrics> {
        self.apis.iter().find(|(known, _)| *known == key).map(|(_, api)| api)
    }

    pub(crate) fn appended(topic: &Arc<Topic>, records: u32, size: ByteCount) {
        topic.metrics().received_bytes.add(size.get());
        topic.metrics().received_records.add(u64::from(records));
    }

    pub(crate) fn batch_refused(topic: &Arc<Topic>) {
        topic.metrics().rejected_batches.add(1);
    }

    pub(crate) fn fetched(asked: &[Asked], found: &[Found]) {
        for (asked, found) in asked.iter().zip(found) {
            if let Ok((topic, _)) = &asked.found {
                topic.metrics().sent_bytes.add(found.records.size().get());
            }
        }
    }
}
