//! A segment that is written to take the place of others: what compaction leaves of them.
//!
//! It is a file of its own, with a generation in its name that no file of the log ever had. Until the
//! rows name it, it is a leftover like any other; from then on the old ones are.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use strandline_model::Offset;
use strandline_records::{BatchHeader, batches};
use strandline_storage::{ChunkState, ErrorKind, StorageError};

use super::index::Index;
use super::index_file::{self, Saved, Unsaved};
use super::live::Segment;
use super::log::{SegmentLog, State};
use super::name::{FileKey, FileKind, partition_dir};
use super::{SegmentFacts, SegmentName};
use crate::disk::{DiskFile, OpenMode};

/// Positions in a segment are 32-bit in the indexes, signed as Kafka's are.
const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;

/// The segments of a log that are to be replaced, and what is to replace them.
#[derive(Debug)]
pub(crate) struct Rewrite {
    log: Arc<SegmentLog>,
    /// Adjacent, oldest first; never empty.
    replaced: Vec<Arc<Segment>>,
    interval: u64,
    /// The end of what was added.
    end: Offset,
    new: Option<NewSegment>,
}

#[derive(Debug)]
struct NewSegment {
    facts: SegmentFacts,
    key: FileKey,
    file: Arc<dyn DiskFile>,
    index: Index,
}

/// A rewrite whose file is durable: what a commit swaps.
#[derive(Debug)]
pub(crate) struct Rewritten {
    replaced: Vec<Arc<Segment>>,
    new: Option<Arc<Segment>>,
}

impl SegmentLog {
    /// Begins to replace the segments from the one at `first` to the one at `last`. Touches no file.
    pub(crate) fn begin_rewrite(
        self: &Arc<Self>,
        first: Offset,
        last: Offset,
    ) -> Result<Rewrite, StorageError> {
        let interval = self.search().interval;
        let state = self.state.lock();
        state.check_alive()?;
        let position = |base| state.segments.iter().position(|one| one.base_offset == base);
        let (Some(from), Some(to)) = (position(first), position(last)) else {
            let message = format!("no such segments. log=`{}`, `{first}` to `{last}`", self.id);
            return Err(StorageError::new(ErrorKind::Unavailable, message));
        };
        let replaced: Vec<_> =
            state.segments.iter().take(to + 1).skip(from).map(Arc::clone).collect();
        state.check_sealed(&replaced).map_err(|message| self.refused(message))?;
        drop(state);
        Ok(Rewrite { log: Arc::clone(self), replaced, interval, end: first, new: None })
    }

    fn refused(&self, message: &str) -> StorageError {
        let message = format!("segments can't be rewritten. log=`{}`, reason=`{message}`", self.id);
        StorageError::new(ErrorKind::Invalid, message)
    }

    /// Whether the segments of a rewrite are still where they were. By the commit thread.
    pub(crate) fn check_rewritten(&self, rewritten: &Rewritten) -> Result<(), StorageError> {
        let state = self.state.lock();
        let Some(from) = state.position_of(&rewritten.replaced) else {
            let message = format!("segments were dropped during their rewrite. log=`{}`", self.id);
            return Err(StorageError::new(ErrorKind::Unavailable, message));
        };
        state.check_sealed(&rewritten.replaced).map_err(|message| self.refused(message))?;
        let is_last = from + rewritten.replaced.len() == state.segments.len();
        let ends = [rewritten.replaced.last(), rewritten.new.as_ref()]
            .map(|segment| segment.map(|segment| segment.facts().next_offset));
        if is_last && ends[0] != ends[1] {
            return Err(self.refused("the end of the log would be lost"));
        }
        Ok(())
    }

    /// Shows readers the new segment in the place of the old ones, which are dropped. By the commit
    /// thread, which has made the rows say so and has [checked](Self::check_rewritten) before.
    pub(crate) fn swap(&self, rewritten: Rewritten) {
        let Rewritten { replaced, new } = rewritten;
        let mut state = self.state.lock();
        let from = state.position_of(&replaced).expect("the commit thread alone drops segments");
        for segment in state.segments.drain(from..from + replaced.len()).collect::<Vec<_>>() {
            state.dropped.push_back(segment);
        }
        if let Some(new) = new {
            state.segments.insert(from, new);
        }
    }

    /// Lets the file of a rewrite that came to nothing be removed with the dropped ones.
    pub(crate) fn drop_rewrite(&self, leftover: Leftover) {
        self.state.lock().dropped.push_back(leftover.0);
    }
}

/// The file of a rewrite that came to nothing.
#[derive(Debug)]
pub(crate) struct Leftover(Arc<Segment>);

impl State {
    /// Where segments stand that follow each other, if they still do.
    fn position_of(&self, run: &[Arc<Segment>]) -> Option<usize> {
        let first = run.first()?;
        let from = self.segments.iter().position(|segment| Arc::ptr_eq(segment, first))?;
        let here = self.segments.iter().skip(from).take(run.len());
        let are_here = here.len() == run.len() && here.zip(run).all(|(a, b)| Arc::ptr_eq(a, b));
        are_here.then_some(from)
    }

    /// Why nobody may replace these segments, if so.
    fn check_sealed(&self, run: &[Arc<Segment>]) -> Result<(), &'static str> {
        if run.is_empty() {
            return Err("there are none");
        }
        let placed = self.cursor.active.map(|active| active.base_offset);
        let grows = |segment: &Arc<Segment>| {
            Some(segment.base_offset) == placed
                || segment.look(|live| live.state == ChunkState::Active)
        };
        if run.iter().any(grows) { Err("one of them grows") } else { Ok(()) }
    }
}

impl Rewrite {
    /// The offsets of the segments that are replaced.
    fn range(&self) -> (Offset, Offset) {
        let first = self.replaced.first().map_or(Offset::ZERO, |first| first.base_offset);
        let end = self.replaced.last().map_or(first, |last| last.facts().next_offset);
        (first, end)
    }

    /// The offset after the last record of the old segments.
    pub(crate) fn end_of_replaced(&self) -> Offset {
        self.range().1
    }

    /// Bytes of the old segments.
    pub(crate) fn replaced_bytes(&self) -> u64 {
        self.replaced.iter().map(|segment| segment.facts().bytes).sum()
    }

    /// Whether any of the old files has bytes that were not synced.
    pub(crate) fn is_unsynced(&self) -> bool {
        let files = &self.log.store.files;
        self.replaced.iter().any(|segment| files.is_unsynced(segment.key(FileKind::Log)))
    }

    /// Adds whole batches. Blocks.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        let (first, end) = self.range();
        let mut headers = Vec::new();
        let mut next = self.end.max(first);
        for batch in batches(bytes) {
            let sound = batch.and_then(|batch| batch.check_crc().map(|()| batch));
            let header = sound.and_then(|batch| BatchHeader::parse(batch.bytes()));
            let header =
                header.map_err(|error| self.log.refused("a batch is damaged").caused_by(error))?;
            if header.base_offset < next || header.next_offset > end {
                return Err(self.log.refused("a batch lies outside the segments"));
            }
            next = header.next_offset;
            headers.push(header);
        }
        let Some(begin) = headers.first() else { return Ok(()) };
        if self.new.is_none() {
            self.new = Some(self.begin_file(begin)?);
        }
        let failed = |key: FileKey, error| {
            StorageError::io(format!("rewrite segments. file=`{}`", key.path().display()), error)
        };
        let new = self.new.as_mut().expect("begun a moment ago");
        if new.facts.bytes + bytes.len() as u64 > SEGMENT_BYTES_MAX {
            return Err(self.log.refused("they are too large for one"));
        }
        new.file.write_at(new.facts.bytes, &[bytes]).map_err(|error| failed(new.key, error))?;
        for header in headers {
            new.index.push(new.facts.base_offset, new.facts.bytes, &header, self.interval);
            new.facts.bytes += header.size;
            new.facts.next_offset = header.next_offset;
            new.facts.max_timestamp = new.facts.max_timestamp.max(header.max_timestamp);
        }
        self.end = next;
        Ok(())
    }

    fn begin_file(&self, begin: &BatchHeader) -> Result<NewSegment, StorageError> {
        let facts = self.replaced.iter().map(|segment| segment.facts());
        let first_appended_at = facts.clone().map(|facts| facts.first_appended_at).min();
        let last_appended_at = facts.map(|facts| facts.last_appended_at).max();
        let base_offset = begin.base_offset;
        let facts = SegmentFacts {
            base_offset,
            generation: self.log.store.generations.fetch_add(1, Ordering::Relaxed),
            bytes: 0,
            next_offset: base_offset,
            max_timestamp: None,
            first_appended_at: first_appended_at.unwrap_or_default(),
            last_appended_at: last_appended_at.unwrap_or_default(),
        };
        let key = FileKey::new(self.log.id, facts.name(), FileKind::Log);
        // There is none of that name: no generation is used twice.
        let file = self.log.store.disk.open(&key.path(), OpenMode::New).map_err(|error| {
            StorageError::io(format!("begin rewrite. file=`{}`", key.path().display()), error)
        })?;
        self.log.store.files.note_names_changed(partition_dir(self.log.id));
        Ok(NewSegment { facts, key, file, index: Index::default() })
    }

    /// Makes what was added durable, with its name. Blocks. After a failure it is to be given up.
    pub(crate) fn finish(&mut self) -> Result<Rewritten, StorageError> {
        let store = &self.log.store;
        if let Some(new) = &self.new {
            let folder = partition_dir(self.log.id);
            let synced = new.file.sync_data().and_then(|()| store.sync_folder(&folder));
            synced.map_err(|error| {
                let file = new.key.path();
                let context = format!("sync rewritten segment. file=`{}`", file.display());
                StorageError::io(context, error)
            })?;
        }
        let replaced = std::mem::take(&mut self.replaced);
        let Some(mut new) = self.new.take() else {
            return Ok(Rewritten { replaced, new: None });
        };
        new.index.finish();
        // Derived data: what can't be saved stays in memory.
        let unsaved = Unsaved::of(&new.index, Saved::default());
        let saved = index_file::save(store, new.key, &unsaved, Saved::default());
        let index = saved.is_err().then_some(new.index);
        let segment = Segment::new(self.log.id, new.facts, ChunkState::Sealed, index);
        Ok(Rewritten { replaced, new: Some(Arc::new(segment)) })
    }

    /// Gives the rewrite up: what is to be removed of it.
    pub(crate) fn give_up(self) -> Option<Leftover> {
        let new = self.new?;
        let segment = Segment::new(self.log.id, new.facts, ChunkState::Sealed, None);
        Some(Leftover(Arc::new(segment)))
    }
}

impl Rewritten {
    /// The segments that go.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = SegmentName> {
        self.replaced.iter().map(|segment| segment.facts().name())
    }

    /// What the rows are to say of the new one.
    pub(crate) fn facts(&self) -> Option<SegmentFacts> {
        self.new.as_ref().map(|segment| segment.facts())
    }

    /// Gives it up: what is to be removed of it.
    pub(crate) fn give_up(self) -> Option<Leftover> {
        self.new.map(Leftover)
    }
}
