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
