//! The partition's rules, told as tables.

#![expect(clippy::unwrap_used, reason = "tests panic")]

mod admission;
mod compaction;
mod reconcile;
mod retention;
mod saved_state;
mod segments;

use bytes::BytesMut;
use strandline_model::{LeaderEpoch, Offset, Timestamp};
use strandline_records::{SealedBatches, TimestampType};

/// A producer's batch of `count` records: the header alone, which is all that admission looks at.
struct Batch {
    producer_id: i64,
    epoch: i16,
    first_sequence: i32,
    count: i32,
    attributes: i16,
}

impl Batch {
    fn plain(count: i32) -> Self {
        Self { producer_id: -1, epoch: -1, first_sequence: -1, count, attributes: 0 }
    }

    fn idempotent(producer_id: i64, epoch: i16, first_sequence: i32, count: i32) -> Self {
        Self { producer_id, epoch, first_sequence, count, attributes: 0 }
    }

    fn transactional(mut self) -> Self {
        self.attributes |= 0x10;
        self
    }

    fn seal(&self, base_offset: i64, epoch: i32, now: i64) -> SealedBatches {
        let mut bytes = BytesMut::new();
        bytes.extend_from_slice(&0_i64.to_be_bytes());
        bytes.extend_from_slice(&49_i32.to_be_bytes());
        bytes.extend_from_slice(&(-1_i32).to_be_bytes());
        bytes.extend_from_slice(&[2]);
        bytes.extend_from_slice(&0_u32.to_be_bytes());
        bytes.extend_from_slice(&self.attributes.to_be_bytes());
        bytes.extend_from_slice(&(self.count - 1).to_be_bytes());
        bytes.extend_from_slice(&now.to_be_bytes());
        bytes.extend_from_slice(&now.to_be_bytes());
        bytes.extend_from_slice(&self.producer_id.to_be_bytes());
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.extend_from_slice(&self.first_sequence.to_be_bytes());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        SealedBatches::seal(
            bytes,
            Offset::new(base_offset),
            LeaderEpoch::new(epoch),
            TimestampType::CreateTime,
            Timestamp::from_millis(now),
        )
    }
}
