//! One segment while it is known to a log: its facts, its index or the way to it, and shortcuts.

use std::collections::VecDeque;

use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset, PartitionId};
use strandline_records::{BatchHeader, SealedBatches};
use strandline_storage::{ChunkId, ChunkInfo, ChunkState, ErrorKind, StorageError};

use super::SegmentFacts;
use super::index::Index;
use super::index_file::{self, Saved, Unsaved};
use super::name::{FileKey, FileKind};
use super::store::SegmentStore;
use super::walk::WalkError;

/// Batches at the end of a segment whose positions are kept in memory: readers that follow the log
/// need no index and no walk.
const TAIL_BATCHES: usize = 32;

/// Places where readers stopped, kept so that they find them again.
const HINTS: usize = 4;

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: PartitionId,
    pub(super) base_offset: Offset,
    live: Mutex<Live>,
    /// Held while index files are read whole or written, never together with a reader's lock.
    index_files: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct Live {
    pub(super) facts: SegmentFacts,
    pub(super) state: ChunkState,
    /// In memory while the segment grows; `None` when the files have it, or nobody asked yet.
    pub(super) index: Option<Index>,
    saved: Saved,
    /// The last batches: base offset and position, in order.
    pub(super) tail: VecDeque<(Offset, u64)>,
    hints: VecDeque<(Offset, u64)>,
}

impl Segment {
    pub(super) fn new(
        id: PartitionId,
        facts: SegmentFacts,
        state: ChunkState,
        index: Option<Index>,
    ) -> Self {
        let live = Live {
            facts,
            state,
            index,
            saved: Saved::default(),
            tail: VecDeque::new(),
            hints: VecDeque::new(),
        };
        let base_offset = facts.base_offset;
        Self { id, base_offset, live: Mutex::new(live), index_files: Mutex::new(()) }
    }

    pub(super) const fn key(&self, kind: FileKind) -> FileKey {
        FileKey::new(self.id, self.base_offset, kind)
    }

    pub(super) fn facts(&self) -> SegmentFacts {
        self.live.lock().facts
    }

    /// Looks at the live state; the closure must not do I/O.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut Live) -> T) -> T {
        look(&mut self.live.lock())
    }

    pub(super) fn info(&self) -> ChunkInfo {
        let live = self.live.lock();
        ChunkInfo {
            id: ChunkId(self.base_offset),
            name: self.key(FileKind::Log).name(),
            state: live.state,
            bytes: ByteCount::new(live.facts.bytes),
            base_offset: self.base_offset,
            next_offset: live.facts.next_offset,
            max_timestamp: live.facts.max_timestamp,
            first_appended_at: live.facts.first_appended_at,
            last_appended_at: live.facts.last_appended_at,
        }
    }

    /// Shows written batches to readers.
    pub(super) fn publish(&self, batches: &SealedBatches, interval: u64) {
        let mut live = self.live.lock();
        let mut position = live.facts.bytes;
        for view in batches.iter() {
            let batch = BatchHeader::parse(view.bytes()).expect("sealed bytes are whole batches");
            if let Some(index) = &mut live.index {
                index.push(self.base_offset, position, &batch, interval);
            }
            if live.tail.len() == TAIL_BATCHES {
                live.tail.pop_front();
            }
            live.tail.push_back((batch.base_offset, position));
            position += batch.size;
        }
        live.facts.add(batches);
    }

    /// Brings the index into memory, for a segment that is about to grow.
    pub(super) fn load_index(
        &self,
        store: &SegmentStore,
        interval: u64,
    ) -> Result<(), StorageError> {
        let _files = self.index_files.lock();
        let facts = self.live.lock().facts;
        if self.live.lock().index.is_some() {
            return Ok(());
        }
        let (index, saved) = index_file::load(store, self.key(FileKind::Log), &facts, interval)
            .map_err(|error| self.walk_failed(error))?;
        let mut live = self.live.lock();
        live.index = Some(index);
        live.saved = saved;
        Ok(())
    }

    /// Writes what the index files lack, when that are `entries_min` entries or more.
    pub(super) fn save_index(&self, store: &SegmentStore, entries_min: usize) {
        let _files = self.index_files.lock();
        let (unsaved, saved) = {
            let live = self.live.lock();
            let Some(index) = &live.index else { return };
            if index.offsets.len() < live.saved.offsets + entries_min {
                return;
            }
            (Unsaved::of(index, live.saved), live.saved)
        };
        // Derived data: what can't be saved is walked again when it is needed.
        if let Ok(saved) = index_file::save(store, self.key(FileKind::Log), &unsaved, saved) {
            self.live.lock().saved = saved;
        }
    }

    /// Ends the segment: it never grows again, and its index goes to files.
    pub(super) fn seal(&self, store: &SegmentStore) {
        {
            let mut live = self.live.lock();
            live.state = ChunkState::Sealed;
            if let Some(index) = &mut live.index {
                index.finish();
            }
        }
        self.move_index_to_files(store);
    }

    /// Makes index files anew from the batches.
    pub(super) fn rebuild_index(
        &self,
        store: &SegmentStore,
        interval: u64,
    ) -> Result<(), StorageError> {
        {
            let _files = self.index_files.lock();
            let (facts, state, is_loaded) = {
                let live = self.live.lock();
                (live.facts, live.state, live.index.is_some())
            };
            if is_loaded {
                return Ok(());
            }
            let mut index = index_file::scan(store, self.key(FileKind::Log), &facts, interval)
                .map_err(|error| self.walk_failed(error))?;
            if state == ChunkState::Sealed {
                index.finish();
            }
            let mut live = self.live.lock();
            live.index = Some(index);
            live.saved = Saved::default();
            if state == ChunkState::Active {
                return Ok(());
            }
        }
        self.move_index_to_files(store);
        Ok(())
    }

    /// Saves the whole index and forgets it in memory, unless it can't be saved: then memory keeps it.
    fn move_index_to_files(&self, store: &SegmentStore) {
        let _files = self.index_files.lock();
        let (unsaved, saved) = {
            let live = self.live.lock();
            let Some(index) = &live.index else { return };
            (Unsaved::of(index, live.saved), live.saved)
        };
        if index_file::save(store, self.key(FileKind::Log), &unsaved, saved).is_ok() {
            let mut live = self.live.lock();
            live.index = None;
            live.saved = Saved::default();
        }
    }

    /// Remembers that the batch that begins with `offset` stands at `position`.
    pub(super) fn remember(&self, offset: Offset, position: u64) {
        let mut live = self.live.lock();
        if live.hints.iter().any(|hint| hint.0 == offset) {
            return;
        }
        if live.hints.len() == HINTS {
            live.hints.pop_front();
        }
        live.hints.push_back((offset, position));
    }

    pub(super) fn walk_failed(&self, error: WalkError) -> StorageError {
        let file = self.key(FileKind::Log).path();
        match error {
            WalkError::Io(error) => self.read_failed(error),
            WalkError::Broken { position, error } => {
                let file = file.display();
                let message = format!("segment is damaged. file=`{file}`, position=`{position}`");
                StorageError::new(ErrorKind::Corrupt, message).caused_by(error)
            }
        }
    }

    pub(super) fn read_failed(&self, error: std::io::Error) -> StorageError {
        let file = self.key(FileKind::Log).path();
        let file = file.display();
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            let message = format!("segment is shorter than it was. file=`{file}`");
            return StorageError::new(ErrorKind::Corrupt, message).caused_by(error);
        }
        StorageError::io(format!("read segment. file=`{file}`"), error)
    }
}

impl Live {
    /// Where the batch stands that holds `offset`, if memory knows without an index.
    pub(super) fn known_position(&self, offset: Offset) -> Option<u64> {
        if offset <= self.facts.base_offset {
            return Some(0);
        }
        let behind = self.tail.partition_point(|(base_offset, _)| *base_offset <= offset);
        if let Some(last) = behind.checked_sub(1) {
            return Some(self.tail[last].1);
        }
        self.hints.iter().find(|hint| hint.0 == offset).map(|hint| hint.1)
    }

    /// What [`Segment::extent`] answers, if memory knows without an index.
    pub(super) fn known_extent(
        &self,
        start: u64,
        limit: u64,
        upto: Offset,
    ) -> Option<(u64, Option<Offset>)> {
        let whole = (self.facts.bytes, Some(self.facts.next_offset));
        if self.facts.next_offset <= upto && self.facts.bytes <= limit {
            return Some(whole);
        }
        // Only when the tail reaches down to the start does it tell what fits.
        self.tail.front().filter(|first| first.1 <= start)?;
        let mut end = start;
        let mut next = None;
        for (index, (base_offset, position)) in self.tail.iter().enumerate() {
            if *position < start {
                continue;
            }
            let following = self.tail.get(index + 1).map(|(base, at)| (*at, Some(*base)));
            let (batch_end, behind) = following.unwrap_or(whole);
            if *base_offset >= upto || batch_end > limit {
                next = next.or(Some(*base_offset));
                break;
            }
            end = batch_end;
            next = behind;
        }
        Some((end, next))
    }
}
