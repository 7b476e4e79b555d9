//! Segments as retention and compaction see them.

use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_partition::retention::Segment;

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Ten records of ten bytes each, stamped and appended at `time`.
pub(crate) fn segment(base: i64, time: i64) -> Segment {
    Segment {
        base_offset: Offset::new(base),
        next_offset: Offset::new(base + 10),
        bytes: ByteCount::new(100),
        max_timestamp: Some(at(time)),
        first_appended_at: at(time),
        last_appended_at: at(time),
        is_active: false,
    }
}
