//! Why a produced batch is refused: facts, no codes.

use strandline_model::ByteCount;

use crate::{BatchError, DecompressError, RecordError};

/// Why a produced batch is refused. Nothing of it is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// There is no batch, or not the whole of one.
    #[error("no whole record batch")]
    NoBatch,
    /// There is more than one batch.
    #[error("more than one record batch")]
    SeveralBatches,
    /// The batch is of magic 0 or 1.
    #[error("record batch has an old format. magic=`{magic}`")]
    OldFormat {
        /// The format.
        magic: i8,
    },
    /// The bytes are damaged, or never were a batch.
    #[error("record batch is corrupt: {0}")]
    Corrupt(BatchError),
    /// Larger than `max.message.bytes`, as it came or after it was compressed anew.
    #[error("record batch of {} bytes is over max.message.bytes={}", .0.have, .0.limit)]
    TooLarge(Oversize),
    /// Larger than `segment.bytes`.
    #[error("record batch is larger than a segment. {0}")]
    LargerThanSegment(Oversize),
    /// The header contradicts itself, or says what a producer may not say.
    #[error("record batch has an invalid header: {0}")]
    Header(HeaderFault),
    /// The records are not what the header says.
    #[error("record batch has invalid records: {0}")]
    Content(ContentError),
    /// Records break rules of the topic.
    #[error("records were rejected. count=`{}`, reason=`{:?}`", .0.count, .0.reason)]
    Records(RejectedRecords),
}

/// A size and the limit that it exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes=`{have}`, limit=`{limit}`")]
pub struct Oversize {
    /// Bytes of the batch.
    pub have: ByteCount,
    /// The most there may be.
    pub limit: ByteCount,
}

/// What is wrong with a header whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// A producer counts from 0.
    #[error("base offset is not 0. base_offset=`{0}`")]
    BaseOffset(i64),
    /// There is not one offset for each of one or more records.
    #[error(
        "offsets and records differ. records_count=`{records_count}`, \
         last_offset_delta=`{last_offset_delta}`"
    )]
    Count {
        /// Records that the header counts.
        records_count: i32,
        /// Offset of the last one minus that of the first.
        last_offset_delta: i32,
    },
    /// Only brokers write control batches.
    #[error("control batch from a client")]
    Control,
    /// An idempotent producer gives each batch a sequence.
    #[error("producer has no sequence")]
    NoSequence,
    /// A producer id comes with an epoch.
    #[error("producer has no epoch")]
    NoProducerEpoch,
    /// A transaction belongs to a producer.
    #[error("transactional batch without a producer")]
    NoProducer,
}

/// Why the records of a batch can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// They can't be decompressed.
    #[error(transparent)]
    Compression(#[from] DecompressError),
    /// One of them is broken, or there are more or fewer than the header counts.
    #[error("{error}. record=`{index}`")]
    Record {
        /// Which one, from 0.
        index: i32,
        /// What is wrong.
        error: RecordError,
    },
}

/// The most records that [`RejectedRecords::listed`] names.
///
/// Kafka names all. A request of a hundred megabytes of empty records would have us answer with a
/// gigabyte, and a client tells its user only that a record was refused with its batch.
pub const REJECTED_RECORDS_LISTED_MAX: usize = 1000;

/// Records that break rules of the topic. The whole batch is refused with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRecords {
    /// What the batch as a whole is refused for.
    pub reason: RejectionReason,
    /// How many records break a rule.
    pub count: u32,
    /// The first of them, at most [`REJECTED_RECORDS_LISTED_MAX`].
    pub listed: Vec<RejectedRecord>,
}

/// What a batch is refused for when records break rules of the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionReason {
    /// At least one timestamp, whatever else there is.
    Timestamps,
    /// Missing keys only.
    Keys,
}

/// One record that breaks a rule of the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// Its place in the batch, from 0.
    pub batch_index: i32,
    /// The first rule that it breaks.
    pub fault: RecordFault,
}

/// A rule of the topic that a record breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// A compacted topic keeps the last record of each key.
    #[error("record of a compacted topic has no key")]
    MissingKey,
    /// Too far in the past or in the future.
    #[error("timestamp is out of range. timestamp=`{timestamp}`, range=`[{oldest}, {newest}]`")]
    TimestampOutOfRange {
        /// The record's.
        timestamp: i64,
        /// The oldest that is taken.
        oldest: i64,
        /// The newest that is taken.
        newest: i64,
    },
    /// Append times are the broker's to give.
    #[error("producer set the timestamp type to LogAppendTime")]
    TimestampType,
}
