//! Batches with real records, made from a few numbers.

use bytes::{BufMut, BytesMut};
use strandline_model::{LeaderEpoch, Offset, Timestamp};
use strandline_records::{HEADER_BYTES, SealedBatches, TimestampType, crc32c};

/// What a batch of a test is made of. Its payload follows from these numbers and its offset.
#[derive(Clone, Copy, Debug)]
pub struct TestBatch {
    /// How many records it has; at least one.
    pub records: u32,
    /// Bytes of each record's value.
    pub value_bytes: usize,
    /// The timestamp of every record; `None`: the records have none.
    pub timestamp: Option<Timestamp>,
    /// When the broker appends it.
    pub appended_at: Timestamp,
}

impl TestBatch {
    /// `records` small records, stamped and appended at 1 s of the epoch.
    pub const fn of(records: u32) -> Self {
        let second = Timestamp::from_millis(1000);
        Self { records, value_bytes: 20, timestamp: Some(second), appended_at: second }
    }

    /// The same with values of another size.
    #[must_use]
    pub const fn value_bytes(self, value_bytes: usize) -> Self {
        Self { value_bytes, ..self }
    }

    /// The same with another timestamp.
    #[must_use]
    pub const fn stamped(self, timestamp: Option<Timestamp>) -> Self {
        Self { timestamp, ..self }
    }

    /// The same, appended at another time.
    #[must_use]
    pub const fn appended_at(self, appended_at: Timestamp) -> Self {
        Self { appended_at, ..self }
    }

    /// The batch at `at`, sealed.
    pub fn seal(self, at: Offset, epoch: LeaderEpoch) -> SealedBatches {
        SealedBatches::seal(
            self.unsealed(at),
            at,
            epoch,
            TimestampType::CreateTime,
            self.appended_at,
        )
    }

    /// The batch as a producer sends it; `salt` only flavours the payload.
    pub fn unsealed(self, salt: Offset) -> BytesMut {
        assert!(self.records > 0, "a batch has records");
        let records = i32::try_from(self.records).expect("few records");
        let timestamp = self.timestamp.map_or(-1, Timestamp::as_millis);
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES);
        bytes.put_i64(0);
        bytes.put_i32(0); // the length, known at the end
        bytes.put_i32(-1);
        bytes.put_i8(2);
        bytes.put_u32(0); // the checksum, known at the end
        bytes.put_i16(0);
        bytes.put_i32(records - 1);
        bytes.put_i64(timestamp);
        bytes.put_i64(timestamp);
        bytes.put_i64(-1);
        bytes.put_i16(-1);
        bytes.put_i32(-1);
        bytes.put_i32(records);
        for delta in 0..records {
            self.put_record(&mut bytes, delta, salt);
        }
        let length = i32::try_from(bytes.len() - 12).expect("a small batch");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    fn put_record(self, bytes: &mut BytesMut, delta: i32, salt: Offset) {
        let mut record = BytesMut::new();
        record.put_i8(0);
        put_varint(&mut record, 0);
        put_varint(&mut record, i64::from(delta));
        put_varint(&mut record, -1); // no key
        put_varint(&mut record, i64::try_from(self.value_bytes).expect("a small value"));
        // A pattern without a short period, so that bytes from the wrong place are never equal.
        let seed = salt
            .get()
            .cast_unsigned()
            .wrapping_mul(31)
            .wrapping_add(u64::from(delta.unsigned_abs()));
        let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        record.extend((0..self.value_bytes).map(|_| {
            word = word.rotate_left(9).wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            word.to_be_bytes()[0]
        }));
        put_varint(&mut record, 0); // no headers
        put_varint(bytes, i64::try_from(record.len()).expect("a small record"));
        bytes.extend_from_slice(&record);
    }
}

/// A zigzag varint.
fn put_varint(bytes: &mut BytesMut, value: i64) {
    let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
    while rest >= 0x80 {
        bytes.put_u8(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    bytes.put_u8(rest.to_le_bytes()[0]);
}
