//! What the engine remembers of a segment, and where an append goes.

use strandline_model::{ByteCount, Offset, PartitionId, Timestamp};
use strandline_records::SealedBatches;
use strandline_storage::{ChunkId, ChunkInfo, ChunkState};

use super::name::{FileKey, FileKind, SegmentName};

/// What a segment holds, as the engine's rows keep it: enough to open a log without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentFacts {
    /// The offset of its first record.
    pub base_offset: Offset,
    /// With the offset its name: 0 for one that was appended to.
    pub generation: u64,
    /// Bytes of its batches: how much of the file is believed.
    pub bytes: u64,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// The newest timestamp of its records; `None` when none has one.
    pub max_timestamp: Option<Timestamp>,
    /// When its first batch was appended, by the broker's clock.
    pub first_appended_at: Timestamp,
    /// When its last batch was appended, by the broker's clock.
    pub last_appended_at: Timestamp,
}

impl SegmentFacts {
    /// Of a segment that `batches` begin, before they are in it.
    pub(crate) fn begun_by(batches: &SealedBatches) -> Self {
        Self {
            base_offset: batches.base_offset(),
            generation: 0,
            bytes: 0,
            next_offset: batches.base_offset(),
            max_timestamp: None,
            first_appended_at: batches.appended_at(),
            last_appended_at: batches.appended_at(),
        }
    }

    /// What its files are called.
    pub(crate) const fn name(&self) -> SegmentName {
        SegmentName { base_offset: self.base_offset, generation: self.generation }
    }

    /// What people are told of it.
    pub(super) fn chunk(&self, id: PartitionId, state: ChunkState) -> ChunkInfo {
        ChunkInfo {
            id: ChunkId(self.base_offset),
            name: FileKey::new(id, self.name(), FileKind::Log).name(),
            state,
            bytes: ByteCount::new(self.bytes),
            base_offset: self.base_offset,
            next_offset: self.next_offset,
            max_timestamp: self.max_timestamp,
            first_appended_at: self.first_appended_at,
            last_appended_at: self.last_appended_at,
        }
    }

    /// With `batches` behind what was there.
    pub(crate) fn add(&mut self, batches: &SealedBatches) {
        self.bytes += batches.size().get();
        self.next_offset = batches.next_offset();
        self.max_timestamp = self.max_timestamp.max(batches.max_timestamp());
        self.last_appended_at = self.last_appended_at.max(batches.appended_at());
    }
}

/// The chunks of a log that is not open: the last one goes on growing when it is.
pub(crate) fn chunks_of(id: PartitionId, facts: &[SegmentFacts]) -> Vec<ChunkInfo> {
    let mut chunks: Vec<_> =
        facts.iter().map(|facts| facts.chunk(id, ChunkState::Sealed)).collect();
    if let Some(last) = chunks.last_mut() {
        last.state = ChunkState::Active;
    }
    chunks
}

/// Where batches go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The base offset of the segment.
    pub segment: Offset,
    /// The byte in it. 0: the batches begin the segment, and the one before it is sealed.
    pub position: u64,
}

/// Batches and where they go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Append<'a> {
    /// Where.
    pub place: Placement,
    /// What.
    pub batches: &'a SealedBatches,
}
