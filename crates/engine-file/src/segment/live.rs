//! One segment while it is known to a log: its facts, its index or the way to it, and shortcuts.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};
use strandline_model::{Offset, PartitionId};
use strandline_records::{BatchHeader, SealedBatches};
use strandline_storage::{ChunkInfo, ChunkState, ErrorKind, StorageError};

use super::SegmentFacts;
use super::index::Index;
use super::index_file::{self, Saved, Unsaved};
use super::name::{FileKey, FileKind, SegmentName};
use super::store::SegmentStore;
use super::walk::WalkError;

/// Batches at the end of a segment whose positions are kept in memory: readers that follow the log
/// need no index and no walk.
const TAIL_BATCHES: usize = 32;

/// Places where readers stopped, kept so that they find them again.
const HINTS: usize = 4;

/// How often an index that was just made is brought up to what was written meanwhile: each time that
/// is much less. Reached: it is made again when it is asked for again.
const CATCH_UPS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: PartitionId,
    pub(super) base_offset: Offset,
    name: SegmentName,
    live: Mutex<Live>,
    /// Held while index files are read whole or written, never together with a reader's lock.
    index_files: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct Live {
    pub(super) facts: SegmentFacts,
    pub(super) state: ChunkState,
    /// In memory while the segment grows; `None` when the files have it, or nobody asked yet. A
    /// segment grows without: the next checkpoint, or a reader that needs it, brings it here.
    pub(super) index: Option<Index>,
    saved: Saved,
    /// The batches can't be walked: nobody tries again to keep an index of them.
    is_unindexable: bool,
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
            is_unindexable: false,
            tail: VecDeque::new(),
            hints: VecDeque::new(),
        };
        let base_offset = facts.base_offset;
        let name = facts.name();
        Self { id, base_offset, name, live: Mutex::new(live), index_files: Mutex::new(()) }
    }

    pub(super) const fn key(&self, kind: FileKind) -> FileKey {
        FileKey::new(self.id, self.name, kind)
    }

    pub(super) const fn name(&self) -> SegmentName {
        self.name
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
        live.facts.chunk(self.id, live.state)
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

    /// To be called before a segment of an earlier run grows. False: somebody is just making its
    /// index, which is to be asked for again.
    ///
    /// The commit thread calls it: it walks nothing and waits for nobody.
    pub(super) fn cut_index(&self, store: &SegmentStore) -> bool {
        let Some(_files) = self.index_files.try_lock() else { return false };
        let facts = {
            let live = self.live.lock();
            if live.index.is_some() {
                return true;
            }
            live.facts
        };
        index_file::cut(store, self.key(FileKind::Log), &facts);
        true
    }

    /// Brings the index of a growing segment into memory and writes what its files lack, when that are
    /// `entries_min` entries or more.
    pub(super) fn save_index(&self, store: &SegmentStore, interval: u64, entries_min: usize) {
        let files = self.index_files.lock();
        if self.load_index(store, interval).is_err() {
            // Whoever reads the damaged part is told.
            self.live.lock().is_unindexable = true;
        }
        let (unsaved, saved) = {
            let live = self.live.lock();
            let Some(index) = &live.index else { return };
            if live.state == ChunkState::Sealed {
                drop(live);
                return self.move_index_to_files(store, files);
            }
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

    /// Whether an index in memory has so many entries that are in no file, or ended.
    pub(super) fn has_index_to_save(&self, entries_min: usize) -> bool {
        let live = self.live.lock();
        live.index.as_ref().is_some_and(|index| {
            live.state == ChunkState::Sealed
                || index.offsets.len() >= live.saved.offsets + entries_min
        })
    }

    fn load_index(&self, store: &SegmentStore, interval: u64) -> Result<(), WalkError> {
        let facts = {
            let live = self.live.lock();
            if live.index.is_some() || live.is_unindexable || live.state != ChunkState::Active {
                return Ok(());
            }
            live.facts
        };
        let (index, saved) = index_file::load(store, self.key(FileKind::Log), &facts, interval)?;
        self.install(store, interval, facts, index, saved)
    }

    /// Puts an index of the batches up to `facts` into memory, and with it what came meanwhile.
    fn install(
        &self,
        store: &SegmentStore,
        interval: u64,
        mut facts: SegmentFacts,
        mut index: Index,
        saved: Saved,
    ) -> Result<(), WalkError> {
        for _ in 0..CATCH_UPS_MAX {
            let now = {
                let mut live = self.live.lock();
                if live.facts.bytes == facts.bytes {
                    if live.state == ChunkState::Sealed {
                        index.finish();
                    }
                    live.index = Some(index);
                    live.saved = saved;
                    return Ok(());
                }
                live.facts
            };
            let log = self.key(FileKind::Log);
            index = index_file::extend(store, log, &now, interval, index, facts.bytes)?;
            facts = now;
        }
        Ok(())
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
        // The commit thread waits for nobody: whoever makes or saves the index now looks at the state
        // when it is done. At worst the index stays in memory.
        if let Some(files) = self.index_files.try_lock() {
            self.move_index_to_files(store, files);
        }
    }

    /// Makes index files anew from the batches.
    pub(super) fn rebuild_index(
        &self,
        store: &SegmentStore,
        interval: u64,
    ) -> Result<(), StorageError> {
        let files = self.index_files.lock();
        let facts = {
            let live = self.live.lock();
            if live.index.is_some() {
                return Ok(());
            }
            live.facts
        };
        index_file::scan(store, self.key(FileKind::Log), &facts, interval)
            .and_then(|index| self.install(store, interval, facts, index, Saved::default()))
            .map_err(|error| self.walk_failed(error))?;
        if self.live.lock().state != ChunkState::Active {
            self.move_index_to_files(store, files);
        }
        Ok(())
    }

    /// Saves the whole index and forgets it in memory, unless it can't be saved: then memory keeps it.
    fn move_index_to_files(&self, store: &SegmentStore, files: MutexGuard<'_, ()>) {
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
        drop(files);
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
