//! Everything that a partition derives from its log, and how it is saved beside it.
//!
//! # On disk (engines keep it as opaque bytes)
//!
//! All numbers big-endian. A checksum is the engine's business; a version that we do not know, or
//! bytes that do not add up, are an error, and the state is rebuilt from the whole log.
//!
//! | field | type |
//! | --- | --- |
//! | version | u8 = 1 |
//! | epoch count, then each: epoch i32, start offset i64 | u32 |
//! | producer count, then each: id i64, epoch i16, last seen i64, batch count u8, then each batch: first sequence i32, last offset delta u32, base offset i64, appended at i64 | u32 |

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::{
    LeaderEpoch, Offset, OffsetDelta, ProducerEpoch, ProducerId, Sequence, Timestamp,
};
use strandline_records::BatchView;

use crate::{CachedBatch, EpochStarts, ProducerEntry, ProducerStates};

const VERSION: u8 = 1;

/// What a partition knows of its past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionState {
    /// What each producer did.
    pub producers: ProducerStates,
    /// Where each leader epoch began.
    pub epochs: EpochStarts,
}

/// Saved bytes that are no state of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Written by a newer version, or not by us.
    #[error("saved state has an unknown version. version=`{0}`")]
    Version(u8),
    /// The bytes end early or hold an impossible number.
    #[error("saved state is damaged")]
    Damaged,
}

impl PartitionState {
    /// Records a batch that was appended: now, or in the log that is replayed at opening.
    pub fn record(&mut self, batch: &BatchView<'_>, appended_at: Timestamp) {
        if let (Some(epoch), Some(base_offset)) = (batch.leader_epoch(), batch.base_offset()) {
            self.epochs.record(epoch, base_offset);
        }
        self.producers.record(batch, appended_at);
    }

    /// Forgets the epochs that lie wholly below `log_start`. Producers outlive their records, as in
    /// Kafka: a retry of a batch that was trimmed meanwhile is still a retry.
    pub fn trim(&mut self, log_start: Offset) {
        self.epochs.trim(log_start);
    }

    /// The bytes to save.
    pub fn encode(&self) -> Bytes {
        let mut buf = BytesMut::with_capacity(64 + 96 * self.producers.len());
        buf.put_u8(VERSION);
        put_count(&mut buf, self.epochs.iter().len());
        for (epoch, start) in self.epochs.iter() {
            buf.put_i32(epoch.get());
            buf.put_i64(start.get());
        }
        put_count(&mut buf, self.producers.len());
        for (id, entry) in self.producers.iter() {
            buf.put_i64(id.get());
            buf.put_i16(entry.epoch().get());
            buf.put_i64(entry.last_seen().as_millis());
            buf.put_u8(u8::try_from(entry.batches().len()).expect("at most five batches"));
            for batch in entry.batches() {
                buf.put_i32(batch.first_sequence.get());
                buf.put_u32(batch.last_offset_delta);
                buf.put_i64(batch.base_offset.get());
                buf.put_i64(batch.appended_at.as_millis());
            }
        }
        buf.freeze()
    }

    /// The state that `bytes` hold.
    pub fn decode(mut bytes: Bytes) -> Result<Self, StateError> {
        let version = bytes.try_get_u8().map_err(|_| StateError::Damaged)?;
        if version != VERSION {
            return Err(StateError::Version(version));
        }
        let state = decode_body(&mut bytes).ok_or(StateError::Damaged)?;
        if bytes.has_remaining() { Err(StateError::Damaged) } else { Ok(state) }
    }
}

fn put_count(buf: &mut BytesMut, count: usize) {
    buf.put_u32(u32::try_from(count).expect("bounded far below 2^32"));
}

fn decode_body(bytes: &mut Bytes) -> Option<PartitionState> {
    let mut state = PartitionState::default();
    for _ in 0..bytes.try_get_u32().ok()? {
        let epoch = LeaderEpoch::from_wire(bytes.try_get_i32().ok()?)?;
        let start = Offset::from_wire(bytes.try_get_i64().ok()?)?;
        state.epochs.record(epoch, start);
    }
    for _ in 0..bytes.try_get_u32().ok()? {
        let id = ProducerId::from_wire(bytes.try_get_i64().ok()?)?;
        let epoch = ProducerEpoch::from_wire(bytes.try_get_i16().ok()?)?;
        let last_seen = Timestamp::from_wire(bytes.try_get_i64().ok()?)?;
        let count = bytes.try_get_u8().ok()?;
        let batches = (0..count).map(|_| decode_batch(bytes)).collect::<Option<Vec<_>>>()?;
        state.producers.insert(id, ProducerEntry::from_parts(epoch, last_seen, batches));
    }
    Some(state)
}

fn decode_batch(bytes: &mut Bytes) -> Option<CachedBatch> {
    let batch = CachedBatch {
        first_sequence: Sequence::from_wire(bytes.try_get_i32().ok()?)?,
        last_offset_delta: bytes.try_get_u32().ok()?,
        base_offset: Offset::from_wire(bytes.try_get_i64().ok()?)?,
        appended_at: Timestamp::from_wire(bytes.try_get_i64().ok()?)?,
    };
    // The rest of the code adds the two without a second look.
    let records = OffsetDelta::new(i64::from(batch.last_offset_delta) + 1);
    batch.base_offset.checked_add(records).map(|_| batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_ends_beyond_the_last_offset_is_damage() {
        let mut bytes = BytesMut::new();
        bytes.put_u8(VERSION);
        bytes.put_u32(0);
        bytes.put_u32(1);
        bytes.put_i64(7);
        bytes.put_i16(0);
        bytes.put_i64(1);
        bytes.put_u8(1);
        bytes.put_i32(0);
        bytes.put_u32(0);
        bytes.put_i64(i64::MAX);
        bytes.put_i64(1);
        assert_eq!(PartitionState::decode(bytes.freeze()), Err(StateError::Damaged));
    }
}
