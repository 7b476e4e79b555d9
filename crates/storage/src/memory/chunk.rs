//! The chunks of a log in memory: whole batches, found by binary search.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_records::{BatchView, SealedBatches};

use crate::{BatchInfo, ChunkId, ChunkInfo, ChunkState, Finding, LogSettings};

/// What a batch costs beside its own bytes: its [`Batch`], and the header of its allocation.
pub(super) const BATCH_OVERHEAD_BYTES: u64 = size_of::<Batch>() as u64 + 48;

/// Batches in one chunk. Reached: the next append begins another one, so that a chunk's list never
/// takes long to grow or to walk, however small its batches are.
const CHUNK_BATCHES_MAX: usize = 16 * 1024;

/// The chunks of a log, oldest first.
#[derive(Default)]
pub(super) struct Chunks {
    chunks: VecDeque<Chunk>,
}

struct Chunk {
    state: ChunkState,
    /// Never empty, in offset order; with holes only where chunks were rewritten.
    batches: Vec<Batch>,
    size: u64,
    max_timestamp: Option<Timestamp>,
    first_appended_at: Timestamp,
    last_appended_at: Timestamp,
}

/// Why chunks can't be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RewriteRefusal {
    /// There are no such chunks, or not any more.
    Missing,
    /// One of them grows, or they are in no order.
    Grows,
    /// The log would end elsewhere.
    LosesEnd,
}

/// One stored batch.
pub(super) struct Batch {
    pub(super) base_offset: Offset,
    pub(super) next_offset: Offset,
    pub(super) bytes: Bytes,
    max_timestamp: Option<Timestamp>,
}

impl Chunks {
    /// What [`append`](Self::append) will hold beside the bytes of the batches.
    pub(super) fn cost(batches: &SealedBatches) -> u64 {
        batches.size().get() + batches.iter().count() as u64 * BATCH_OVERHEAD_BYTES
    }

    pub(super) fn append(&mut self, batches: &SealedBatches, settings: &LogSettings) {
        let now = batches.appended_at();
        if self.chunks.back().is_some_and(|chunk| !chunk.has_room(batches, settings)) {
            self.seal();
        }
        let active = match self.chunks.back_mut() {
            Some(chunk) if chunk.state == ChunkState::Active => chunk,
            _ => self.chunks.push_back_mut(Chunk::begun_at(now)),
        };
        active.size += batches.size().get();
        active.max_timestamp = active.max_timestamp.max(batches.max_timestamp());
        active.last_appended_at = active.last_appended_at.max(now);
        let copy = Bytes::copy_from_slice(batches.bytes());
        let mut position = 0;
        active.batches.extend(batches.iter().map(|batch| {
            let end = position + batch.bytes().len();
            let bytes = copy.slice(position..end);
            position = end;
            Batch::of(batch, bytes)
        }));
    }

    /// Closes the active chunk.
    pub(super) fn seal(&mut self) {
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.state = ChunkState::Sealed;
        }
    }

    /// The batches from the one that holds `from` on.
    pub(super) fn batches_from(&self, from: Offset) -> impl Iterator<Item = &Batch> {
        let first = self.chunks.partition_point(|chunk| chunk.next_offset() <= from);
        let skip = self.chunks.get(first).map_or(0, |chunk| chunk.position_of(from));
        self.chunks.range(first..).flat_map(|chunk| &chunk.batches).skip(skip)
    }

    /// The first batch with an offset in `from..upto` whose newest timestamp is at least `at`.
    pub(super) fn find_timestamp(
        &self,
        at: Timestamp,
        from: Offset,
        upto: Offset,
    ) -> Option<BatchInfo> {
        self.chunks
            .iter()
            .skip_while(|chunk| chunk.next_offset() <= from)
            .filter(|chunk| chunk.max_timestamp >= Some(at))
            .flat_map(|chunk| chunk.batches.iter().skip(chunk.position_of(from)))
            .take_while(|batch| batch.next_offset <= upto)
            .find_map(|batch| batch.info().filter(|info| info.max_timestamp >= at))
    }

    /// Drops the chunks that lie wholly below `log_start`; says how much they held.
    pub(super) fn drop_below(&mut self, log_start: Offset) -> u64 {
        let mut freed = 0;
        while let Some(chunk) = self.chunks.pop_front_if(|chunk| chunk.next_offset() <= log_start) {
            freed += chunk.cost();
        }
        freed
    }

    /// Drops the oldest batches, at least one and about `budget`; says how much they held.
    pub(super) fn drop_oldest(&mut self, budget: ByteCount) -> u64 {
        let mut freed = 0;
        while let Some(chunk) = self.chunks.front_mut() {
            let count = chunk
                .batches
                .iter()
                .scan(freed, |sum, batch| {
                    *sum += batch.size() + BATCH_OVERHEAD_BYTES;
                    Some(*sum)
                })
                .take_while(|&sum| sum <= budget.get())
                .count();
            // A batch that is larger than the whole budget goes alone: there is always progress.
            let count = if freed == 0 { count.max(1) } else { count };
            if count == 0 {
                break;
            }
            let before = chunk.cost();
            chunk.size -= chunk.batches.drain(..count).map(|batch| batch.size()).sum::<u64>();
            freed += before - chunk.cost();
            if chunk.batches.is_empty() {
                self.chunks.pop_front();
            } else {
                break;
            }
        }
        freed
    }

    /// Drops the batches that begin at or after `end`.
    #[cfg(feature = "testkit")]
    pub(super) fn cut_to(&mut self, end: Offset) {
        while let Some(chunk) = self.chunks.back_mut() {
            let kept = chunk.batches.partition_point(|batch| batch.base_offset < end);
            chunk.size -= chunk.batches.drain(kept..).map(|batch| batch.size()).sum::<u64>();
            chunk.max_timestamp =
                chunk.batches.iter().filter_map(|batch| batch.max_timestamp).max();
            if kept > 0 {
                break;
            }
            self.chunks.pop_back();
        }
    }

    /// The sealed chunks from the one at `first` to the one at `last`: where they stand.
    pub(super) fn sealed(
        &self,
        first: Offset,
        last: Offset,
    ) -> Result<Range<usize>, RewriteRefusal> {
        let position = |base| self.chunks.iter().position(|chunk| chunk.base_offset() == base);
        let (Some(from), Some(to)) = (position(first), position(last)) else {
            return Err(RewriteRefusal::Missing);
        };
        let mut run = self.chunks.iter().take(to + 1).skip(from);
        if from > to || run.any(|chunk| chunk.state == ChunkState::Active) {
            return Err(RewriteRefusal::Grows);
        }
        Ok(from..to + 1)
    }

    /// The offset after the last record of chunks.
    pub(super) fn end_of(&self, run: &Range<usize>) -> Offset {
        let last = run.end.checked_sub(1).and_then(|last| self.chunks.get(last));
        last.map_or(Offset::ZERO, Chunk::next_offset)
    }

    /// Puts `batches`, in offset order, in the place of chunks; says how much those held.
    pub(super) fn replace(
        &mut self,
        run: Range<usize>,
        batches: Vec<Batch>,
    ) -> Result<u64, RewriteRefusal> {
        let is_last = run.end == self.chunks.len();
        if is_last && batches.last().map(|batch| batch.next_offset) != Some(self.end_of(&run)) {
            return Err(RewriteRefusal::LosesEnd);
        }
        let start = run.start;
        let old: Vec<_> = self.chunks.drain(run).collect();
        let first_appended_at = old.iter().map(|chunk| chunk.first_appended_at).min();
        let last_appended_at = old.iter().map(|chunk| chunk.last_appended_at).max();
        if !batches.is_empty() {
            let chunk = Chunk {
                state: ChunkState::Sealed,
                size: batches.iter().map(Batch::size).sum(),
                max_timestamp: batches.iter().filter_map(|batch| batch.max_timestamp).max(),
                batches,
                first_appended_at: first_appended_at.unwrap_or_default(),
                last_appended_at: last_appended_at.unwrap_or_default(),
            };
            self.chunks.insert(start, chunk);
        }
        Ok(old.iter().map(Chunk::cost).sum())
    }

    /// Everything that is held, with its overhead.
    pub(super) fn held(&self) -> u64 {
        self.chunks.iter().map(Chunk::cost).sum()
    }

    pub(super) fn infos(&self) -> Vec<ChunkInfo> {
        self.chunks.iter().map(Chunk::info).collect()
    }

    /// Checks every batch against its checksum and its neighbours.
    pub(super) fn verify(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut expected = self.chunks.front().map_or(Offset::ZERO, Chunk::base_offset);
        for chunk in &self.chunks {
            let mut position = 0;
            for batch in &chunk.batches {
                if let Some(message) = batch.fault(expected) {
                    findings.push(Finding { chunk: chunk.name(), position, message });
                }
                expected = batch.next_offset;
                position += batch.bytes.len() as u64;
            }
        }
        findings
    }
}

impl Chunk {
    const fn begun_at(now: Timestamp) -> Self {
        Self {
            state: ChunkState::Active,
            batches: Vec::new(),
            size: 0,
            max_timestamp: None,
            first_appended_at: now,
            last_appended_at: now,
        }
    }

    fn has_room(&self, batches: &SealedBatches, settings: &LogSettings) -> bool {
        let age_ms = batches.appended_at().millis_since(self.first_appended_at);
        let records = (batches.next_offset() - self.base_offset()).get().cast_unsigned();
        self.size + batches.size().get() <= settings.segment_bytes.get()
            && (self.batches.is_empty() || records <= settings.segment_records)
            && Duration::from_millis(age_ms.max(0).cast_unsigned()) < settings.segment_age
            && self.batches.len() < CHUNK_BATCHES_MAX
    }

    fn base_offset(&self) -> Offset {
        self.batches.first().map_or(Offset::ZERO, |batch| batch.base_offset)
    }

    fn next_offset(&self) -> Offset {
        self.batches.last().map_or(Offset::ZERO, |batch| batch.next_offset)
    }

    /// The position of the first batch with an offset at or after `from`.
    fn position_of(&self, from: Offset) -> usize {
        self.batches.partition_point(|batch| batch.next_offset <= from)
    }

    const fn cost(&self) -> u64 {
        self.size + self.batches.len() as u64 * BATCH_OVERHEAD_BYTES
    }

    fn name(&self) -> String {
        format!("{:020}", self.base_offset().get())
    }

    fn info(&self) -> ChunkInfo {
        ChunkInfo {
            id: ChunkId(self.base_offset()),
            name: self.name(),
            state: self.state,
            bytes: ByteCount::new(self.size),
            base_offset: self.base_offset(),
            next_offset: self.next_offset(),
            max_timestamp: self.max_timestamp,
            first_appended_at: self.first_appended_at,
            last_appended_at: self.last_appended_at,
        }
    }
}

impl Batch {
    pub(super) fn of(view: BatchView<'_>, bytes: Bytes) -> Self {
        Self {
            base_offset: view.base_offset().expect("sealed batches have offsets"),
            next_offset: view.next_offset().expect("sealed batches have offsets"),
            bytes,
            max_timestamp: view.max_timestamp(),
        }
    }

    const fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// `None` for a batch without timestamps.
    fn info(&self) -> Option<BatchInfo> {
        let view = BatchView::exactly(&self.bytes).expect("stored bytes are one whole batch");
        Some(BatchInfo {
            base_offset: self.base_offset,
            next_offset: self.next_offset,
            max_timestamp: self.max_timestamp?,
            leader_epoch: view.leader_epoch().expect("sealed batches have an epoch"),
        })
    }

    /// What is wrong with this batch, if anything.
    fn fault(&self, expected: Offset) -> Option<String> {
        let view = match BatchView::exactly(&self.bytes) {
            Ok(view) => view,
            Err(error) => return Some(error.to_string()),
        };
        // Holes are not wrong: compaction makes them.
        if view.base_offset() < Some(expected) {
            let got = view.raw_base_offset();
            return Some(format!("offsets go back. expected=`{expected}`, got=`{got}`"));
        }
        view.check_crc().err().map(|error| error.to_string())
    }
}
