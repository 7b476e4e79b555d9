//! Batches whose offsets are assigned: what an engine appends.

use bytes::{Bytes, BytesMut};
use strandline_model::{ByteCount, LeaderEpoch, Offset, Timestamp};

use crate::batch::{ATTRIBUTES, BASE_OFFSET, LEADER_EPOCH, MAX_TIMESTAMP, write_crc, write_field};
use crate::{BatchError, BatchView, TimestampType, batches};

/// One or more batches with their final offsets and leader epoch, ready to be appended.
///
/// # Invariants
/// - The bytes are whole batches of magic 2, in offset order and without a hole between them.
/// - `base_offset < next_offset`.
#[derive(Clone, Debug)]
pub struct SealedBatches {
    bytes: Bytes,
    base_offset: Offset,
    next_offset: Offset,
    max_timestamp: Option<Timestamp>,
    appended_at: Timestamp,
}

impl SealedBatches {
    /// Seals one batch, already validated: writes its base offset and leader epoch in place.
    ///
    /// Neither lies in the checksummed range: Kafka keeps them outside so that the broker need not
    /// checksum a batch again. With [`TimestampType::LogAppendTime`] the batch's maximum timestamp
    /// becomes `now` and the checksum is computed anew.
    ///
    /// # Panics
    /// When `bytes` are not exactly one batch with at least one record offset: validation comes first.
    pub fn seal(
        mut bytes: BytesMut,
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        timestamp_type: TimestampType,
        now: Timestamp,
    ) -> Self {
        write_field(&mut bytes, BASE_OFFSET, base_offset.get().to_be_bytes());
        write_field(&mut bytes, LEADER_EPOCH, leader_epoch.get().to_be_bytes());
        if timestamp_type == TimestampType::LogAppendTime {
            let attributes = BatchView::exactly(&bytes)
                .expect("validation comes before sealing")
                .attributes()
                .with_timestamp_type(TimestampType::LogAppendTime);
            write_field(&mut bytes, ATTRIBUTES, attributes.bits().to_be_bytes());
            write_field(&mut bytes, MAX_TIMESTAMP, now.as_millis().to_be_bytes());
            write_crc(&mut bytes);
        }
        let bytes = bytes.freeze();
        let view = BatchView::exactly(&bytes).expect("validation comes before sealing");
        let next_offset = view.next_offset().expect("validation comes before sealing");
        let max_timestamp = view.max_timestamp();
        Self { base_offset, next_offset, max_timestamp, appended_at: now, bytes }
    }

    /// The same at the same place, appended at `now`: it was not appended before.
    pub(crate) fn appended_later(self, now: Timestamp) -> Self {
        Self { appended_at: now, ..self }
    }

    /// Batches that were sealed before and come back from a journal or another log.
    ///
    /// Lengths, magic and the sequence of offsets are checked; checksums are the caller's to check.
    /// `None` when there is no batch at all or the offsets have holes.
    pub fn from_sealed(bytes: Bytes, appended_at: Timestamp) -> Result<Option<Self>, BatchError> {
        let mut range: Option<(Offset, Offset)> = None;
        let mut max_timestamp = None;
        for batch in batches(&bytes) {
            let batch = batch?;
            let (Some(base), Some(next)) = (batch.base_offset(), batch.next_offset()) else {
                return Ok(None);
            };
            match &mut range {
                None => range = Some((base, next)),
                Some((_, end)) if *end == base => *end = next,
                Some(_) => return Ok(None),
            }
            max_timestamp = max_timestamp.max(batch.max_timestamp());
        }
        Ok(range.map(|(base_offset, next_offset)| Self {
            bytes,
            base_offset,
            next_offset,
            max_timestamp,
            appended_at,
        }))
    }

    /// The batches, one after another.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The batches, one after another, by value.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// How many bytes they are.
    pub const fn size(&self) -> ByteCount {
        ByteCount::new(self.bytes.len() as u64)
    }

    /// The offset of the first record.
    pub const fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// The offset after the last record.
    pub const fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// The newest timestamp of all records, by the clock of whoever stamped them.
    pub const fn max_timestamp(&self) -> Option<Timestamp> {
        self.max_timestamp
    }

    /// When the broker sealed them: the clock that retention trusts.
    pub const fn appended_at(&self) -> Timestamp {
        self.appended_at
    }

    /// Each batch.
    pub fn iter(&self) -> impl Iterator<Item = BatchView<'_>> {
        batches(&self.bytes).map(|batch| batch.expect("sealed bytes are whole batches"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, NewRecord};

    const EPOCH: LeaderEpoch = LeaderEpoch::new(7);
    const NOW: Timestamp = Timestamp::from_millis(5000);

    fn batch(base_offset: i64, timestamps: &[i64]) -> BytesMut {
        let mut builder = BatchBuilder::new().base_offset(Offset::new(base_offset));
        for &millis in timestamps {
            let timestamp = Some(Timestamp::from_millis(millis));
            builder.push(NewRecord { timestamp, ..NewRecord::default() });
        }
        builder.build()
    }

    fn joined(all: &[BytesMut]) -> Bytes {
        Bytes::from(all.concat())
    }

    #[test]
    fn sealing_writes_place_and_epoch_and_keeps_the_checksum() {
        let bytes = batch(0, &[10, 30, 20]);
        let checksum = bytes.get(17..21).unwrap().to_vec();
        let sealed =
            SealedBatches::seal(bytes, Offset::new(90), EPOCH, TimestampType::CreateTime, NOW);
        assert_eq!(
            (sealed.base_offset(), sealed.next_offset()),
            (Offset::new(90), Offset::new(93))
        );
        assert_eq!(sealed.max_timestamp(), Some(Timestamp::from_millis(30)));
        assert_eq!(sealed.appended_at(), NOW);
        let view = sealed.iter().next().unwrap();
        assert_eq!(view.base_offset(), Some(Offset::new(90)));
        assert_eq!(view.leader_epoch(), Some(EPOCH));
        assert_eq!(view.check_crc(), Ok(()));
        assert_eq!(view.bytes().get(17..21).unwrap(), checksum);
    }

    #[test]
    fn append_time_is_sealed_in_with_a_new_checksum() {
        let bytes = batch(0, &[10, 9000]);
        let sealed =
            SealedBatches::seal(bytes, Offset::ZERO, EPOCH, TimestampType::LogAppendTime, NOW);
        assert_eq!(sealed.max_timestamp(), Some(NOW));
        let view = sealed.iter().next().unwrap();
        assert_eq!(view.attributes().timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(view.check_crc(), Ok(()));
    }

    #[test]
    #[should_panic(expected = "validation comes before sealing")]
    fn half_a_batch_is_not_sealed() {
        let mut bytes = batch(0, &[1]);
        bytes.truncate(bytes.len() - 1);
        let _ = SealedBatches::seal(bytes, Offset::ZERO, EPOCH, TimestampType::CreateTime, NOW);
    }

    #[test]
    fn sealed_batches_come_back_whole_and_without_holes() {
        let (first, second, third) = (batch(5, &[10, 40]), batch(7, &[30]), batch(8, &[20]));
        let whole = joined(&[first.clone(), second.clone(), third.clone()]);
        let sealed = SealedBatches::from_sealed(whole.clone(), NOW).unwrap().unwrap();
        assert_eq!((sealed.base_offset(), sealed.next_offset()), (Offset::new(5), Offset::new(9)));
        assert_eq!(sealed.max_timestamp(), Some(Timestamp::from_millis(40)));
        assert_eq!(sealed.size(), ByteCount::of(&whole));
        assert_eq!(sealed.iter().count(), 3);

        let holes = [
            joined(&[]),
            joined(&[first.clone(), third.clone()]),
            joined(&[second.clone(), first.clone()]),
            joined(&[first.clone(), first]),
            joined(&[batch(i64::MAX, &[1])]),
        ];
        for bytes in holes {
            assert!(matches!(SealedBatches::from_sealed(bytes, NOW), Ok(None)));
        }
        let mut cut = joined(&[second, third]);
        cut.truncate(cut.len() - 1);
        assert!(matches!(SealedBatches::from_sealed(cut, NOW), Err(BatchError::CutShort { .. })));
    }
}
