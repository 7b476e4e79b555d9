//! What people are told of retention: what is there of a topic, why, and when it goes; now, or as if
//! it were configured otherwise.

use strandline_model::{ByteCount, Offset, PartitionIndex, Timestamp};
use strandline_partition::retention::{Estimate, Policy, Reason, Verdict};
use strandline_storage::ChunkState;

use super::remains::{Remains, SegmentRemains};
use crate::Broker;

/// Why a segment that is beyond a limit is still there.
const AWAITING_CHECK: &str = "awaiting_check";

/// Why a segment of a partition is still there that is served to nobody.
const WITHHELD: &str = "withheld";

/// A topic as retention sees it.
#[derive(Clone, Debug)]
pub struct TopicRetention {
    /// Its name.
    pub topic: String,
    /// The time that retention goes by.
    pub now: Timestamp,
    /// When the last pass ended.
    pub checked_at: Option<Timestamp>,
    /// When the next pass is due.
    pub next_check_at: Option<Timestamp>,
    /// Milliseconds from one pass to the next.
    pub check_interval_ms: u64,
    /// `cleanup.policy` has `delete`.
    pub deletes: bool,
    /// `cleanup.policy` has `compact`.
    pub compacts: bool,
    /// `retention.ms`.
    pub retention_ms: Option<u64>,
    /// `retention.bytes`.
    pub retention_bytes: Option<ByteCount>,
    /// `retention.bytes.floor`.
    pub retention_bytes_floor: bool,
    /// `retention.records`.
    pub retention_records: Option<u64>,
    /// Keys that are kept with a value that can't be read: nothing goes by them.
    pub unreadable: Vec<&'static str>,
    /// Its partitions, those too of which nothing is stored.
    pub partitions: Vec<PartitionRetention>,
}

/// A partition as retention sees it.
#[derive(Clone, Debug)]
pub struct PartitionRetention {
    /// Which one.
    pub index: PartitionIndex,
    /// Its first readable offset.
    pub log_start_offset: Offset,
    /// The offset after its last record.
    pub log_end_offset: Offset,
    /// When a size or a count will take the oldest segment, and which one, if records go on coming as
    /// they came within the last hour: a guess.
    pub estimate: Option<(Timestamp, &'static str)>,
    /// Its segments, oldest first.
    pub segments: Vec<SegmentRetention>,
}

/// A segment, and what becomes of it.
#[derive(Clone, Debug)]
pub struct SegmentRetention {
    /// What people find it by: a file's name.
    pub name: String,
    /// The offset of its first record.
    pub base_offset: Offset,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// Bytes of its batches.
    pub bytes: ByteCount,
    /// Whether appends still go to it.
    pub is_open: bool,
    /// Whether all of it was compacted; `None` where the topic is not compacted.
    pub is_clean: Option<bool>,
    /// The newest timestamp of its records, by the producers' clocks.
    pub max_timestamp: Option<Timestamp>,
    /// When its first batch was appended.
    pub first_appended_at: Timestamp,
    /// When its last batch was appended.
    pub last_appended_at: Timestamp,
    /// Why it is still there: one of [`retention_reasons`].
    pub reason: &'static str,
    /// The key whose limit it is beyond, when it goes with the next pass.
    pub limit: Option<&'static str>,
    /// When its age makes it go, if nothing else does before.
    pub goes_at: Option<Timestamp>,
}

/// Why a segment may still be there: codes, each with what it means.
pub fn retention_reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    let awaiting =
        (AWAITING_CHECK, "It is beyond a limit and goes with the next pass of retention.");
    let withheld = (
        WITHHELD,
        "Something of its partition is gone, so that it is served to nobody: nothing of it goes by \
         retention until it is there again. /v1/storage says what is gone.",
    );
    let others = Reason::ALL.into_iter().map(|reason| (reason.code(), reason.meaning()));
    [awaiting, withheld].into_iter().chain(others)
}

impl Broker {
    /// What retention finds of a topic, as if `simulated` were set on it; `None` when there is none
    /// of that name. A value that can't be set is an error in words.
    pub fn retention(
        &self,
        name: &str,
        simulated: &[(String, String)],
    ) -> Result<Option<TopicRetention>, String> {
        let Some(topic) = self.registry().by_name(name) else { return Ok(None) };
        let settings = self
            .settings()
            .topic_with(&topic.settings(), simulated)
            .map_err(|error| error.to_string())?;
        let policy = settings.retention;
        let cleaner = self.cleaner();
        let Policy { deletes, compacts, bytes, bytes_are_a_floor, millis, records } = policy;
        let partitions = topic.partitions().into_iter().map(|slot| {
            let found =
                partition(slot.id().index, cleaner.remains(&topic, &slot, &policy), compacts);
            if slot.withheld().is_some() { withheld(found) } else { found }
        });
        Ok(Some(TopicRetention {
            topic: name.to_owned(),
            now: cleaner.now(),
            checked_at: cleaner.last_pass(),
            next_check_at: cleaner.next_pass(),
            check_interval_ms: u64::try_from(cleaner.interval().as_millis()).unwrap_or(u64::MAX),
            deletes,
            compacts,
            retention_ms: millis,
            retention_bytes: bytes,
            retention_bytes_floor: bytes_are_a_floor,
            retention_records: records,
            unreadable: settings.unreadable.keys().collect(),
            partitions: partitions.collect(),
        }))
    }
}

fn partition(
    index: PartitionIndex,
    remains: Option<Remains>,
    compacts: bool,
) -> PartitionRetention {
    let (log_start_offset, log_end_offset) = remains.as_ref().map_or_else(
        || (Offset::ZERO, Offset::ZERO),
        |remains| (remains.bounds.log_start, remains.bounds.written_end),
    );
    let estimate = remains.as_ref().and_then(|remains| remains.estimate);
    let estimate = estimate.map(|Estimate { at, cause }| (at, cause.name()));
    let clean_end = remains.as_ref().map(|remains| remains.clean_end).filter(|_| compacts);
    let segments = remains.map(|remains| remains.segments).unwrap_or_default();
    let segments = segments.into_iter().map(|remains| segment(remains, clean_end)).collect();
    PartitionRetention { index, log_start_offset, log_end_offset, estimate, segments }
}

/// The same while nobody is served and nothing goes: what was stored, some of which is gone.
fn withheld(mut partition: PartitionRetention) -> PartitionRetention {
    partition.estimate = None;
    for segment in &mut partition.segments {
        (segment.reason, segment.limit, segment.goes_at) = (WITHHELD, None, None);
    }
    partition
}

/// `clean_end`: of a log that is compacted, how far.
fn segment(remains: SegmentRemains, clean_end: Option<Offset>) -> SegmentRetention {
    let SegmentRemains { chunk, verdict } = remains;
    let (reason, limit, goes_at) = match verdict {
        Verdict::Goes(cause) => (AWAITING_CHECK, Some(cause.name()), None),
        Verdict::Stays { reason, until } => (reason.code(), None, until),
    };
    SegmentRetention {
        name: chunk.name,
        base_offset: chunk.base_offset,
        next_offset: chunk.next_offset,
        bytes: chunk.bytes,
        is_open: chunk.state == ChunkState::Active,
        is_clean: clean_end.map(|clean_end| chunk.next_offset <= clean_end),
        max_timestamp: chunk.max_timestamp,
        first_appended_at: chunk.first_appended_at,
        last_appended_at: chunk.last_appended_at,
        reason,
        limit,
        goes_at,
    }
}
