//! How old a segment is, by clocks that may be wrong.
//!
//! Producers' clocks may be wrong in any way, the broker's clock may have jumped while it appended.
//! A segment's newest record counts as being from the earliest of
//!
//! - what its producer says;
//! - when it was appended, which is never before what lies below it was appended;
//! - when it was first seen, if all of these lay in the future then.
//!
//! So a date in the future makes nothing stay that is old, and a clock that was set back while a
//! segment was written does not make it old.

use strandline_model::{Offset, Timestamp};

use super::{LogView, Segment};

/// When a log was looked at whose times lay in the future: everything below `end` was there `at`
/// that time, so it can't be from later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When, by the latest of all clocks.
    pub at: Timestamp,
    /// The end of what was there.
    pub end: Offset,
}

impl Sighting {
    /// What to remember of `log` beside what was remembered before: only a log with times in the
    /// future needs it, and only until what was seen has gone.
    pub fn of(log: &LogView<'_>) -> Option<Self> {
        let now = log.latest;
        let first = log.segments.first()?;
        let end = log.segments.last()?.next_offset;
        // Seen in the future itself: the clock was set back since.
        let kept = log.sighting.filter(|seen| seen.at <= now && first.next_offset <= seen.end);
        kept.or_else(|| {
            let mut times = Times::new(None);
            let in_future = log.segments.iter().any(|segment| times.newest(segment) > now);
            in_future.then_some(Self { at: now, end })
        })
    }
}

/// The times of segments that are looked at oldest first.
pub(super) struct Times {
    sighting: Option<Sighting>,
    /// The latest append so far.
    appended: Option<Timestamp>,
}

impl Times {
    pub(super) const fn new(sighting: Option<Sighting>) -> Self {
        Self { sighting, appended: None }
    }

    /// When the newest record of `segment` is from, at the latest.
    pub(super) fn newest(&mut self, segment: &Segment) -> Timestamp {
        let appended = self.appended.max(Some(segment.last_appended_at));
        self.appended = appended;
        let seen = self.sighting.filter(|seen| segment.next_offset <= seen.end).map(|seen| seen.at);
        let times = [segment.max_timestamp, appended, seen];
        times.into_iter().flatten().min().unwrap_or(segment.last_appended_at)
    }
}
