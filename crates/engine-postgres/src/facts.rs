//! Chunks as rows know them.

use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_records::SealedBatches;
use strandline_storage::{ChunkId, ChunkInfo, ChunkState, LogSettings};
use tokio_postgres::Row;

/// What is known of a chunk beside its entries. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Which of its log's chunks; never used again.
    pub(crate) number: i64,
    pub(crate) base: Offset,
    pub(crate) next: Offset,
    pub(crate) bytes: i64,
    pub(crate) max_timestamp: Option<Timestamp>,
    pub(crate) first_at: Timestamp,
    pub(crate) last_at: Timestamp,
}

/// A chunk of an open or closed log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) facts: Facts,
    pub(crate) state: ChunkState,
}

impl Facts {
    /// A chunk that begins with `batches`.
    pub(crate) fn begun_by(number: i64, batches: &SealedBatches) -> Self {
        let now = batches.appended_at();
        let mut facts = Self {
            number,
            base: batches.base_offset(),
            next: batches.base_offset(),
            bytes: 0,
            max_timestamp: None,
            first_at: now,
            last_at: now,
        };
        facts.add(batches);
        facts
    }

    pub(crate) fn add(&mut self, batches: &SealedBatches) {
        self.next = batches.next_offset();
        self.bytes += batches.size().get().cast_signed();
        self.max_timestamp = self.max_timestamp.max(batches.max_timestamp());
        self.last_at = self.last_at.max(batches.appended_at());
    }

    /// Whether `batches` still belong here.
    pub(crate) fn has_room(&self, batches: &SealedBatches, settings: &LogSettings) -> bool {
        let age_ms = batches.appended_at().millis_since(self.first_at).max(0).cast_unsigned();
        let records = (batches.next_offset() - self.base).get().cast_unsigned();
        self.bytes.cast_unsigned() + batches.size().get() <= settings.segment_bytes.get()
            && records <= settings.segment_records
            && std::time::Duration::from_millis(age_ms) < settings.segment_age
    }

    /// What people find it by: the first offset, and the number in its log.
    pub(crate) fn name(&self) -> String {
        format!("{:020}.{}", self.base.get(), self.number)
    }

    /// A row of `chunks`: its log's id stands first.
    pub(crate) fn of_row(row: &Row) -> (i64, Self) {
        let facts = Self {
            number: row.get(1),
            base: Offset::new(row.get(2)),
            next: Offset::new(row.get(3)),
            bytes: row.get(4),
            max_timestamp: row.get::<_, Option<i64>>(5).map(Timestamp::from_millis),
            first_at: Timestamp::from_millis(row.get(6)),
            last_at: Timestamp::from_millis(row.get(7)),
        };
        (row.get(0), facts)
    }
}

impl Chunk {
    pub(crate) fn info(&self) -> ChunkInfo {
        let Facts { base, next, bytes, max_timestamp, first_at, last_at, .. } = self.facts;
        ChunkInfo {
            id: ChunkId(base),
            name: self.facts.name(),
            state: self.state,
            bytes: ByteCount::new(bytes.cast_unsigned()),
            base_offset: base,
            next_offset: next,
            max_timestamp,
            first_appended_at: first_at,
            last_appended_at: last_at,
        }
    }
}
