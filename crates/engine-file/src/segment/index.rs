//! The sparse indexes of a segment: offset to position, and timestamp to offset.
//!
//! Entries are Kafka's (`OffsetIndex`, `TimeIndex`): its dump tool checks ours.
//!
//! # Invariants
//! - Offsets, positions and timestamps rise strictly from entry to entry.
//! - A time entry holds the newest timestamp of everything up to the batch that it names.

use strandline_model::{Offset, OffsetDelta, Timestamp};
use strandline_records::BatchHeader;

/// The batch at `position` ends with offset `base + relative`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OffsetEntry {
    pub(super) relative: u32,
    pub(super) position: u32,
}

/// Nothing up to offset `base + relative`, which ends a batch, is newer than `timestamp`, which that
/// batch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeEntry {
    pub(super) timestamp: Timestamp,
    pub(super) relative: u32,
}

/// An entry as it stands in a file.
pub(super) trait Entry: Sized + Copy {
    /// Bytes of an entry.
    const BYTES: usize;

    /// `None` for bytes that are no entry.
    fn parse(bytes: &[u8]) -> Option<Self>;

    fn append_to(self, buf: &mut Vec<u8>);

    /// Whether `self` may stand right behind `earlier`.
    fn follows(self, earlier: Self) -> bool;
}

/// The indexes of a segment, or their part up to some batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) offsets: Vec<OffsetEntry>,
    pub(super) times: Vec<TimeEntry>,
    /// Bytes from the batch of the last offset entry on.
    bytes_since_entry: u64,
    /// The newest timestamp so far and the first batch that has it.
    newest: Option<TimeEntry>,
}

impl Index {
    /// The part of an index before a batch: its entries, and where that batch stands.
    pub(super) fn resumed(offsets: Vec<OffsetEntry>, times: Vec<TimeEntry>, position: u64) -> Self {
        let last_entry = offsets.last().map_or(0, |entry| u64::from(entry.position));
        let newest = times.last().copied();
        Self { offsets, times, bytes_since_entry: position - last_entry, newest }
    }

    /// Takes note of the next batch.
    pub(super) fn push(
        &mut self,
        base_offset: Offset,
        position: u64,
        batch: &BatchHeader,
        interval: u64,
    ) {
        let relative = relative(base_offset, batch.last_offset());
        if let Some(timestamp) = batch.max_timestamp
            && self.newest.is_none_or(|newest| timestamp > newest.timestamp)
        {
            self.newest = Some(TimeEntry { timestamp, relative });
        }
        if self.bytes_since_entry > interval {
            let position = u32::try_from(position).expect("segments are smaller than 2 GiB");
            self.offsets.push(OffsetEntry { relative, position });
            self.push_newest();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += batch.size;
    }

    /// Ends the indexes of a segment that is sealed.
    pub(super) fn finish(&mut self) {
        self.push_newest();
    }

    fn push_newest(&mut self) {
        if let Some(newest) = self.newest
            && self.times.last().is_none_or(|last| newest.follows(*last))
        {
            self.times.push(newest);
        }
    }
}

trait LastOffset {
    fn last_offset(&self) -> Offset;
}

impl LastOffset for BatchHeader {
    fn last_offset(&self) -> Offset {
        self.next_offset + OffsetDelta::new(-1)
    }
}

/// `offset - base_offset` as the entries hold it.
///
/// # Panics
/// When the offset lies more than 2³¹ − 1 above the base: a segment is rolled before.
pub(super) fn relative(base_offset: Offset, offset: Offset) -> u32 {
    u32::try_from((offset - base_offset).get()).expect("a segment spans less than 2^31 offsets")
}

impl OffsetEntry {
    /// Whether the entry names this batch.
    pub(super) fn names(self, base_offset: Offset, batch: &BatchHeader) -> bool {
        (batch.last_offset() - base_offset).get() == i64::from(self.relative)
    }
}

impl TimeEntry {
    /// Whether the entry names this batch.
    pub(super) fn names(self, base_offset: Offset, batch: &BatchHeader) -> bool {
        (batch.last_offset() - base_offset).get() == i64::from(self.relative)
            && batch.max_timestamp == Some(self.timestamp)
    }
}

impl Entry for OffsetEntry {
    const BYTES: usize = 8;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (relative, rest) = bytes.split_first_chunk()?;
        let relative = u32::try_from(i32::from_be_bytes(*relative)).ok()?;
        let position = u32::try_from(i32::from_be_bytes(*rest.first_chunk()?)).ok()?;
        Some(Self { relative, position })
    }

    fn append_to(self, buf: &mut Vec<u8>) {
        buf.extend(self.relative.to_be_bytes());
        buf.extend(self.position.to_be_bytes());
    }

    fn follows(self, earlier: Self) -> bool {
        self.relative > earlier.relative && self.position > earlier.position
    }
}

impl Entry for TimeEntry {
    const BYTES: usize = 12;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (timestamp, rest) = bytes.split_first_chunk()?;
        let timestamp = Timestamp::from_wire(i64::from_be_bytes(*timestamp))?;
        let relative = u32::try_from(i32::from_be_bytes(*rest.first_chunk()?)).ok()?;
        Some(Self { timestamp, relative })
    }

    fn append_to(self, buf: &mut Vec<u8>) {
        buf.extend(self.timestamp.as_millis().to_be_bytes());
        buf.extend(self.relative.to_be_bytes());
    }

    fn follows(self, earlier: Self) -> bool {
        self.timestamp > earlier.timestamp && self.relative > earlier.relative
    }
}

/// The entries at the start of a file's bytes, up to the first that can't stand where it does.
pub(super) fn parse_entries<E: Entry>(bytes: &[u8], mut accept: impl FnMut(E) -> bool) -> Vec<E> {
    let mut entries: Vec<E> = Vec::with_capacity(bytes.len() / E::BYTES);
    for bytes in bytes.chunks_exact(E::BYTES) {
        match E::parse(bytes) {
            Some(entry)
                if entries.last().is_none_or(|last| entry.follows(*last)) && accept(entry) =>
            {
                entries.push(entry);
            }
            _ => break,
        }
    }
    entries
}

pub(super) fn encode_entries<E: Entry>(entries: &[E]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * E::BYTES);
    for entry in entries {
        entry.append_to(&mut bytes);
    }
    bytes
}
