//! What retention removes from a log, and why the rest is still there.
//!
//! Retention drops whole segments, oldest first: one walk that ends at the first segment that stays.
//! The background cleaner carries the choice out; the forecast is the same function, asked with a
//! later `now` or another policy, so what people are told is what happens.
//!
//! # Invariants
//! - A later `now` and lower limits never remove less.
//! - What is removed was durable, and is a prefix of the log.
//! - Size and count never take the segment with the newest records, except by Kafka's own reading of
//!   a limit of zero; time does.
//!
//! See docs/adr/0015-retention.md.

mod clock;
mod estimate;
mod reason;
mod roll;
mod time;

use strandline_model::{ByteCount, Offset, Timestamp};

pub use clock::{AHEAD_AT_START_MS_MIN, Disbelief, JUMP_HELD_BACK, JUMP_MS_MIN, TrustedClock};
pub use estimate::{Estimate, RATE_WINDOW, estimate};
pub use reason::{Cause, Reason};
pub use roll::{segment_bytes, segment_records};
pub use time::Sighting;

use time::Times;

/// A segment as retention sees it; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The offset of its first record.
    pub base_offset: Offset,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// Bytes of its batches.
    pub bytes: ByteCount,
    /// The newest timestamp of its records, by the producers' clocks; `None` when none has one.
    pub max_timestamp: Option<Timestamp>,
    /// When its first batch was appended, by the broker's clock.
    pub first_appended_at: Timestamp,
    /// When its last batch was appended, by the broker's clock.
    pub last_appended_at: Timestamp,
    /// Whether appends still go to it. Only the last one may be active.
    pub is_active: bool,
}

/// A log as retention sees it.
#[derive(Clone, Copy, Debug)]
pub struct LogView<'a> {
    /// Its segments, oldest first.
    pub segments: &'a [Segment],
    /// The first offset that may be read.
    pub log_start: Offset,
    /// The first offset that is not durable: what lies above is never removed.
    pub high_watermark: Offset,
    /// What was seen of it while its times lay in the future.
    pub sighting: Option<Sighting>,
    /// The latest that any clock says, believed or not: what one of them may have dated rightly does
    /// not lie in the future.
    pub latest: Timestamp,
}

/// What a topic keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `cleanup.policy` has `delete`. Without it only what lies below the log start goes.
    pub deletes: bool,
    /// `cleanup.policy` has `compact`.
    pub compacts: bool,
    /// `retention.bytes`.
    pub bytes: Option<ByteCount>,
    /// `retention.bytes.floor`: never below the limit, as Kafka reads it; else never above.
    pub bytes_are_a_floor: bool,
    /// `retention.ms`.
    pub millis: Option<u64>,
    /// `retention.records`.
    pub records: Option<u64>,
}

/// What becomes of a log now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where the log is to begin; `None` when nothing goes.
    pub log_start: Option<Offset>,
    /// The active segment is to be closed first: it goes, or what is old in it will go sooner.
    pub roll: bool,
    /// What becomes of each segment.
    pub verdicts: Vec<Verdict>,
}

/// What becomes of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes.
    Goes(Cause),
    /// It stays.
    Stays {
        /// Why.
        reason: Reason,
        /// When its age makes it go, if nothing else does before; `None` when age never does or
        /// can't be known yet.
        until: Option<Timestamp>,
    },
}

impl Choice {
    /// How many of the oldest segments go.
    pub fn going(&self) -> usize {
        self.verdicts.iter().take_while(|verdict| matches!(verdict, Verdict::Goes(_))).count()
    }
}

/// Decides what goes at `now`.
pub fn choose(log: &LogView<'_>, policy: &Policy, now: Timestamp) -> Choice {
    let mut walk = Walk::begin(log, policy, now);
    let verdicts: Vec<_> = log.segments.iter().map(|segment| walk.step(segment)).collect();
    let gone = verdicts.iter().take_while(|verdict| matches!(verdict, Verdict::Goes(_))).count();
    let log_start = gone.checked_sub(1).map(|last| log.segments[last].next_offset);
    let all_go = gone == verdicts.len();
    let roll = log.segments.last().is_some_and(|last| {
        last.is_active && (all_go || roll::is_overdue(last, policy, now, log.latest))
    });
    Choice { log_start: log_start.filter(|start| *start > log.log_start), roll, verdicts }
}

/// The walk over the segments of a log.
struct Walk<'a> {
    log: &'a LogView<'a>,
    policy: &'a Policy,
    now: Timestamp,
    times: Times,
    /// Everything up to here goes.
    goes_on: bool,
    /// Bytes of what is left.
    bytes: u64,
    /// When the segments before the next one, as far as they stay, will have gone by age.
    free_at: Option<Timestamp>,
}

/// Which limits a segment is beyond.
#[derive(Clone, Copy)]
struct Beyond {
    size: bool,
    count: bool,
    age: bool,
}

impl<'a> Walk<'a> {
    fn begin(log: &'a LogView<'a>, policy: &'a Policy, now: Timestamp) -> Self {
        let bytes = log.segments.iter().map(|segment| segment.bytes.get()).sum();
        let times = Times::new(log.sighting);
        Self { log, policy, now, times, goes_on: true, bytes, free_at: Some(now) }
    }

    fn step(&mut self, segment: &Segment) -> Verdict {
        let newest = self.times.newest(segment);
        let expires_at = self.policy.millis.map(|millis| expiry(newest, millis));
        let beyond = self.beyond(segment, expires_at);
        let cause = self.cause(segment, beyond);
        if let Some(cause) = cause
            && self.goes_on
            && segment.next_offset <= self.log.high_watermark
        {
            self.bytes -= segment.bytes.get();
            return Verdict::Goes(cause);
        }
        let is_blocked = !self.goes_on;
        self.goes_on = false;
        let is_known = newest <= self.now.max(self.log.latest);
        let known_expiry = expires_at.filter(|_| is_known);
        self.free_at = self.free_at.zip(known_expiry).map(|(free, expires)| free.max(expires));
        let reason = match cause {
            Some(_) if is_blocked => Reason::BehindBlocker,
            Some(_) => Reason::AboveHighWatermark,
            None => self.reason(segment, beyond, is_known),
        };
        Verdict::Stays { reason, until: self.free_at.filter(|_| self.policy.deletes) }
    }

    fn beyond(&self, segment: &Segment, expires_at: Option<Timestamp>) -> Beyond {
        let after = self.bytes - segment.bytes.get();
        let size = self.policy.bytes.is_some_and(|limit| {
            if self.policy.bytes_are_a_floor {
                after >= limit.get()
            } else {
                self.bytes > limit.get()
            }
        });
        let end = self.log.segments.last().map_or(segment.next_offset, |last| last.next_offset);
        let from = segment.base_offset.max(self.log.log_start);
        let records = (end - from).get().max(0).unsigned_abs();
        let count = self.policy.records.is_some_and(|limit| records > limit);
        Beyond { size, count, age: expires_at.is_some_and(|expires_at| self.now >= expires_at) }
    }

    fn cause(&self, segment: &Segment, beyond: Beyond) -> Option<Cause> {
        if segment.next_offset <= self.log.log_start {
            return Some(Cause::LogStart);
        }
        if !self.policy.deletes {
            return None;
        }
        let is_kept = self.is_last(segment);
        match beyond {
            Beyond { size: true, .. } if !is_kept || self.policy.bytes_are_a_floor => {
                Some(Cause::Bytes)
            }
            Beyond { count: true, .. } if !is_kept => Some(Cause::Records),
            Beyond { age: true, .. } => Some(Cause::Age),
            Beyond { .. } => None,
        }
    }

    /// Why a segment stays that no limit removes.
    fn reason(&self, segment: &Segment, beyond: Beyond, is_known: bool) -> Reason {
        let Policy { deletes, compacts, bytes, bytes_are_a_floor, millis, records } = *self.policy;
        match (deletes, compacts) {
            (false, true) => return Reason::CompactOnly,
            (false, false) => return Reason::PolicyEmpty,
            (true, _) => {}
        }
        if beyond.size || beyond.count {
            debug_assert!(self.is_last(segment), "only the last one outlives its limit");
            return Reason::OpenSegment;
        }
        match (millis, bytes, records) {
            (Some(_), ..) if !is_known => Reason::FutureTimestamp,
            (Some(_), ..) => Reason::NotExpired,
            (None, Some(limit), _) if bytes_are_a_floor && self.bytes > limit.get() => {
                Reason::SizeFloor
            }
            (None, Some(_), _) => Reason::SizeWithinLimit,
            (None, None, Some(_)) => Reason::CountWithinLimit,
            (None, None, None) => Reason::Unlimited,
        }
    }

    fn is_last(&self, segment: &Segment) -> bool {
        self.log.segments.last().is_some_and(|last| last.base_offset == segment.base_offset)
    }
}

/// The first moment at which a record of `newest` is older than `millis`, as Kafka counts: its age
/// must exceed the limit.
fn expiry(newest: Timestamp, millis: u64) -> Timestamp {
    newest.plus_millis(i64::try_from(millis).unwrap_or(i64::MAX).saturating_add(1))
}
