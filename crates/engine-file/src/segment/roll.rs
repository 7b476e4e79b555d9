//! When a segment is full.

use std::time::Duration;

use strandline_records::SealedBatches;
use strandline_storage::LogSettings;

use super::SegmentFacts;

/// Positions and relative offsets are 32-bit in the indexes, signed as Kafka's are.
const INDEX_FIELD_MAX: u64 = i32::MAX as u64;

/// Whether `incoming` must begin a segment of its own instead of going behind `active`.
///
/// Age is by the broker's clock, not by the records' timestamps as in Kafka: a producer's clock
/// never decides how long a segment lives.
pub(super) fn must_roll(
    active: &SegmentFacts,
    incoming: &SealedBatches,
    settings: &LogSettings,
) -> bool {
    if active.bytes == 0 {
        return false;
    }
    let bytes = active.bytes + incoming.size().get();
    let age_ms = incoming.appended_at().millis_since(active.first_appended_at);
    let records = (incoming.next_offset() - active.base_offset).get();
    let last_relative = records - 1;
    bytes > settings.segment_bytes.get()
        || records.cast_unsigned() > settings.segment_records
        || Duration::from_millis(age_ms.max(0).cast_unsigned()) >= settings.segment_age
        || bytes > INDEX_FIELD_MAX
        || last_relative.cast_unsigned() > INDEX_FIELD_MAX
}

#[cfg(test)]
mod tests {
    use strandline_model::{ByteCount, Offset, Timestamp};
    use strandline_storage::Durability;

    use super::*;
    use crate::segment::tests::batch;

    #[test]
    fn size_count_age_and_the_width_of_the_indexes_close_a_segment() {
        let settings = LogSettings {
            segment_bytes: ByteCount::new(1000),
            segment_records: 20,
            segment_age: Duration::from_millis(500),
            index_interval_bytes: ByteCount::new(100),
            durability: Durability::Commit,
        };
        let unlimited = LogSettings {
            segment_bytes: ByteCount::new(u64::MAX),
            segment_records: u64::MAX,
            segment_age: Duration::MAX,
            ..settings.clone()
        };
        let active = |bytes, base| SegmentFacts {
            base_offset: Offset::new(base),
            generation: 0,
            bytes,
            next_offset: Offset::new(100),
            max_timestamp: None,
            first_appended_at: Timestamp::from_millis(1000),
            last_appended_at: Timestamp::from_millis(1200),
        };
        let at = 1 << 33;
        // (bytes in the segment, its base offset, time of the append, settings, verdict)
        let size = batch(at, 1, 0, 0).size().get();
        let cases = [
            (0, 0, 9000, &settings, false),
            (1000 - size, at - 9, 1200, &settings, false),
            (1001 - size, at - 9, 1200, &settings, true),
            (1, at - 19, 1200, &settings, false),
            (1, at - 20, 1200, &settings, true),
            (1, at - 9, 1499, &settings, false),
            (1, at - 9, 1500, &settings, true),
            (1, at - 9, 3, &settings, false),
            (INDEX_FIELD_MAX - size, at - 9, 1200, &unlimited, false),
            (INDEX_FIELD_MAX - size + 1, at - 9, 1200, &unlimited, true),
            (1, at - i64::from(i32::MAX), 1200, &unlimited, false),
            (1, at - i64::from(i32::MAX) - 1, 1200, &unlimited, true),
        ];
        for (bytes, base, now, settings, verdict) in cases {
            let rolled = must_roll(&active(bytes, base), &batch(at, 1, 0, now), settings);
            assert_eq!(rolled, verdict, "bytes {bytes}, base {base}, now {now}");
        }
    }
}
