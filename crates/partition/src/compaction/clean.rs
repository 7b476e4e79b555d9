//! What becomes of each batch, and each record in it.

use std::collections::BTreeMap;

use strandline_model::{ByteCount, Offset, ProducerId, Timestamp};
use strandline_records::{
    BatchView, ContentError, FilterOutcome, FilterRules, Filtered, Keep, Record, WhenEmpty, records,
};

use super::OffsetMap;

/// Keys that the map is told of before they are put.
const KEYS_AHEAD: usize = 32;

/// How far the keys of a batch were noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// All of them.
    All,
    /// The map is full: those of the records before this offset.
    Below(Offset),
}

/// Notes the keys of the records of a batch that lie at or above `from`.
///
/// Not those of control records, which are no keys, and not those of transactions: while nobody
/// knows which ones were aborted, none supersedes anything. Of a batch that can't be read nothing is
/// known, and nothing of it goes.
pub fn note_keys(
    batch: &BatchView<'_>,
    from: Offset,
    map: &mut OffsetMap,
    decompressed_bytes_max: ByteCount,
) -> Result<Noted, ContentError> {
    let attributes = batch.attributes();
    if attributes.is_control() || attributes.is_transactional() {
        return Ok(Noted::All);
    }
    let block = batch.decompressed(decompressed_bytes_max)?;
    // First whether it can be read to its end: the pass that filters it asks for the same.
    let each = || records(&block, batch.records_count()).zip(0..);
    for (record, index) in each() {
        record.map_err(|error| ContentError::Record { index, error })?;
    }
    let keyed = each().filter_map(|(record, _)| {
        let record = record.ok()?;
        let offset = batch.offset_of(&record).filter(|offset| *offset >= from)?;
        Some((record.key?, offset))
    });
    let mut keyed = keyed.peekable();
    let mut next = Vec::with_capacity(KEYS_AHEAD);
    while keyed.peek().is_some() {
        next.clear();
        next.extend(keyed.by_ref().take(KEYS_AHEAD));
        map.expect(next.iter().map(|(key, _)| *key));
        for &(key, offset) in &next {
            if map.put(key, offset).is_err() {
                return Ok(Noted::Below(offset));
            }
        }
    }
    Ok(Noted::All)
}

/// A pass over a log, once the keys are noted.
#[derive(Clone, Copy, Debug)]
pub struct Cleaning<'a> {
    /// The newest offsets of the keys.
    pub map: &'a OffsetMap,
    /// Of everything from the dirty part's beginning up to here, exclusive. What lies beyond stays.
    pub noted_end: Offset,
    /// Where the cleaned part ends: the batch that ends there stays, if only as a header, so that the
    /// end is told by a batch.
    pub upto: Offset,
    /// Where the last batch of each producer ends: it stays too, for its sequence.
    pub producers: &'a BTreeMap<ProducerId, Offset>,
    /// The time of the pass, as far as it is believed: what has outlived its horizon by it goes.
    pub now: Timestamp,
    /// The latest that any clock says: new horizons are counted from it, so that none is too early.
    pub latest: Timestamp,
    /// `delete.retention.ms`.
    pub delete_retention_ms: u64,
    /// The most that a batch may decompress to.
    pub decompressed_bytes_max: ByteCount,
}

/// What becomes of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned {
    /// What is to be written in its place.
    pub outcome: FilterOutcome,
    /// Records that go.
    pub removed: u32,
    /// Records that stay.
    pub kept: u32,
    /// Until when those that delete their keys stay, if there are any and it is known.
    pub delete_horizon: Option<Timestamp>,
    /// Its records could not be read: it stays as it is.
    pub is_unreadable: bool,
}

impl Cleaning<'_> {
    /// Decides about one batch, whose checksum the caller has checked.
    pub fn clean(&self, batch: &BatchView<'_>) -> Cleaned {
        let lies_beyond = batch.base_offset().is_none_or(|base| base >= self.noted_end);
        if lies_beyond || batch.attributes().is_control() {
            return Cleaned::same(batch, false);
        }
        let rules = FilterRules {
            when_empty: if self.is_needed(batch) { WhenEmpty::KeepHeader } else { WhenEmpty::Drop },
            delete_horizon: self.new_horizon(batch),
            decompressed_bytes_max: self.decompressed_bytes_max,
        };
        let filtered = batch.filtered_by(&rules, Judge { cleaning: self, batch });
        match filtered {
            Ok(Filtered { outcome, kept, removed, delete_horizon }) => {
                Cleaned { outcome, removed, kept, delete_horizon, is_unreadable: false }
            }
            Err(_) => Cleaned::same(batch, true),
        }
    }

    /// Whether a record stays.
    fn keeps(&self, batch: &BatchView<'_>, offset: Offset, record: &Record<'_>) -> bool {
        if offset >= self.noted_end {
            return true;
        }
        // As Kafka: what has no key can't be asked for in a compacted topic.
        let Some(key) = record.key else { return false };
        if self.map.get(key).is_some_and(|newest| newest > offset) {
            return false;
        }
        record.value.is_some()
            || batch.attributes().is_transactional()
            || batch.delete_horizon().is_none_or(|horizon| self.now < horizon)
    }

    /// Whether the batch says something beyond its records.
    fn is_needed(&self, batch: &BatchView<'_>) -> bool {
        let end = batch.next_offset();
        let is_last_of = |id| self.producers.get(&id).copied() == end && end.is_some();
        end == Some(self.upto) || batch.producer().is_some_and(|stamp| is_last_of(stamp.id))
    }

    /// The horizon for records that delete keys and have none yet. Those of transactions get none:
    /// they have superseded nothing. Nor those of a batch that is cleaned in part.
    fn new_horizon(&self, batch: &BatchView<'_>) -> Option<Timestamp> {
        let is_whole = batch.next_offset().is_some_and(|next| next <= self.noted_end);
        let retention_ms = i64::try_from(self.delete_retention_ms).unwrap_or(i64::MAX);
        (is_whole && !batch.attributes().is_transactional())
            .then(|| self.latest.max(self.now).plus_millis(retention_ms))
    }
}

/// Decides about the records of one batch.
struct Judge<'a> {
    cleaning: &'a Cleaning<'a>,
    batch: &'a BatchView<'a>,
}

impl Keep for Judge<'_> {
    fn expect(&mut self, records: &[Record<'_>]) {
        self.cleaning.map.expect(records.iter().filter_map(|record| record.key));
    }

    fn keeps(&mut self, offset: Offset, record: &Record<'_>) -> bool {
        self.cleaning.keeps(self.batch, offset, record)
    }
}

impl Cleaned {
    fn same(batch: &BatchView<'_>, is_unreadable: bool) -> Self {
        Self {
            outcome: FilterOutcome::Same,
            removed: 0,
            kept: batch.records_count().max(0).cast_unsigned(),
            delete_horizon: None,
            is_unreadable,
        }
    }
}
