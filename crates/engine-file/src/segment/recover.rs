//! Opening a log as the engine believes it to be: what is there beyond is cut or removed.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::{Offset, PartitionId, Timestamp};
use strandline_storage::{ChunkState, ErrorKind, LogSettings, StorageError};

use super::append::Cursor;
use super::live::Segment;
use super::log::{ReplayOfLog, SegmentLog, State};
use super::name::{FileKey, FileKind, SegmentName, is_rescue, parse_file, partition_dir};
use super::store::SegmentStore;
use super::{Placement, SegmentFacts};
use crate::disk::{DirEntry, OpenMode, read_exact_at};

/// What becomes of a file that is found when a log is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The facts name its segment.
    Keep,
    /// Its segment begins below the end, but the facts do not name it: it was dropped before, or
    /// superseded by one that they name. To be removed in paced steps.
    Dropped,
    /// Its segment begins at or beyond the end: never believed, or about to be written again.
    Remove,
    /// An index without its segment.
    RemoveOrphan,
}

/// The decision table of opening, for a file of a segment.
fn verdict(
    known: &BTreeSet<SegmentName>,
    found_logs: &BTreeSet<SegmentName>,
    end: Offset,
    segment: SegmentName,
    kind: FileKind,
) -> Verdict {
    if known.contains(&segment) {
        Verdict::Keep
    } else if kind != FileKind::Log && !found_logs.contains(&segment) {
        Verdict::RemoveOrphan
    } else if segment.base_offset >= end {
        Verdict::Remove
    } else {
        Verdict::Dropped
    }
}

/// The files of a closed log that its facts do not name.
#[derive(Debug)]
pub(super) struct Leftovers {
    /// Segments; their indexes go with them.
    pub(super) segments: Vec<FileKey>,
    /// Indexes without a segment.
    pub(super) orphans: Vec<FileKey>,
}

impl Leftovers {
    /// Of what was found; `None` when a segment of `facts` was not, and all is evidence.
    pub(super) fn of(found: Vec<FileKey>, facts: &[SegmentFacts], end: Offset) -> Option<Self> {
        let known: BTreeSet<SegmentName> = facts.iter().map(SegmentFacts::name).collect();
        let logs = found.iter().filter(|key| key.kind == FileKind::Log);
        let found_logs: BTreeSet<SegmentName> = logs.map(|key| key.segment).collect();
        if !known.is_subset(&found_logs) {
            return None;
        }
        let mut leftovers = Self { segments: Vec::new(), orphans: Vec::new() };
        for key in found {
            match verdict(&known, &found_logs, end, key.segment, key.kind) {
                Verdict::RemoveOrphan => leftovers.orphans.push(key),
                Verdict::Dropped if key.kind == FileKind::Log => leftovers.segments.push(key),
                // What lies beyond the end may be more than a leftover, where the rows came from an older
                // copy of the folder: it waits for an opening, which somebody asked for.
                Verdict::Keep | Verdict::Dropped | Verdict::Remove => {}
            }
        }
        Some(leftovers)
    }
}

/// What becomes of bytes and files beyond what the facts say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    Cut,
    /// A journal is about to name them, or the end of its replay cuts them.
    Keep,
}

impl SegmentLog {
    pub(super) fn open(
        store: Arc<SegmentStore>,
        id: PartitionId,
        facts: Vec<SegmentFacts>,
        end: Offset,
        settings: LogSettings,
        beyond: Beyond,
    ) -> Result<Self, StorageError> {
        check_facts(id, &facts, end)?;
        let entries = store.entries_of(id)?;
        store.remove_copies(id, &entries)?;
        let has_rescues = entries.iter().any(|entry| is_rescue(&entry.name));
        if has_rescues && beyond == Beyond::Cut {
            // A log with damage is not opened: a repair has put them where they belong.
            store.remove_rescues(id, &mut u64::MAX.clone())?;
        }
        let found = keys_of(id, &entries);
        let generation = found.iter().map(|key| key.segment.generation).max().unwrap_or(0);
        store.generations.fetch_max(generation.saturating_add(1), Ordering::Relaxed);
        if !found.is_empty() {
            // What an earlier process renamed or removed here may still come back after a crash.
            store.files.note_names_changed(partition_dir(id));
        }
        let known: BTreeSet<SegmentName> = facts.iter().map(SegmentFacts::name).collect();
        let logs = found.iter().filter(|key| key.kind == FileKind::Log);
        let found_logs: BTreeSet<SegmentName> = logs.map(|key| key.segment).collect();
        if let Some(missing) = known.difference(&found_logs).next() {
            return Err(StorageError::new(ErrorKind::Corrupt, missing_segment(id, *missing)));
        }
        let (mut dropped, mut kept_beyond) = (VecDeque::new(), Vec::new());
        for key in found {
            match verdict(&known, &found_logs, end, key.segment, key.kind) {
                Verdict::Remove if beyond == Beyond::Keep => kept_beyond.push(key.segment),
                Verdict::Remove | Verdict::RemoveOrphan => {
                    store.remove_now(key).map_err(|error| open_failed(key, error))?;
                }
                Verdict::Dropped if key.kind == FileKind::Log => {
                    dropped.extend(store.dropped_segment(key)?);
                }
                // The index of a dropped segment goes with it.
                Verdict::Keep | Verdict::Dropped => {}
            }
        }
        if let Some(last) = facts.last() {
            store.cut(FileKey::new(id, last.name(), FileKind::Log), last.bytes, beyond)?;
        }
        let replay = (beyond == Beyond::Keep).then(|| {
            let from = facts.last().map_or(end, |last| last.base_offset);
            ReplayOfLog { from, beyond: kept_beyond, has_rescues }
        });
        let mut log = Self::assembled(store, id, facts, dropped, end, settings);
        log.replay = replay;
        Ok(log)
    }

    /// Cuts and removes what is there beyond what the replay named. What it named is known then, and
    /// durable after the next sync.
    pub(crate) fn end_replay(&self) -> Result<Vec<SegmentFacts>, StorageError> {
        let facts = self.facts();
        let Some(ReplayOfLog { from, beyond, has_rescues }) = &self.replay else {
            return Ok(facts);
        };
        for facts in facts.iter().filter(|facts| facts.base_offset >= *from) {
            let key = FileKey::new(self.id, facts.name(), FileKind::Log);
            self.store.cut(key, facts.bytes, Beyond::Cut)?;
        }
        let is_named = |name: &SegmentName| facts.iter().any(|facts| facts.name() == *name);
        // Mostly the replay named all that was found, and there is nothing to look for.
        if *has_rescues || !beyond.iter().all(is_named) {
            let settings = self.state.lock().settings.clone();
            self.store.open(self.id, facts.clone(), self.written_end(), settings)?;
        }
        Ok(facts)
    }

    fn assembled(
        store: Arc<SegmentStore>,
        id: PartitionId,
        facts: Vec<SegmentFacts>,
        dropped: VecDeque<Arc<Segment>>,
        end: Offset,
        settings: LogSettings,
    ) -> Self {
        // Behind a hole the next append begins a segment of its own, and behind one that was written in
        // the place of others: what a journal says of an older one of that offset is not for it.
        let active =
            facts.last().copied().filter(|last| last.next_offset == end && last.generation == 0);
        let count = facts.len();
        let segments = facts.into_iter().enumerate().map(|(index, facts)| {
            let is_active = active.is_some() && index + 1 == count;
            let state = if is_active { ChunkState::Active } else { ChunkState::Sealed };
            Arc::new(Segment::new(id, facts, state, None))
        });
        let state = State {
            segments: segments.collect(),
            dropped,
            cursor: Cursor { active, end },
            written_end: end,
            settings,
            is_failed: false,
        };
        let (writer, state) = (Mutex::default(), Mutex::new(state));
        Self { store, id, replay: None, writer, state }
    }
}

/// What is wrong with a log that has lost a segment.
pub(super) fn missing_segment(id: PartitionId, name: SegmentName) -> String {
    let file = FileKey::new(id, name, FileKind::Log).path();
    format!("segment is missing. file=`{}`", file.display())
}

/// What is wrong with a log that has lost the end of a segment.
pub(super) fn shorter_segment(
    id: PartitionId,
    name: SegmentName,
    bytes: u64,
    expected: u64,
) -> String {
    let file = FileKey::new(id, name, FileKind::Log).path();
    let file = file.display();
    format!("segment is shorter than it was. file=`{file}`, bytes=`{bytes}`, expected=`{expected}`")
}

/// The engine's rows were checked when they were read; this guards against facts that contradict
/// each other.
fn check_facts(id: PartitionId, facts: &[SegmentFacts], end: Offset) -> Result<(), StorageError> {
    let each = facts.iter().all(|facts| facts.base_offset < facts.next_offset && facts.bytes > 0);
    let ordered = facts.windows(2).all(|pair| pair[0].next_offset <= pair[1].base_offset);
    if each && ordered && facts.last().is_none_or(|last| last.next_offset <= end) {
        return Ok(());
    }
    let rows: Vec<_> =
        facts.iter().map(|facts| format!("{}..{}", facts.base_offset, facts.next_offset)).collect();
    let message = format!(
        "rows of the segments contradict each other. log=`{id}`, end=`{end}`, rows=`{}`",
        rows.join(" ")
    );
    Err(StorageError::new(ErrorKind::Corrupt, message))
}

/// The segments and indexes among the names in a partition's folder, in order.
fn keys_of(id: PartitionId, entries: &[DirEntry]) -> Vec<FileKey> {
    let ours = entries.iter().filter_map(|entry| parse_file(&entry.name));
    let mut keys: Vec<_> = ours.map(|(segment, kind)| FileKey::new(id, segment, kind)).collect();
    keys.sort_unstable();
    keys
}

impl SegmentStore {
    /// The segments and indexes in a partition's folder, in order.
    pub(super) fn files_of(&self, id: PartitionId) -> Result<Vec<FileKey>, StorageError> {
        Ok(keys_of(id, &self.entries_of(id)?))
    }

    /// Everything in a partition's folder; nothing when there is none.
    pub(super) fn entries_of(&self, id: PartitionId) -> Result<Vec<DirEntry>, StorageError> {
        let folder = partition_dir(id);
        match self.disk.list(&folder) {
            Ok(entries) => Ok(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => {
                let context = format!("list folder. folder=`{}`", folder.display());
                Err(StorageError::io(context, error))
            }
        }
    }

    /// The bytes that stand somewhere in a segment; `None` when its file is gone or ends before.
    pub(crate) fn bytes_at(
        &self,
        id: PartitionId,
        place: Placement,
        length: u32,
    ) -> Result<Option<Bytes>, StorageError> {
        let key = FileKey::new(id, SegmentName::appended(place.segment), FileKind::Log);
        let failed = |error| open_failed(key, error);
        let file = match self.open_file(key) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let end = place.position.saturating_add(u64::from(length));
        if file.size().map_err(failed)? < end {
            return Ok(None);
        }
        let mut bytes = vec![0; length as usize];
        read_exact_at(&*file, place.position, &mut bytes).map_err(failed)?;
        Ok(Some(bytes.into()))
    }

    /// Cuts a segment to the bytes that are believed, or only sees that they are there.
    fn cut(&self, key: FileKey, bytes: u64, beyond: Beyond) -> Result<(), StorageError> {
        let failed = |error| open_failed(key, error);
        let file = self.open_file(key).map_err(failed)?;
        let size = file.size().map_err(failed)?;
        if size < bytes {
            let message = shorter_segment(key.id, key.segment, size, bytes);
            return Err(StorageError::new(ErrorKind::Corrupt, message));
        }
        if size > bytes && beyond == Beyond::Cut {
            file.set_len(bytes).map_err(failed)?;
            self.files.note_written(key, &file, bytes..bytes);
        }
        Ok(())
    }

    /// A segment of which only the name and the size matter any more; `None` when whoever had the log
    /// open before has just removed it.
    fn dropped_segment(&self, key: FileKey) -> Result<Option<Arc<Segment>>, StorageError> {
        // Not as a reader would: its removal may have begun.
        let opened = self.disk.open(&key.path(), OpenMode::Existing);
        let bytes = match opened.and_then(|file| file.size()) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(open_failed(key, error)),
        };
        let unknown = Timestamp::default();
        let facts = SegmentFacts {
            base_offset: key.segment.base_offset,
            generation: key.segment.generation,
            bytes,
            next_offset: key.segment.base_offset,
            max_timestamp: None,
            first_appended_at: unknown,
            last_appended_at: unknown,
        };
        Ok(Some(Arc::new(Segment::new(key.id, facts, ChunkState::Sealed, None))))
    }
}

fn open_failed(key: FileKey, error: io::Error) -> StorageError {
    StorageError::io(format!("open segment. file=`{}`", key.path().display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_found_has_one_verdict() {
        let name =
            |(offset, generation)| SegmentName { base_offset: Offset::new(offset), generation };
        let names = |list: &[(i64, u64)]| list.iter().map(|one| name(*one)).collect();
        let known: BTreeSet<SegmentName> = names(&[(10, 0), (20, 3), (30, 0)]);
        let logs: BTreeSet<SegmentName> = names(&[
            (5, 0),
            (10, 0),
            (10, 4),
            (20, 0),
            (20, 2),
            (20, 3),
            (30, 0),
            (50, 0),
            (60, 0),
            (60, 1),
        ]);
        let none = BTreeSet::new();
        // (facts, segment, kind, verdict); the end is at 50.
        let cases = [
            (&known, (10, 0), FileKind::Log, Verdict::Keep),
            (&known, (10, 0), FileKind::OffsetIndex, Verdict::Keep),
            (&known, (30, 0), FileKind::TimeIndex, Verdict::Keep),
            (&known, (5, 0), FileKind::Log, Verdict::Dropped),
            (&known, (5, 0), FileKind::OffsetIndex, Verdict::Dropped),
            (&known, (6, 0), FileKind::OffsetIndex, Verdict::RemoveOrphan),
            (&known, (20, 0), FileKind::Log, Verdict::Dropped),
            (&known, (20, 0), FileKind::TimeIndex, Verdict::Dropped),
            (&known, (50, 0), FileKind::Log, Verdict::Remove),
            (&known, (60, 0), FileKind::OffsetIndex, Verdict::Remove),
            (&known, (70, 0), FileKind::OffsetIndex, Verdict::RemoveOrphan),
            (&known, (10, 4), FileKind::Log, Verdict::Dropped),
            (&known, (20, 3), FileKind::Log, Verdict::Keep),
            (&known, (20, 3), FileKind::TimeIndex, Verdict::Keep),
            (&known, (20, 2), FileKind::Log, Verdict::Dropped),
            (&known, (20, 1), FileKind::OffsetIndex, Verdict::RemoveOrphan),
            (&known, (60, 1), FileKind::Log, Verdict::Remove),
            (&none, (30, 0), FileKind::Log, Verdict::Dropped),
            (&none, (50, 0), FileKind::Log, Verdict::Remove),
        ];
        for (known, segment, kind, expected) in cases {
            let found = verdict(known, &logs, Offset::new(50), name(segment), kind);
            assert_eq!(found, expected, "{segment:?} {kind:?}");
        }
    }
}
