//! A batch without records, for offsets of which nothing is left.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use strandline_model::{LeaderEpoch, Offset};

use crate::HEADER_BYTES;
use crate::batch::{
    BASE_OFFSET, BASE_SEQUENCE, BASE_TIMESTAMP, BATCH_LENGTH, LAST_OFFSET_DELTA, LEADER_EPOCH,
    LENGTH_OVERHEAD, MAGIC, MAX_TIMESTAMP, PRODUCER_EPOCH, PRODUCER_ID, write_crc, write_field,
};

/// Batches that span `offsets` and hold nothing: readers step over them, as over what compaction left
/// of a batch, and a log may end with them.
///
/// One spans up to 2^31 − 1 offsets, so there may be several. None for an empty range.
pub fn hole(offsets: Range<Offset>, epoch: LeaderEpoch) -> Vec<(Range<Offset>, Bytes)> {
    let mut batches = Vec::new();
    let (mut base, end) = (offsets.start.get(), offsets.end.get());
    while base < end {
        let next = base.saturating_add(i64::from(i32::MAX)).min(end);
        batches.push((Offset::new(base)..Offset::new(next), batch(base, next - base - 1, epoch)));
        base = next;
    }
    batches
}

fn batch(base: i64, last_delta: i64, epoch: LeaderEpoch) -> Bytes {
    let mut bytes = BytesMut::zeroed(HEADER_BYTES);
    let length = i32::try_from(HEADER_BYTES - LENGTH_OVERHEAD).expect("a short header");
    let last_delta = i32::try_from(last_delta).expect("the caller has cut the range so");
    write_field(&mut bytes, BASE_OFFSET, base.to_be_bytes());
    write_field(&mut bytes, BATCH_LENGTH, length.to_be_bytes());
    write_field(&mut bytes, LEADER_EPOCH, epoch.get().to_be_bytes());
    write_field(&mut bytes, MAGIC, [2]);
    write_field(&mut bytes, LAST_OFFSET_DELTA, last_delta.to_be_bytes());
    for none in [BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID] {
        write_field(&mut bytes, none, (-1_i64).to_be_bytes());
    }
    write_field(&mut bytes, PRODUCER_EPOCH, (-1_i16).to_be_bytes());
    write_field(&mut bytes, BASE_SEQUENCE, (-1_i32).to_be_bytes());
    write_crc(&mut bytes);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchView, records};

    #[test]
    fn a_hole_is_a_batch_that_spans_its_offsets_and_has_no_records() {
        let far = i64::from(i32::MAX);
        for (from, to, count) in [(5, 5, 0), (5, 6, 1), (0, far, 1), (7, 7 + far + 1, 2)] {
            let range = Offset::new(from)..Offset::new(to);
            let batches = hole(range, LeaderEpoch::new(3));
            assert_eq!(batches.len(), count);
            let mut next = from;
            for (offsets, bytes) in batches {
                let view = BatchView::exactly(&bytes).unwrap();
                view.check_crc().unwrap();
                assert_eq!(view.base_offset(), Some(Offset::new(next)));
                assert_eq!(
                    (view.base_offset(), view.next_offset()),
                    (Some(offsets.start), Some(offsets.end))
                );
                assert_eq!(view.leader_epoch(), Some(LeaderEpoch::new(3)));
                assert_eq!((view.max_timestamp(), view.producer()), (None, None));
                assert_eq!(records(view.records_bytes(), view.records_count()).count(), 0);
                next = offsets.end.get();
            }
            assert_eq!(next, to);
        }
    }
}
