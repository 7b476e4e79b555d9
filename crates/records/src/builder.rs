//! Makes batches: for our own client, for markers, for tests.
//!
//! A broker does not build what it stores, except control batches and what it has to compress anew.

use bytes::{Bytes, BytesMut};
use strandline_model::{Offset, Sequence, Timestamp};

use crate::batch::{
    ATTRIBUTES, BASE_OFFSET, BASE_SEQUENCE, BASE_TIMESTAMP, BATCH_LENGTH, LAST_OFFSET_DELTA,
    LEADER_EPOCH, LENGTH_OVERHEAD, MAGIC, MAX_TIMESTAMP, PRODUCER_EPOCH, PRODUCER_ID,
    RECORDS_COUNT, write_crc, write_field,
};
use crate::record::EncodedHeaders;
use crate::{Attributes, Codec, HEADER_BYTES, Header, ProducerStamp, Record, compress};

/// A record to be put into a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// When it was made; `None` leaves that to the broker, or to nobody.
    pub timestamp: Option<Timestamp>,
    /// The key, if any.
    pub key: Option<&'a [u8]>,
    /// The value, if any.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [Header<'a>],
}

/// Collects records, then [builds](Self::build) the batch that holds them.
///
/// ```
/// use strandline_records::{BatchBuilder, BatchView, NewRecord};
///
/// let mut builder = BatchBuilder::new();
/// builder.push(NewRecord { key: Some(b"k"), value: Some(b"v"), ..NewRecord::default() });
/// let bytes = builder.build();
/// assert_eq!(BatchView::exactly(&bytes).unwrap().records_count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    /// Room for the header, then the records.
    bytes: Vec<u8>,
    records_count: i32,
    next_offset_delta: i32,
    base_offset: Offset,
    base_timestamp: i64,
    max_timestamp: i64,
    attributes: Attributes,
    producer: Option<ProducerStamp>,
    headers: EncodedHeaders,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// A batch of no records yet: plain, not compressed, at offset 0.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES],
            records_count: 0,
            next_offset_delta: 0,
            base_offset: Offset::ZERO,
            base_timestamp: -1,
            max_timestamp: -1,
            attributes: Attributes::PLAIN,
            producer: None,
            headers: EncodedHeaders::default(),
        }
    }

    /// Stamps the batch with an idempotent producer and the sequence of its first record.
    #[must_use]
    pub const fn producer(mut self, stamp: ProducerStamp) -> Self {
        self.producer = Some(stamp);
        self
    }

    /// Marks the batch as part of its producer's transaction.
    #[must_use]
    pub const fn transactional(mut self) -> Self {
        self.attributes = self.attributes.with_transactional();
        self
    }

    /// Puts the batch at another offset than 0, as a broker does.
    #[must_use]
    pub const fn base_offset(mut self, base_offset: Offset) -> Self {
        self.base_offset = base_offset;
        self
    }

    /// Sets all attribute bits at once: for control batches, and for tests of bits that are wrong.
    #[must_use]
    pub const fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Adds a record at the next offset.
    ///
    /// # Panics
    /// When the batch would hold 2³¹ records or a field of 2 GiB.
    pub fn push(&mut self, record: NewRecord<'_>) {
        self.push_at(self.next_offset_delta, record);
    }

    /// Adds a record at `offset_delta` from the base offset, as in a compacted batch with holes.
    ///
    /// # Panics
    /// When the batch would hold 2³¹ records or a field of 2 GiB.
    pub fn push_at(&mut self, offset_delta: i32, record: NewRecord<'_>) {
        let timestamp = record.timestamp.map_or(-1, Timestamp::as_millis);
        if self.records_count == 0 {
            self.base_timestamp = timestamp;
        }
        let encoded = Record {
            offset_delta,
            timestamp_delta: timestamp.wrapping_sub(self.base_timestamp),
            key: record.key,
            value: record.value,
            headers: self.headers.encode(record.headers),
        };
        encoded.write_at(&mut self.bytes, offset_delta);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.records_count += 1;
        self.next_offset_delta = offset_delta.checked_add(1).expect("fewer than 2^31 offsets");
    }

    /// How many records there are.
    pub const fn records_count(&self) -> i32 {
        self.records_count
    }

    /// Whether there is no record yet.
    pub const fn is_empty(&self) -> bool {
        self.records_count == 0
    }

    /// How many bytes the batch has before it is compressed.
    pub const fn uncompressed_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The batch, with its checksum.
    ///
    /// # Panics
    /// When there is no record, or the batch has 2 GiB.
    pub fn build(mut self) -> BytesMut {
        assert!(self.records_count > 0, "a batch has at least one record");
        self.write_header();
        write_crc(&mut self.bytes);
        BytesMut::from(Bytes::from(self.bytes))
    }

    /// The batch with its records compressed, with its checksum.
    ///
    /// # Panics
    /// When there is no record, or the batch has 2 GiB.
    pub fn build_compressed(mut self, codec: Codec) -> BytesMut {
        let mut bytes = vec![0; HEADER_BYTES];
        compress(codec, self.bytes.get(HEADER_BYTES..).unwrap_or_default(), &mut bytes);
        self.bytes = bytes;
        self.attributes = self.attributes.with_compression(codec.compression());
        self.build()
    }

    fn write_header(&mut self) {
        let bytes = &mut self.bytes;
        let length = i32::try_from(bytes.len() - LENGTH_OVERHEAD).expect("a batch has < 2 GiB");
        let no_leader = -1_i32;
        let magic = 2_i8;
        write_field(bytes, BASE_OFFSET, self.base_offset.get().to_be_bytes());
        write_field(bytes, BATCH_LENGTH, length.to_be_bytes());
        write_field(bytes, LEADER_EPOCH, no_leader.to_be_bytes());
        write_field(bytes, MAGIC, magic.to_be_bytes());
        write_field(bytes, ATTRIBUTES, self.attributes.bits().to_be_bytes());
        write_field(bytes, LAST_OFFSET_DELTA, (self.next_offset_delta - 1).to_be_bytes());
        write_field(bytes, BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        write_field(bytes, MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        let (id, epoch, sequence) = self.producer.map_or((-1, -1, -1), |stamp| {
            (stamp.id.get(), stamp.epoch.get(), stamp.base_sequence.map_or(-1, Sequence::get))
        });
        write_field(bytes, PRODUCER_ID, id.to_be_bytes());
        write_field(bytes, PRODUCER_EPOCH, epoch.to_be_bytes());
        write_field(bytes, BASE_SEQUENCE, sequence.to_be_bytes());
        write_field(bytes, RECORDS_COUNT, self.records_count.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use strandline_model::{ByteCount, ProducerEpoch, ProducerId};

    use super::*;
    use crate::{BatchView, Compression, records};

    #[test]
    fn a_built_batch_says_what_was_put_in() {
        let stamp = ProducerStamp {
            id: ProducerId::new(7),
            epoch: ProducerEpoch::from_wire(3).unwrap(),
            base_sequence: Sequence::from_wire(40),
        };
        let mut builder =
            BatchBuilder::new().producer(stamp).transactional().base_offset(Offset::new(100));
        let at = |millis| Some(Timestamp::from_millis(millis));
        let headers = [Header { key: b"h", value: Some(b"1") }];
        builder.push(NewRecord { timestamp: at(5), value: Some(b"a"), ..NewRecord::default() });
        builder.push(NewRecord { timestamp: at(9), headers: &headers, ..NewRecord::default() });
        builder.push_at(4, NewRecord { timestamp: at(7), key: Some(b"k"), ..NewRecord::default() });
        let bytes = builder.build();

        let batch = BatchView::exactly(&bytes).unwrap();
        assert_eq!(batch.check_crc(), Ok(()));
        assert_eq!(batch.producer(), Some(stamp));
        assert!(batch.attributes().is_transactional());
        assert_eq!(batch.records_count(), 3);
        assert_eq!(batch.leader_epoch(), None);
        assert_eq!(batch.next_offset(), Some(Offset::new(105)));
        assert_eq!(batch.max_timestamp(), at(9));
        let read: Vec<_> = records(batch.records_bytes(), 3).map(Result::unwrap).collect();
        let offsets: Vec<_> =
            read.iter().filter_map(|r| batch.offset_of(r)).map(Offset::get).collect();
        assert_eq!(offsets, [100, 101, 104]);
        let timestamps: Vec<_> = read.iter().map(|r| batch.timestamp_of(r)).collect();
        assert_eq!(timestamps, [at(5), at(9), at(7)]);
        assert_eq!(read.get(1).unwrap().headers.iter().next(), Some(headers[0]));
    }

    #[test]
    fn records_without_time_make_a_batch_without_time() {
        let mut builder = BatchBuilder::new();
        builder.push(NewRecord::default());
        let bytes = builder.build();
        let batch = BatchView::exactly(&bytes).unwrap();
        assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (-1, None));
        assert_eq!(batch.producer(), None);
    }

    #[test]
    fn a_compressed_batch_has_the_same_records() {
        let mut builder = BatchBuilder::new();
        builder.push(NewRecord { value: Some(&[7; 1000]), ..NewRecord::default() });
        let plain = builder.clone().build();
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let bytes = builder.clone().build_compressed(Codec::at_default_level(compression));
            let batch = BatchView::exactly(&bytes).unwrap();
            assert_eq!(batch.check_crc(), Ok(()));
            assert_eq!(batch.attributes().compression(), Some(compression));
            let block = batch.decompressed(ByteCount::kib(8)).unwrap();
            assert_eq!(*block, *BatchView::exactly(&plain).unwrap().records_bytes());
        }
    }

    #[test]
    #[should_panic(expected = "at least one record")]
    fn a_batch_of_nothing_is_not_built() {
        let _ = BatchBuilder::new().build();
    }
}
