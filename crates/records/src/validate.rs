//! What a produced batch must pass before its partition sees it, and what is rewritten on the way.
//!
//! Framing, header, checksum, records: in the order in which Kafka checks them, so that a batch with
//! two faults gets Kafka's answer. Producer sequences and transactions are state and belong to the
//! partition; codes and texts for clients belong to the broker.
//!
//! Uncompressed records are walked. Compressed ones are stored as they came and trusted beyond
//! their header and checksum, unless the topic needs to know more: it requires keys, compresses
//! anew, asks for it, or the header's timestamps are out of range and the records in question are
//! to be named.
//!
//! # Invariants
//! - The good path allocates nothing, and writes nothing when the header is right.
//! - Of a [`ValidBatch`], offsets are consecutive and the checksum matches. (asserted in tests)
//!
//! See KIP-467 for the errors of single records.

mod invalid;
mod rewrite;
mod walk;

pub use invalid::{
    ContentError, HeaderFault, InvalidBatch, Oversize, REJECTED_RECORDS_LISTED_MAX, RecordFault,
    RejectedRecord, RejectedRecords, RejectionReason,
};

use bytes::BytesMut;
use strandline_model::{ByteCount, LeaderEpoch, Offset, Timestamp};

use crate::batch::{BATCH_LENGTH, LENGTH_OVERHEAD, MAGIC};
use crate::{
    Attributes, BatchError, BatchView, Codec, Compression, DecompressError, ProducerStamp,
    SealedBatches, TimestampType,
};
use walk::{Times, Walked};

/// A topic's rules for what is produced to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceRules {
    /// `max.message.bytes`: of a whole batch, header included, as it came and as it is stored.
    pub max_message_bytes: ByteCount,
    /// `segment.bytes`: a batch never spans two.
    pub segment_bytes: ByteCount,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far in the past a record's timestamp may lie.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far in the future.
    pub timestamp_after_max_ms: i64,
    /// Whether records without a key are refused: the topic is compacted.
    pub requires_keys: bool,
    /// `compression.type` and the level that goes with it.
    pub compression: TargetCompression,
    /// `validate.compressed`: compressed records are decompressed and walked like the others.
    pub validate_compressed: bool,
    /// The most that a batch may decompress to where it has to be decompressed.
    pub decompressed_bytes_max: ByteCount,
}

/// How a topic's batches are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetCompression {
    /// As the producer compressed them.
    Producer,
    /// With this codec; a batch that comes with it already stays as it is, whatever its level.
    Codec(Codec),
}

/// A batch that keeps its topic's rules, rewritten where the rules say so.
#[derive(Debug)]
pub struct ValidBatch {
    content: Content,
    producer: Option<ProducerStamp>,
    records_count: u32,
    transactional: bool,
    timestamp_type: TimestampType,
}

/// The bytes of a valid batch.
#[derive(Debug)]
enum Content {
    /// Not sealed yet.
    Open(BytesMut),
    /// Back from sealing: as it was sealed until it has to be sealed differently.
    Sealed(SealedBatches),
}

impl ValidBatch {
    fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Open(bytes) => bytes,
            Content::Sealed(sealed) => sealed.bytes(),
        }
    }

    /// The batch as it will be stored, but for what sealing writes.
    pub fn view(&self) -> BatchView<'_> {
        BatchView::exactly(self.bytes()).expect("a valid batch is one batch")
    }

    /// The idempotent producer, if any; it always has a sequence.
    pub const fn producer(&self) -> Option<ProducerStamp> {
        self.producer
    }

    /// How many records there are, which is how many offsets they take; never 0.
    pub const fn records_count(&self) -> u32 {
        self.records_count
    }

    /// Whether the batch is part of its producer's transaction.
    pub const fn is_transactional(&self) -> bool {
        self.transactional
    }

    /// How many bytes will be stored.
    pub fn size(&self) -> ByteCount {
        ByteCount::of(self.bytes())
    }

    /// Whose clock the stored timestamps come from: with [`TimestampType::LogAppendTime`] the reply
    /// carries the time of sealing.
    pub const fn timestamp_type(&self) -> TimestampType {
        self.timestamp_type
    }

    /// Gives the batch its place in the log. See [`SealedBatches::seal`].
    pub fn seal(
        self,
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        now: Timestamp,
    ) -> SealedBatches {
        let timestamp_type = self.timestamp_type;
        let bytes = match self.content {
            Content::Open(bytes) => bytes,
            Content::Sealed(sealed)
                if timestamp_type == TimestampType::CreateTime
                    && sealed.base_offset() == base_offset
                    && sealed.iter().all(|batch| batch.leader_epoch() == Some(leader_epoch)) =>
            {
                return sealed.appended_later(now);
            }
            Content::Sealed(sealed) => sealed
                .into_bytes()
                .try_into_mut()
                .unwrap_or_else(|shared| BytesMut::from(shared.as_ref())),
        };
        SealedBatches::seal(bytes, base_offset, leader_epoch, timestamp_type, now)
    }

    /// The batch back from sealing, to be sealed again: the engine that it was meant for had no
    /// room. Copied only when it is to be sealed at another place while somebody else holds the
    /// bytes, or the memory around them: for the same place they are right already.
    ///
    /// # Panics
    /// When `sealed` is more than one batch: [`seal`](Self::seal) makes one of one.
    pub fn unseal(sealed: SealedBatches) -> Self {
        let batch = BatchView::exactly(sealed.bytes()).expect("a sealed batch is one batch");
        let (producer, records_count) = (batch.producer(), batch.records_count());
        let attributes = batch.attributes();
        Self {
            producer,
            records_count: records_count.cast_unsigned(),
            transactional: attributes.is_transactional(),
            timestamp_type: attributes.timestamp_type(),
            content: Content::Sealed(sealed),
        }
    }
}

/// Checks what a producer sent for one partition against the rules of its topic.
pub fn validate(
    mut bytes: BytesMut,
    rules: &ProduceRules,
    now: Timestamp,
) -> Result<ValidBatch, InvalidBatch> {
    let batch = only_batch(&bytes)?;
    let codec = check_header(&batch, rules)?;
    let (producer, records_count) = (batch.producer(), batch.records_count());
    let attributes = batch.attributes();
    let batch_bytes = batch.bytes().len();
    match check_records(&batch, codec, rules, now)? {
        Verdict::AsItCame => bytes.truncate(batch_bytes),
        Verdict::NewHeader { attributes, max_timestamp } => {
            bytes.truncate(batch_bytes);
            rewrite::header(&mut bytes, attributes, max_timestamp);
        }
        Verdict::NewBatch(rebuilt) => {
            within(rebuilt.len(), rules.max_message_bytes).map_err(InvalidBatch::TooLarge)?;
            bytes = rebuilt;
        }
    }
    within(bytes.len(), rules.segment_bytes).map_err(InvalidBatch::LargerThanSegment)?;
    Ok(ValidBatch {
        content: Content::Open(bytes),
        producer,
        records_count: records_count.cast_unsigned(),
        transactional: attributes.is_transactional(),
        timestamp_type: rules.timestamp_type,
    })
}

/// The one batch that a producer may send for a partition.
///
/// What follows it is looked at as Kafka looks at it: another whole batch is refused, bytes that
/// begin none are dropped.
pub fn only_batch(bytes: &[u8]) -> Result<BatchView<'_>, InvalidBatch> {
    let total = whole_batch(bytes)?.ok_or(InvalidBatch::NoBatch)?;
    let magic = bytes.get(MAGIC).map_or(0, |magic| magic.cast_signed());
    if magic < 2 {
        return Err(InvalidBatch::OldFormat { magic });
    }
    if whole_batch(bytes.get(total..).unwrap_or_default())?.is_some() {
        return Err(InvalidBatch::SeveralBatches);
    }
    BatchView::first(bytes).map_err(InvalidBatch::Corrupt)
}

/// How long the batch at the start of `bytes` is, in whatever format; `None` when it is not all there.
fn whole_batch(bytes: &[u8]) -> Result<Option<usize>, InvalidBatch> {
    /// The shortest header of the oldest format, as far as the length field counts it.
    const LENGTH_MIN: usize = 14;
    let Some(length) = bytes.get(BATCH_LENGTH..).and_then(|tail| tail.first_chunk()) else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*length);
    let total = usize::try_from(length)
        .ok()
        .filter(|&length| length >= LENGTH_MIN)
        .map(|length| length + LENGTH_OVERHEAD)
        .ok_or(InvalidBatch::Corrupt(BatchError::Length(length)))?;
    match bytes.get(MAGIC).map(|magic| magic.cast_signed()) {
        None => Ok(None),
        Some(0..=2) => Ok((total <= bytes.len()).then_some(total)),
        Some(magic) => Err(InvalidBatch::Corrupt(BatchError::Magic(magic))),
    }
}

fn check_header(batch: &BatchView<'_>, rules: &ProduceRules) -> Result<Compression, InvalidBatch> {
    let fault = |fault| Err(InvalidBatch::Header(fault));
    if batch.raw_base_offset() != 0 {
        return fault(HeaderFault::BaseOffset(batch.raw_base_offset()));
    }
    within(batch.bytes().len(), rules.max_message_bytes).map_err(InvalidBatch::TooLarge)?;
    batch.check_crc().map_err(InvalidBatch::Corrupt)?;
    let attributes = batch.attributes();
    let unknown_codec = ContentError::Compression(DecompressError::UnknownCodec);
    let codec = attributes.compression().ok_or(InvalidBatch::Content(unknown_codec))?;
    let (count, last_offset_delta) = (batch.records_count(), batch.last_offset_delta());
    if count <= 0 || last_offset_delta != count - 1 {
        return fault(HeaderFault::Count { records_count: count, last_offset_delta });
    }
    if attributes.is_control() {
        return fault(HeaderFault::Control);
    }
    match (batch.has_producer_id(), batch.producer()) {
        (true, Some(ProducerStamp { base_sequence: Some(_), .. })) => Ok(codec),
        (true, Some(_)) => fault(HeaderFault::NoSequence),
        // Kafka takes these two as they are; then neither duplicates nor open transactions are seen.
        (true, None) => fault(HeaderFault::NoProducerEpoch),
        (false, _) if attributes.is_transactional() => fault(HeaderFault::NoProducer),
        (false, _) => Ok(codec),
    }
}

fn within(have: usize, limit: ByteCount) -> Result<(), Oversize> {
    let have = ByteCount::new(have as u64);
    if have > limit { Err(Oversize { have, limit }) } else { Ok(()) }
}

/// What is to be stored.
enum Verdict {
    AsItCame,
    NewHeader { attributes: Attributes, max_timestamp: i64 },
    NewBatch(BytesMut),
}

fn check_records(
    batch: &BatchView<'_>,
    codec: Compression,
    rules: &ProduceRules,
    now: Timestamp,
) -> Result<Verdict, InvalidBatch> {
    let target = match rules.compression {
        TargetCompression::Codec(target) if target.compression() != codec => Some(target),
        TargetCompression::Codec(_) | TargetCompression::Producer => None,
    };
    let times = Times::of(batch, rules, now);
    let must_walk = codec == Compression::None
        || target.is_some()
        || rules.validate_compressed
        || rules.requires_keys
        || !times.header_is_in_range(batch);
    if !must_walk {
        return Ok(new_header(batch, rules, batch.raw_max_timestamp()));
    }
    let records = batch
        .decompressed(rules.decompressed_bytes_max)
        .map_err(|error| InvalidBatch::Content(ContentError::Compression(error)))?;
    let walked = walk::walk(&records, batch, &times, rules.requires_keys)?;
    match (target, walked) {
        (None, Walked { consecutive: true, max_timestamp }) => {
            Ok(new_header(batch, rules, max_timestamp))
        }
        (_, Walked { consecutive, max_timestamp }) => {
            let codec = target.unwrap_or(Codec::at_default_level(codec));
            let attributes = stored_attributes(batch, rules).with_compression(codec.compression());
            let records =
                if consecutive { records } else { rewrite::renumber(&records, batch)?.into() };
            let mut rebuilt =
                rewrite::with_records(batch, &records, codec).map_err(InvalidBatch::TooLarge)?;
            rewrite::header(&mut rebuilt, attributes, max_timestamp);
            Ok(Verdict::NewBatch(rebuilt))
        }
    }
}

/// A header that says what was found in the records; with `LogAppendTime` sealing writes it anyway.
fn new_header(batch: &BatchView<'_>, rules: &ProduceRules, max_timestamp: i64) -> Verdict {
    let attributes = stored_attributes(batch, rules);
    let right = match rules.timestamp_type {
        TimestampType::CreateTime => {
            attributes == batch.attributes() && max_timestamp == batch.raw_max_timestamp()
        }
        TimestampType::LogAppendTime => true,
    };
    if right { Verdict::AsItCame } else { Verdict::NewHeader { attributes, max_timestamp } }
}

fn stored_attributes(batch: &BatchView<'_>, rules: &ProduceRules) -> Attributes {
    batch.attributes().with_timestamp_type(rules.timestamp_type)
}

#[cfg(test)]
mod tests;
