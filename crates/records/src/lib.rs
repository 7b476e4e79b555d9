//! Kafka's record batch, version 2: the bytes that producers send, logs keep and consumers get.
//!
//! A batch is stored as it came; only what lies outside its checksum is written by the broker when
//! the batch is [sealed](SealedBatches::seal). This crate knows bytes and their rules. It does not
//! know where batches are stored, who may append, or how a request carries them.
//!
//! ```
//! use bytes::BytesMut;
//! use strandline_model::{ByteCount, LeaderEpoch, Offset, Timestamp};
//! use strandline_records::{
//!     BatchBuilder, NewRecord, ProduceRules, TargetCompression, TimestampType, validate,
//! };
//!
//! let mut builder = BatchBuilder::new();
//! builder.push(NewRecord { value: Some(b"hello"), ..NewRecord::default() });
//! let sent: BytesMut = builder.build();
//!
//! let rules = ProduceRules {
//!     max_message_bytes: ByteCount::mib(1),
//!     segment_bytes: ByteCount::gib(1),
//!     timestamp_type: TimestampType::CreateTime,
//!     timestamp_before_max_ms: i64::MAX,
//!     timestamp_after_max_ms: 3_600_000,
//!     requires_keys: false,
//!     compression: TargetCompression::Producer,
//!     validate_compressed: false,
//!     decompressed_bytes_max: ByteCount::mib(64),
//! };
//! let now = Timestamp::from_millis(1_700_000_000_000);
//! let batch = validate(sent, &rules, now).expect("the batch keeps the rules");
//! let sealed = batch.seal(Offset::new(40), LeaderEpoch::ZERO, now);
//! assert_eq!(sealed.next_offset(), Offset::new(41));
//! ```
//!
//! # Invariants
//! - Bytes from a network or a disk never panic here: every length is checked before it is used.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod attributes;
mod batch;
mod builder;
mod checksum;
mod compression;
mod control;
mod filter;
mod header;
mod hole;
mod lookup;
mod record;
mod sealed;
mod validate;
mod varint;

pub use attributes::{Attributes, Compression, TimestampType};
pub use batch::{BatchError, BatchIter, BatchView, HEADER_BYTES, ProducerStamp, batches};
pub use builder::{BatchBuilder, NewRecord};
pub use checksum::crc32c;
pub use compression::{Codec, DecompressError, compress, decompress};
pub use control::{ControlError, ControlRecord, EndTransaction, TransactionOutcome};
pub use filter::{FilterOutcome, FilterRules, Filtered, Keep, WhenEmpty};
pub use header::BatchHeader;
pub use hole::hole;
pub use lookup::RecordTime;
pub use record::{Header, HeaderIter, Headers, Record, RecordError, RecordIter, records};
pub use sealed::SealedBatches;
pub use validate::{
    ContentError, HeaderFault, InvalidBatch, Oversize, ProduceRules, REJECTED_RECORDS_LISTED_MAX,
    RecordFault, RejectedRecord, RejectedRecords, RejectionReason, TargetCompression, ValidBatch,
    only_batch, validate,
};
