//! What compaction does with a log: whether it is due, which segments take part, and what becomes of
//! each record.
//!
//! A pass notes the newest offset of each key of the dirty part ([`OffsetMap`], [`note_keys`]), then
//! goes through everything from the log's beginning and writes it anew without the records that a
//! newer one of their key supersedes ([`Cleaning`]). Records keep their offsets, so readers meet
//! holes. The background cleaner reads, writes and replaces; here it is decided.
//!
//! # Invariants
//! - The newest record of a key never goes, unless it deletes the key, its delete horizon is over,
//!   and nothing older of the key is left below it.
//! - What lies at or above the last stable offset, and the active segment, take no part.
//! - A pass over what a pass left, at the same time, changes nothing.
//!
//! See KIP-58, KIP-354, KIP-534 and docs/adr/0018-compaction.md.

mod clean;
mod hash;
mod map;

use std::ops::Range;

use strandline_model::{ByteCount, Offset, Timestamp};

pub use clean::{Cleaned, Cleaning, Noted, note_keys};
pub use map::{KEY_BYTES, MapFull, OffsetMap};

use crate::retention::Segment;

/// Offsets in a segment, counted from its base, are 32 bits wide and signed in the indexes.
const SEGMENT_OFFSETS_MAX: i64 = i32::MAX as i64;

/// How a topic wants to be compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// `cleanup.policy` has `compact`.
    pub compacts: bool,
    /// `min.cleanable.dirty.ratio`: more of the log than this must be dirty.
    pub min_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: how long a record stays as it is at least.
    pub min_lag_ms: u64,
    /// `max.compaction.lag.ms`: how long it may.
    pub max_lag_ms: u64,
    /// `delete.retention.ms`: how long a record that deletes its key can still be read.
    pub delete_retention_ms: u64,
}

/// A log as compaction sees it.
#[derive(Clone, Copy, Debug)]
pub struct LogView<'a> {
    /// Its segments, oldest first.
    pub segments: &'a [Segment],
    /// The first offset that may be read.
    pub log_start: Offset,
    /// From here on transactions may be open, or records not durable.
    pub last_stable_offset: Offset,
    /// Everything below was compacted.
    pub clean_end: Offset,
    /// The earliest delete horizon of what was compacted.
    pub delete_horizon: Option<Timestamp>,
}

/// What a pass over a log would do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Where the dirty part begins: keys are noted from here on.
    pub dirty_from: Offset,
    /// Where it ends, as far as it may be compacted; never below `dirty_from`.
    pub upto: Offset,
    /// How many of the oldest segments take part.
    pub segments_count: usize,
    /// Bytes of those that are clean.
    pub clean_bytes: ByteCount,
    /// Bytes of those that are not.
    pub cleanable_bytes: ByteCount,
    /// Why a pass is to begin; `None` when none is.
    pub due: Option<Due>,
    /// The active segment is to be closed: what is in it has waited for longer than it may.
    pub roll: bool,
}

/// Why a pass over a log is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// `max.compaction.lag.ms` is over.
    MaxLag,
    /// More of it than `min.cleanable.dirty.ratio` is dirty.
    DirtyRatio,
    /// Records that delete their keys have outlived their delete horizon by as long as that was away.
    DeleteHorizon,
}

impl Plan {
    /// Which part of what takes part is dirty, from 0 to 1.
    pub fn dirty_ratio(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let [clean, cleanable] =
            [self.clean_bytes, self.cleanable_bytes].map(|bytes| bytes.get() as f64);
        if cleanable > 0.0 { cleanable / (clean + cleanable) } else { 0.0 }
    }

    /// What is compacted first among many: what is overdue, then what is dirtiest.
    pub fn urgency(&self) -> (bool, f64) {
        (self.due == Some(Due::MaxLag), self.dirty_ratio())
    }
}

/// Decides about a log at `now`.
pub fn plan(log: &LogView<'_>, policy: &Policy, now: Timestamp) -> Plan {
    let end = log.segments.last().map_or(log.log_start, |last| last.next_offset);
    // A mark above the end is of another life of the log.
    let clean_end = if log.clean_end > end { Offset::ZERO } else { log.clean_end };
    let dirty_from = clean_end.max(log.log_start);
    let takes_part = |segment: &&Segment| is_cleanable(segment, log, policy, dirty_from, now);
    let segments_count = log.segments.iter().take_while(takes_part).count();
    let (part, _) = log.segments.split_at(segments_count);
    let is_clean = |segment: &&Segment| segment.next_offset <= dirty_from;
    let clean_bytes = part.iter().filter(is_clean).map(|segment| segment.bytes).sum();
    let dirty = || part.iter().filter(|segment| !is_clean(segment));
    let waited_too_long = |segment: &Segment| {
        u64::try_from(now.millis_since(segment.first_appended_at))
            .is_ok_and(|waited| waited > policy.max_lag_ms)
    };
    let horizon_is_over = log.delete_horizon.is_some_and(|horizon| {
        u64::try_from(now.millis_since(horizon))
            .is_ok_and(|over| over >= policy.delete_retention_ms)
    });
    let mut plan = Plan {
        dirty_from,
        upto: part.last().map_or(dirty_from, |last| last.next_offset.max(dirty_from)),
        segments_count,
        clean_bytes,
        cleanable_bytes: dirty().map(|segment| segment.bytes).sum(),
        due: None,
        roll: policy.compacts
            && log.segments.last().is_some_and(|last| {
                last.is_active && last.next_offset > dirty_from && waited_too_long(last)
            }),
    };
    plan.due = if !policy.compacts || part.is_empty() {
        None
    } else if dirty().next().is_some_and(waited_too_long) {
        Some(Due::MaxLag)
    } else if plan.dirty_ratio() > policy.min_dirty_ratio {
        Some(Due::DirtyRatio)
    } else if horizon_is_over {
        Some(Due::DeleteHorizon)
    } else {
        None
    };
    plan
}

/// Whether a segment may take part in a pass.
fn is_cleanable(
    segment: &Segment,
    log: &LogView<'_>,
    policy: &Policy,
    dirty_from: Offset,
    now: Timestamp,
) -> bool {
    if segment.is_active || segment.next_offset > log.last_stable_offset {
        return false;
    }
    if policy.min_lag_ms == 0 || segment.next_offset <= dirty_from {
        return true;
    }
    // By the earlier of both clocks: a date in the future does not keep a log from being compacted.
    let newest = segment
        .max_timestamp
        .map_or(segment.last_appended_at, |newest| newest.min(segment.last_appended_at));
    u64::try_from(now.millis_since(newest)).is_ok_and(|age_ms| age_ms >= policy.min_lag_ms)
}

/// Which adjacent segments become one: as many as fit `segment_bytes` as they are.
pub fn groups(segments: &[Segment], segment_bytes: ByteCount) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut bytes = ByteCount::ZERO;
    let mut begin = Offset::ZERO;
    for (index, segment) in segments.iter().enumerate() {
        let joins = groups.last_mut().filter(|_| {
            bytes + segment.bytes <= segment_bytes
                && (segment.next_offset - begin).get() <= SEGMENT_OFFSETS_MAX
        });
        if let Some(group) = joins {
            group.end = index + 1;
        } else {
            groups.push(index..index + 1);
            bytes = ByteCount::ZERO;
            begin = segment.base_offset;
        }
        bytes += segment.bytes;
    }
    groups
}
