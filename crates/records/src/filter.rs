//! A batch without some of its records: what compaction writes in the place of a batch.
//!
//! Offsets, sequences, producer, epochs and codec stay as they were, and the batch goes on to span
//! the offsets that it spanned: readers step over what is gone, and the broker still knows the last
//! sequence of a producer. Which records go is the caller's to say.
//!
//! # Invariants
//! - A record that stays keeps its offset, timestamp, key, value and headers.
//! - A batch of which nothing goes, and that needs no delete horizon, is left as it is.
//!
//! See KIP-534 for the delete horizon.

use bytes::{Bytes, BytesMut};
use strandline_model::{ByteCount, Offset, Timestamp};

use crate::batch::{
    ATTRIBUTES, BASE_TIMESTAMP, BATCH_LENGTH, LENGTH_OVERHEAD, MAX_TIMESTAMP, RECORDS_COUNT,
    write_crc, write_field,
};
use crate::{
    BatchView, Codec, Compression, ContentError, DecompressError, HEADER_BYTES, Record,
    TimestampType, compress, records,
};

/// Records that [`Keep`] is told of before it is asked.
const RECORDS_AHEAD: usize = 32;

/// How a batch is [filtered](BatchView::filtered).
#[derive(Clone, Copy, Debug)]
pub struct FilterRules {
    /// What becomes of it when no record stays.
    pub when_empty: WhenEmpty,
    /// Until when the records without a value that stay are to be kept; `None` leaves that open. A
    /// batch that has a horizon already keeps it.
    pub delete_horizon: Option<Timestamp>,
    /// The most that it may decompress to.
    pub decompressed_bytes_max: ByteCount,
}

/// What becomes of a batch without records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenEmpty {
    /// It goes.
    Drop,
    /// Its header stays, for the offsets and sequences that it tells of.
    KeepHeader,
}

/// A batch that was filtered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// What is to be written in its place.
    pub outcome: FilterOutcome,
    /// Records that stay.
    pub kept: u32,
    /// Records that go.
    pub removed: u32,
    /// Until when those without a value stay, if there are any and it is known.
    pub delete_horizon: Option<Timestamp>,
}

/// What a batch becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterOutcome {
    /// It stays, byte for byte.
    Same,
    /// Another batch takes its place.
    Changed(Bytes),
    /// Nothing of it is left.
    Gone,
}

/// Who decides which records of a batch stay.
pub trait Keep {
    /// Tells of records that are asked about next, for who can look several up at once.
    fn expect(&mut self, records: &[Record<'_>]);

    /// Whether a record stays.
    fn keeps(&mut self, offset: Offset, record: &Record<'_>) -> bool;
}

/// Decides about each record by itself.
struct OneByOne<F>(F);

impl<F: FnMut(Offset, &Record<'_>) -> bool> Keep for OneByOne<F> {
    fn expect(&mut self, _: &[Record<'_>]) {}

    fn keeps(&mut self, offset: Offset, record: &Record<'_>) -> bool {
        (self.0)(offset, record)
    }
}

impl BatchView<'_> {
    /// Until when records of this batch without a value are to be kept; `None` while no compaction
    /// has seen them.
    pub fn delete_horizon(&self) -> Option<Timestamp> {
        if self.attributes().has_delete_horizon() {
            Timestamp::from_wire(self.base_timestamp())
        } else {
            None
        }
    }

    /// The batch with the records that `keep` wants, whose checksum the caller has checked.
    ///
    /// Fails when the records can't be read, which says nothing of the rest of the log.
    pub fn filtered(
        &self,
        rules: &FilterRules,
        keep: impl FnMut(Offset, &Record<'_>) -> bool,
    ) -> Result<Filtered, ContentError> {
        self.filtered_by(rules, OneByOne(keep))
    }

    /// The same, for who wants to know beforehand which records are asked about.
    pub fn filtered_by(
        &self,
        rules: &FilterRules,
        mut keep: impl Keep,
    ) -> Result<Filtered, ContentError> {
        let block = self.decompressed(rules.decompressed_bytes_max)?;
        let mut kept = 0;
        let mut removed = 0;
        let mut has_tombstone = false;
        let mut newest = -1;
        let mut wanted = Vec::new();
        let mut each = records(&block, self.records_count()).zip(0..).peekable();
        let mut next = Vec::with_capacity(RECORDS_AHEAD);
        while each.peek().is_some() {
            next.clear();
            for (record, index) in each.by_ref().take(RECORDS_AHEAD) {
                next.push(record.map_err(|error| ContentError::Record { index, error })?);
            }
            keep.expect(&next);
            for record in &next {
                // What has no offset is nobody's to judge.
                let stays = self.offset_of(record).is_none_or(|offset| keep.keeps(offset, record));
                wanted.push(stays);
                if stays {
                    kept += 1;
                    has_tombstone |= record.value.is_none();
                    newest = newest.max(self.base_timestamp().wrapping_add(record.timestamp_delta));
                } else {
                    removed += 1;
                }
            }
        }
        let had_horizon = self.delete_horizon();
        let set = rules.delete_horizon.filter(|_| has_tombstone && had_horizon.is_none());
        let outcome = if kept == 0 {
            self.emptied(rules.when_empty)
        } else if removed == 0 && set.is_none() {
            FilterOutcome::Same
        } else {
            let stays = wanted.iter().copied();
            FilterOutcome::Changed(self.rebuilt(&block, stays, kept, newest, set)?)
        };
        let delete_horizon = set.or(had_horizon).filter(|_| has_tombstone);
        Ok(Filtered { outcome, kept, removed, delete_horizon })
    }

    fn emptied(&self, when_empty: WhenEmpty) -> FilterOutcome {
        match when_empty {
            WhenEmpty::Drop => FilterOutcome::Gone,
            WhenEmpty::KeepHeader if self.records_count() == 0 => FilterOutcome::Same,
            WhenEmpty::KeepHeader => {
                let mut bytes = BytesMut::from(self.header_bytes());
                let attributes =
                    self.attributes().with_compression(Compression::None).without_delete_horizon();
                write_field(&mut bytes, ATTRIBUTES, attributes.bits().to_be_bytes());
                // Unlike Kafka, which leaves the newest timestamp of what was there: a lookup by
                // time would be led to a batch that has no such record.
                write_field(&mut bytes, BASE_TIMESTAMP, (-1_i64).to_be_bytes());
                write_field(&mut bytes, MAX_TIMESTAMP, (-1_i64).to_be_bytes());
                write_field(&mut bytes, RECORDS_COUNT, 0_i32.to_be_bytes());
                let length = i32::try_from(HEADER_BYTES - LENGTH_OVERHEAD).expect("a short header");
                write_field(&mut bytes, BATCH_LENGTH, length.to_be_bytes());
                write_crc(&mut bytes);
                FilterOutcome::Changed(bytes.freeze())
            }
        }
    }

    /// The batch with those records of `block` that stay, compressed as it was.
    fn rebuilt(
        &self,
        block: &[u8],
        stays: impl Iterator<Item = bool>,
        kept: u32,
        newest: i64,
        horizon: Option<Timestamp>,
    ) -> Result<Bytes, ContentError> {
        let old_base = self.base_timestamp();
        let new_base = horizon.map_or(old_base, Timestamp::as_millis);
        let shift = old_base.wrapping_sub(new_base);
        let mut left = Vec::with_capacity(block.len());
        let each = records(block, self.records_count()).flatten();
        for (record, _) in each.zip(stays).filter(|(_, stays)| *stays) {
            let timestamp_delta = record.timestamp_delta.wrapping_add(shift);
            Record { timestamp_delta, ..record }.write_at(&mut left, record.offset_delta);
        }
        let compression = self.attributes().compression().unwrap_or(Compression::None);
        let mut bytes = self.header_bytes().to_vec();
        compress(Codec::at_default_level(compression), &left, &mut bytes);
        let length = i32::try_from(bytes.len() - LENGTH_OVERHEAD).map_err(|_| {
            let limit = ByteCount::new(i32::MAX.unsigned_abs().into());
            ContentError::Compression(DecompressError::TooLarge { limit })
        })?;
        write_field(&mut bytes, BATCH_LENGTH, length.to_be_bytes());
        write_field(&mut bytes, RECORDS_COUNT, kept.cast_signed().to_be_bytes());
        write_field(&mut bytes, BASE_TIMESTAMP, new_base.to_be_bytes());
        if horizon.is_some() {
            let attributes = self.attributes().with_delete_horizon();
            write_field(&mut bytes, ATTRIBUTES, attributes.bits().to_be_bytes());
        }
        if self.attributes().timestamp_type() == TimestampType::CreateTime {
            write_field(&mut bytes, MAX_TIMESTAMP, newest.max(-1).to_be_bytes());
        }
        write_crc(&mut bytes);
        Ok(bytes.into())
    }

    fn header_bytes(&self) -> &[u8] {
        self.bytes().get(..HEADER_BYTES).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
