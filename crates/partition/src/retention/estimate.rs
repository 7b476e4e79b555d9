//! When a size or a count will take the oldest segment, if records go on coming as they came.

use std::time::Duration;

use strandline_model::Timestamp;

use super::{Cause, LogView, Policy, Segment};

/// How far back is looked to know how fast records come.
pub const RATE_WINDOW: Duration = Duration::from_hours(1);

/// The least time that says anything about a rate, in milliseconds.
const WINDOW_MS_MIN: u64 = 1_000;

/// A guess: age is known, what producers will do is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// When the limit will be passed.
    pub at: Timestamp,
    /// Which one it will be.
    pub cause: Cause,
}

/// Guesses when `retention.bytes` or `retention.records`, whichever is first, will take the oldest
/// segment. `None` when neither is set, when it goes now, or when nothing came lately.
pub fn estimate(log: &LogView<'_>, policy: &Policy, now: Timestamp) -> Option<Estimate> {
    let oldest = log.segments.first().filter(|_| policy.deletes)?;
    let came = Came::until(log.segments, now)?;
    let bytes = policy.bytes.and_then(|limit| {
        let stored: u64 = log.segments.iter().map(|segment| segment.bytes.get()).sum();
        // The first size that takes it.
        let at = if policy.bytes_are_a_floor {
            limit.get().saturating_add(oldest.bytes.get())
        } else {
            limit.get().saturating_add(1)
        };
        came.time_for(at.saturating_sub(stored), came.bytes)
    });
    let records = policy.records.and_then(|limit| {
        let end = log.segments.last()?.next_offset;
        let held = (end - oldest.base_offset.max(log.log_start)).get().max(0).unsigned_abs();
        came.time_for(limit.saturating_add(1).saturating_sub(held), came.records)
    });
    let estimate = |millis: Option<i64>, cause| {
        millis.map(|millis| Estimate { at: now.plus_millis(millis), cause })
    };
    let all = [estimate(bytes, Cause::Bytes), estimate(records, Cause::Records)];
    all.into_iter().flatten().min_by_key(|estimate| estimate.at)
}

/// What came within some time before now.
struct Came {
    millis: u64,
    bytes: u64,
    records: u64,
}

impl Came {
    fn until(segments: &[Segment], now: Timestamp) -> Option<Self> {
        let window_ms = i64::try_from(RATE_WINDOW.as_millis()).unwrap_or(i64::MAX);
        let first = segments.first()?.first_appended_at;
        let begin = now.plus_millis(-window_ms).max(first);
        let millis = u64::try_from(now.millis_since(begin)).ok()?;
        if millis < WINDOW_MS_MIN {
            return None;
        }
        let mut came = Self { millis, bytes: 0, records: 0 };
        for segment in segments {
            let share = Share::of(segment, begin);
            came.bytes += share.of_count(segment.bytes.get());
            let records = (segment.next_offset - segment.base_offset).get().max(0).unsigned_abs();
            came.records += share.of_count(records);
        }
        Some(came)
    }

    /// Milliseconds until `needed` more will have come, where `came` did; `None` when nothing did, or
    /// when nothing more is needed.
    fn time_for(&self, needed: u64, came: u64) -> Option<i64> {
        let millis =
            (u128::from(needed) * u128::from(self.millis)).checked_div(u128::from(came))?;
        (needed > 0).then(|| i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

/// How much of a segment came after some moment, as if it had come evenly.
struct Share {
    after_ms: u64,
    whole_ms: u64,
}

impl Share {
    fn of(segment: &Segment, begin: Timestamp) -> Self {
        let since = |earlier: Timestamp| {
            u64::try_from(segment.last_appended_at.millis_since(earlier)).unwrap_or(0)
        };
        let whole_ms = since(segment.first_appended_at);
        if segment.last_appended_at < begin {
            return Self { after_ms: 0, whole_ms: 1 };
        }
        // What came in one moment came after it.
        if whole_ms == 0 {
            return Self { after_ms: 1, whole_ms: 1 };
        }
        Self { after_ms: since(begin).min(whole_ms), whole_ms }
    }

    fn of_count(&self, count: u64) -> u64 {
        let share = u128::from(count) * u128::from(self.after_ms) / u128::from(self.whole_ms);
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}
