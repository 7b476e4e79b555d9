//! A borrowed view of one record batch, and the walk over several in a row.
//!
//! # On the wire and on disk
//!
//! | at | field | type | |
//! | --: | --- | --- | --- |
//! | 0 | base offset | i64 | written by the broker, outside the CRC |
//! | 8 | batch length | i32 | bytes after this field: the whole batch is 12 more |
//! | 12 | partition leader epoch | i32 | written by the broker, outside the CRC |
//! | 16 | magic | i8 | 2 |
//! | 17 | CRC-32C | u32 | over everything from 21 to the end |
//! | 21 | attributes | i16 | see [`Attributes`] |
//! | 23 | last offset delta | i32 | |
//! | 27 | base timestamp | i64 | |
//! | 35 | max timestamp | i64 | −1: no timestamps |
//! | 43 | producer id | i64 | −1: none |
//! | 51 | producer epoch | i16 | −1: none |
//! | 53 | base sequence | i32 | −1: none |
//! | 57 | records count | i32 | |
//! | 61 | records | | compressed as one block |

use strandline_model::{
    LeaderEpoch, Offset, OffsetDelta, ProducerEpoch, ProducerId, Sequence, Timestamp,
};

use crate::{Attributes, crc32c};

/// Bytes of a batch's header: an empty batch is this long.
pub const HEADER_BYTES: usize = 61;

/// Bytes before the part that the length field counts.
pub(crate) const LENGTH_OVERHEAD: usize = 12;
pub(crate) const BASE_OFFSET: usize = 0;
pub(crate) const BATCH_LENGTH: usize = 8;
pub(crate) const LEADER_EPOCH: usize = 12;
pub(crate) const MAGIC: usize = 16;
const CRC: usize = 17;
pub(crate) const ATTRIBUTES: usize = 21;
pub(crate) const LAST_OFFSET_DELTA: usize = 23;
pub(crate) const BASE_TIMESTAMP: usize = 27;
pub(crate) const MAX_TIMESTAMP: usize = 35;
pub(crate) const PRODUCER_ID: usize = 43;
pub(crate) const PRODUCER_EPOCH: usize = 51;
pub(crate) const BASE_SEQUENCE: usize = 53;
pub(crate) const RECORDS_COUNT: usize = 57;

/// Why bytes are not a record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes than the header, or than the batch's own length: torn, or not all read yet.
    #[error("batch is cut short. have=`{have}`, need=`{need}`")]
    CutShort {
        /// Bytes that are there.
        have: usize,
        /// Bytes that the batch needs.
        need: usize,
    },
    /// The length field is smaller than a header.
    #[error("batch length is impossible. length=`{0}`")]
    Length(i32),
    /// An older or unknown format.
    #[error("batch has an unsupported magic. magic=`{0}`")]
    Magic(i8),
    /// The checksum does not match.
    #[error("crc mismatch. stored=`{stored:#010x}`, computed=`{computed:#010x}`")]
    Crc {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
}

/// The idempotent producer of a batch (KIP-98): all three or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStamp {
    /// Who produced the batch.
    pub id: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// The sequence of the first record; `None` in control batches, which have no sequence.
    pub base_sequence: Option<Sequence>,
}

/// One whole batch, borrowed. Lengths and magic are checked; the checksum is not until asked.
#[derive(Clone, Copy)]
pub struct BatchView<'a> {
    header: &'a [u8; HEADER_BYTES],
    bytes: &'a [u8],
}

impl std::fmt::Debug for BatchView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchView")
            .field("base_offset", &self.raw_base_offset())
            .field("last_offset_delta", &self.last_offset_delta())
            .field("records_count", &self.records_count())
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl<'a> BatchView<'a> {
    /// The batch at the start of `bytes`; more may follow it.
    pub fn first(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let cut_short = |need| BatchError::CutShort { have: bytes.len(), need };
        let header = bytes.first_chunk().ok_or(cut_short(HEADER_BYTES))?;
        let length = i32::from_be_bytes(field::<BATCH_LENGTH, 4>(header));
        let magic = i8::from_be_bytes(field::<MAGIC, 1>(header));
        // The magic comes first: older formats have shorter headers, and their length means nothing here.
        if magic != 2 {
            return Err(BatchError::Magic(magic));
        }
        let total = usize::try_from(length)
            .ok()
            .map(|length| length + LENGTH_OVERHEAD)
            .filter(|&total| total >= HEADER_BYTES)
            .ok_or(BatchError::Length(length))?;
        let bytes = bytes.get(..total).ok_or(cut_short(total))?;
        Ok(Self { header, bytes })
    }

    /// The batch that `bytes` are, the whole of them: nothing may follow.
    pub fn exactly(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let view = Self::first(bytes)?;
        if view.bytes.len() == bytes.len() {
            Ok(view)
        } else {
            Err(BatchError::Length(i32::from_be_bytes(field::<BATCH_LENGTH, 4>(view.header))))
        }
    }

    /// All bytes of the batch.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records, still compressed.
    pub fn records_bytes(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The base offset as it stands in the header; a producer sends 0.
    pub fn raw_base_offset(&self) -> i64 {
        i64::from_be_bytes(field::<BASE_OFFSET, 8>(self.header))
    }

    /// The offset of the first record, or `None` when the header holds a negative number.
    pub fn base_offset(&self) -> Option<Offset> {
        Offset::from_wire(self.raw_base_offset())
    }

    /// The offset after the last record, or `None` when the header's numbers make no range.
    pub fn next_offset(&self) -> Option<Offset> {
        let delta = i64::from(self.last_offset_delta());
        let past_last = OffsetDelta::new(if delta < 0 { return None } else { delta + 1 });
        self.base_offset()?.checked_add(past_last)
    }

    /// The leader epoch that the broker wrote; `None` in a batch that was never appended.
    pub fn leader_epoch(&self) -> Option<LeaderEpoch> {
        LeaderEpoch::from_wire(i32::from_be_bytes(field::<LEADER_EPOCH, 4>(self.header)))
    }

    /// The attribute bits.
    pub fn attributes(&self) -> Attributes {
        Attributes::from_bits(i16::from_be_bytes(field::<ATTRIBUTES, 2>(self.header)))
    }

    /// Offset of the last record minus that of the first. Negative only in a broken batch.
    pub fn last_offset_delta(&self) -> i32 {
        i32::from_be_bytes(field::<LAST_OFFSET_DELTA, 4>(self.header))
    }

    /// What the timestamp deltas of the records are added to (or a delete horizon, see
    /// [`Attributes::has_delete_horizon`]); −1 when there is none.
    pub fn base_timestamp(&self) -> i64 {
        i64::from_be_bytes(field::<BASE_TIMESTAMP, 8>(self.header))
    }

    /// The newest timestamp in the batch; `None` when the batch has none.
    pub fn max_timestamp(&self) -> Option<Timestamp> {
        Timestamp::from_wire(self.raw_max_timestamp())
    }

    /// The newest timestamp as it stands in the header; −1 when there is none.
    pub fn raw_max_timestamp(&self) -> i64 {
        i64::from_be_bytes(field::<MAX_TIMESTAMP, 8>(self.header))
    }

    /// Whether the header names a producer: if so and [`producer`](Self::producer) is `None`, its
    /// epoch is negative, which is no batch of any producer.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id().is_some()
    }

    fn producer_id(&self) -> Option<ProducerId> {
        ProducerId::from_wire(i64::from_be_bytes(field::<PRODUCER_ID, 8>(self.header)))
    }

    /// The idempotent producer; `None` for a plain one.
    pub fn producer(&self) -> Option<ProducerStamp> {
        let id = self.producer_id()?;
        let epoch = i16::from_be_bytes(field::<PRODUCER_EPOCH, 2>(self.header));
        let sequence = i32::from_be_bytes(field::<BASE_SEQUENCE, 4>(self.header));
        Some(ProducerStamp {
            id,
            epoch: ProducerEpoch::from_wire(epoch)?,
            base_sequence: Sequence::from_wire(sequence),
        })
    }

    /// How many records the batch says that it holds. Negative only in a broken batch.
    pub fn records_count(&self) -> i32 {
        i32::from_be_bytes(field::<RECORDS_COUNT, 4>(self.header))
    }

    /// Compares the checksum in the header with that of the bytes.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let stored = u32::from_be_bytes(field::<CRC, 4>(self.header));
        let computed = crc32c(self.bytes.get(ATTRIBUTES..).unwrap_or_default());
        if stored == computed { Ok(()) } else { Err(BatchError::Crc { stored, computed }) }
    }
}

/// Writes a field of the header of the batch at the start of `bytes`.
///
/// # Panics
/// When `bytes` are shorter than a header.
pub(crate) fn write_field<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes.get_mut(at..at + N).expect("a header is there to be written").copy_from_slice(&field);
}

/// Computes the checksum of the one batch that `bytes` are and writes it into the header.
pub(crate) fn write_crc(bytes: &mut [u8]) {
    let crc = crc32c(bytes.get(ATTRIBUTES..).unwrap_or_default());
    write_field(bytes, CRC, crc.to_be_bytes());
}

/// The bytes of a field of a header.
pub(crate) fn field<const AT: usize, const N: usize>(header: &[u8; HEADER_BYTES]) -> [u8; N] {
    header.get(AT..).and_then(|tail| tail.first_chunk()).copied().expect("fields lie in the header")
}

/// The batches that stand one after another in `bytes`.
///
/// Ends after the last whole batch, or yields one error and ends there.
pub const fn batches(bytes: &[u8]) -> BatchIter<'_> {
    BatchIter { rest: bytes }
}

/// See [`batches`].
#[derive(Clone, Debug)]
pub struct BatchIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for BatchIter<'a> {
    type Item = Result<BatchView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let first = BatchView::first(self.rest);
        self.rest = match &first {
            Ok(batch) => self.rest.get(batch.bytes.len()..).unwrap_or_default(),
            Err(_) => &[],
        };
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, NewRecord};

    fn good() -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.push(NewRecord { value: Some(b"v"), ..NewRecord::default() });
        builder.build().to_vec()
    }

    #[test]
    fn a_view_is_a_whole_batch_of_magic_two() {
        let whole = good().len();
        let with = |at: usize, byte: u8| {
            let mut bytes = good();
            *bytes.get_mut(at).unwrap() = byte;
            bytes
        };
        let first = |count: usize| good().get(..count).unwrap().to_vec();
        let cut_short = |have, need| Some(BatchError::CutShort { have, need });
        let cases = [
            ("whole", good(), None),
            ("more follows", [good(), vec![1, 2, 3]].concat(), None),
            ("nothing", Vec::new(), cut_short(0, HEADER_BYTES)),
            ("part of a header", first(60), cut_short(60, HEADER_BYTES)),
            ("no records", first(61), cut_short(61, whole)),
            ("a byte missing", first(whole - 1), cut_short(whole - 1, whole)),
            ("old format", with(MAGIC, 1), Some(BatchError::Magic(1))),
            ("unknown format", with(MAGIC, 0xff), Some(BatchError::Magic(-1))),
            ("shorter than a header", with(BATCH_LENGTH + 3, 48), Some(BatchError::Length(48))),
            (
                "negative length",
                with(BATCH_LENGTH, 0x80),
                Some(BatchError::Length(
                    i32::MIN + i32::try_from(whole - LENGTH_OVERHEAD).unwrap(),
                )),
            ),
        ];
        for (what, bytes, error) in cases {
            assert_eq!(BatchView::first(&bytes).err(), error, "{what}");
        }
        assert!(BatchView::exactly(&good()).is_ok());
        assert!(BatchView::exactly(&[good(), vec![0]].concat()).is_err());
    }

    #[test]
    fn offsets_that_make_no_range_are_none() {
        let cases = [
            (0, 0, Some(1)),
            (10, 4, Some(15)),
            (10, -1, None),
            (-1, 0, None),
            (i64::MAX, 0, None),
            (i64::MAX - 1, 0, Some(i64::MAX)),
        ];
        for (base, delta, next) in cases {
            let mut bytes = good();
            write_field(&mut bytes, BASE_OFFSET, i64::to_be_bytes(base));
            write_field(&mut bytes, LAST_OFFSET_DELTA, i32::to_be_bytes(delta));
            let view = BatchView::exactly(&bytes).unwrap();
            assert_eq!(view.next_offset().map(Offset::get), next, "{base} + {delta}");
        }
    }

    #[test]
    fn batches_end_after_the_last_or_with_one_error() {
        let two = [good(), good()].concat();
        assert_eq!(batches(&two).flatten().count(), 2);
        let cut = two.get(..two.len() - 1).unwrap();
        let ends: Vec<_> = batches(cut).map(|batch| batch.is_ok()).collect();
        assert_eq!(ends, [true, false]);
        assert_eq!(batches(&[]).count(), 0);
    }
}
