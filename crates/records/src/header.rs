//! The header of a batch whose records are elsewhere: what a walk through a log reads.

use strandline_model::{LeaderEpoch, Offset, OffsetDelta, Timestamp};

use crate::batch::{
    BASE_OFFSET, BATCH_LENGTH, LAST_OFFSET_DELTA, LEADER_EPOCH, LENGTH_OVERHEAD, MAGIC,
    MAX_TIMESTAMP, field,
};
use crate::{BatchError, HEADER_BYTES};

/// What a log needs to know of a batch to find it and to step over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Bytes of the whole batch, this header included.
    pub size: u64,
    /// The offset of its first record.
    pub base_offset: Offset,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// The newest timestamp of its records; `None` when it has none.
    pub max_timestamp: Option<Timestamp>,
    /// The epoch it was appended in; `None` when it never was.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl BatchHeader {
    /// The header at the start of `bytes`, which need not hold the records.
    ///
    /// Offsets that make no range count as an impossible length.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let header: &[u8; HEADER_BYTES] = bytes
            .first_chunk()
            .ok_or(BatchError::CutShort { have: bytes.len(), need: HEADER_BYTES })?;
        let magic = i8::from_be_bytes(field::<MAGIC, 1>(header));
        if magic != 2 {
            return Err(BatchError::Magic(magic));
        }
        let length = i32::from_be_bytes(field::<BATCH_LENGTH, 4>(header));
        let size = u64::try_from(length)
            .ok()
            .map(|length| length + LENGTH_OVERHEAD as u64)
            .filter(|&size| size >= HEADER_BYTES as u64)
            .ok_or(BatchError::Length(length))?;
        let delta = i64::from(i32::from_be_bytes(field::<LAST_OFFSET_DELTA, 4>(header)));
        let base_offset = Offset::from_wire(i64::from_be_bytes(field::<BASE_OFFSET, 8>(header)));
        let range = base_offset.filter(|_| delta >= 0).and_then(|base_offset| {
            Some((base_offset, base_offset.checked_add(OffsetDelta::new(delta + 1))?))
        });
        let (base_offset, next_offset) = range.ok_or(BatchError::Length(length))?;
        let max_timestamp = i64::from_be_bytes(field::<MAX_TIMESTAMP, 8>(header));
        let leader_epoch = i32::from_be_bytes(field::<LEADER_EPOCH, 4>(header));
        Ok(Self {
            size,
            base_offset,
            next_offset,
            max_timestamp: Timestamp::from_wire(max_timestamp),
            leader_epoch: LeaderEpoch::from_wire(leader_epoch),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{BatchBuilder, BatchView, NewRecord};

    proptest! {
        #[test]
        fn says_the_same_as_the_view_of_the_whole_batch(
            records_count in 1_usize..5,
            at in 0_i64..1 << 40,
            damage in prop::option::of((0..HEADER_BYTES, any::<u8>())),
        ) {
            let mut builder = BatchBuilder::new().base_offset(Offset::new(at));
            for _ in 0..records_count {
                let timestamp = Some(Timestamp::from_millis(at));
                builder.push(NewRecord { timestamp, ..NewRecord::default() });
            }
            let mut bytes = builder.build().to_vec();
            if let Some((position, byte)) = damage {
                *bytes.get_mut(position).unwrap() = byte;
            }
            let header = BatchHeader::parse(bytes.get(..HEADER_BYTES).unwrap());
            match (header, BatchView::first(&bytes)) {
                (Ok(header), Ok(view)) => {
                    prop_assert_eq!(header.size, view.bytes().len() as u64);
                    prop_assert_eq!(Some(header.base_offset), view.base_offset());
                    prop_assert_eq!(Some(header.next_offset), view.next_offset());
                    prop_assert_eq!(header.max_timestamp, view.max_timestamp());
                    prop_assert_eq!(header.leader_epoch, view.leader_epoch());
                }
                (Ok(header), Err(BatchError::CutShort { need, .. })) => {
                    prop_assert_eq!(header.size, need as u64);
                }
                (Err(_), Ok(view)) => prop_assert_eq!(view.next_offset(), None),
                (Err(_), Err(BatchError::CutShort { .. })) => {}
                (Err(header), Err(view)) => prop_assert_eq!(header, view),
                (header, view) => prop_assert!(false, "{:?} but {:?}", header, view),
            }
        }
    }
}
