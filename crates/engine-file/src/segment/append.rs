//! Placing batches and writing them.

use std::sync::Arc;

use strandline_model::Offset;
use strandline_records::SealedBatches;
use strandline_storage::{ChunkState, ErrorKind, StorageError};

use super::index::Index;
use super::live::Segment;
use super::log::{SegmentLog, State};
use super::name::{FileKey, FileKind, SegmentName, partition_dir};
use super::roll::must_roll;
use super::{Append, Placement, SegmentFacts};
use crate::disk::DiskFile;

/// Slices that go to the disk in one write. Reached: another write follows.
const WRITE_SLICES_MAX: usize = 512;

/// Where the next batches will be placed.
#[derive(Debug)]
pub(super) struct Cursor {
    /// The segment that takes them, as it will be when all that was placed is written; `None` when
    /// they begin a new one.
    pub(super) active: Option<SegmentFacts>,
    /// The offset that they begin with.
    pub(super) end: Offset,
}

/// What only the writer knows.
#[derive(Debug, Default)]
pub(super) struct Growing {
    /// Whether the partition's folders are there and their names will be synced.
    has_dirs: bool,
    /// Whether the index files of the segment that grows name none but its batches.
    has_cut_index: bool,
    names: Names,
}

/// How far up the names that lead to the segment that grows may be unsynced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Names {
    /// To the root: nobody synced them for this log yet.
    #[default]
    All,
    /// In the partition's folder.
    File,
    Synced,
}

/// Where the bytes of an append are when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Memory,
    /// In the segment, durable since an earlier run.
    Segment,
}

/// Why [`SegmentLog::write_durably`] failed.
#[derive(Debug)]
pub(crate) enum DurableWriteError {
    /// The batches were not written. Nothing else is hit.
    Write(StorageError),
    /// The file of a segment was not synced: with the batches maybe what was written to it before is
    /// not there, however well it reads. Syncing again would not help.
    Sync {
        /// Its base offset.
        segment: Offset,
        /// Why.
        error: StorageError,
    },
    /// The names of the files were not synced.
    Names(StorageError),
}

/// A file that batches were written to. Whoever syncs it must use no other handle, which might not hear
/// of an error.
#[derive(Debug)]
struct WrittenFile {
    segment: Offset,
    file: Arc<dyn DiskFile>,
}

impl SegmentLog {
    /// Decides where `batches` go: behind what was placed before, or in a segment of their own.
    ///
    /// Pure bookkeeping; called in offset order. What is placed must be written, or the log be opened
    /// again.
    ///
    /// # Panics
    /// When `batches` do not begin where the batches placed before them ended.
    pub(crate) fn place(&self, batches: &SealedBatches) -> Result<Placement, StorageError> {
        let mut state = self.state.lock();
        state.check_alive()?;
        assert_eq!(batches.base_offset(), state.cursor.end, "batches are placed without a hole");
        let active = state.cursor.active;
        let rolls = active.is_none_or(|active| must_roll(&active, batches, &state.settings));
        let mut facts = match active {
            Some(active) if !rolls => active,
            _ => SegmentFacts::begun_by(batches),
        };
        let place = Placement { segment: facts.base_offset, position: facts.bytes };
        facts.add(batches);
        state.cursor = Cursor { active: Some(facts), end: batches.next_offset() };
        Ok(place)
    }

    /// Lets the next placement begin a new segment. Does nothing when it will anyway.
    pub(crate) fn roll(&self) {
        let mut state = self.state.lock();
        state.cursor.active = None;
        // What was placed but not written is sealed by the write that begins the next segment.
        let last = state.segments.back();
        if let Some(last) = last.filter(|last| last.facts().next_offset == state.cursor.end) {
            last.look(|live| live.state = ChunkState::Sealed);
        }
    }

    /// Writes batches where they were placed, and shows them to readers. Blocks.
    ///
    /// Called by one thread at a time, in the order of placement. In recovery the placements come
    /// from the journal instead. When it fails, some of the batches may be written, none of those
    /// that follow will be, and the log is to be opened again.
    pub(crate) fn write(&self, appends: &[Append<'_>]) -> Result<(), StorageError> {
        self.write_runs(&mut self.writer.lock(), Source::Memory, appends)?;
        Ok(())
    }

    /// As [`write`](Self::write), and all of it is durable when this returns, with the names of its
    /// files.
    pub(crate) fn write_durably(&self, appends: &[Append<'_>]) -> Result<(), DurableWriteError> {
        let mut growing = self.writer.lock();
        let files = self
            .write_runs(&mut growing, Source::Memory, appends)
            .map_err(DurableWriteError::Write)?;
        let synced = self.sync_written(&mut growing, &files);
        synced.inspect_err(|_| self.state.lock().is_failed = true)
    }

    /// Takes note of batches that an earlier run wrote where they were placed, and synced. The
    /// caller has compared them with what is there. For recovery, in the place of
    /// [`write`](Self::write).
    pub(crate) fn adopt(&self, appends: &[Append<'_>]) -> Result<(), StorageError> {
        self.write_runs(&mut self.writer.lock(), Source::Segment, appends)?;
        Ok(())
    }

    /// Returns the files that were written.
    fn write_runs(
        &self,
        growing: &mut Growing,
        source: Source,
        appends: &[Append<'_>],
    ) -> Result<Vec<WrittenFile>, StorageError> {
        self.state.lock().check_alive()?;
        let mut files: Vec<WrittenFile> = Vec::with_capacity(1);
        let mut rest = appends;
        while let Some(first) = rest.first() {
            let count = run_length(rest);
            let (run, behind) = rest.split_at(count);
            match self.write_run(growing, source, first.place, run) {
                Ok(_) if files.last().is_some_and(|last| last.segment == first.place.segment) => {}
                Ok(file) => files.push(WrittenFile { segment: first.place.segment, file }),
                Err(error) => {
                    self.state.lock().is_failed = true;
                    return Err(error);
                }
            }
            rest = behind;
        }
        Ok(files)
    }

    fn sync_written(
        &self,
        growing: &mut Growing,
        files: &[WrittenFile],
    ) -> Result<(), DurableWriteError> {
        for WrittenFile { segment, file } in files {
            let key = FileKey::new(self.id, SegmentName::appended(*segment), FileKind::Log);
            self.store.sync_in_place(key, file).map_err(|error| {
                let context = format!("sync segment. file=`{}`", key.path().display());
                let error = StorageError::io(context, error);
                DurableWriteError::Sync { segment: *segment, error }
            })?;
        }
        self.sync_names(growing).map_err(|error| {
            let context = format!("sync folders. log=`{}`", self.id);
            DurableWriteError::Names(StorageError::io(context, error))
        })
    }

    fn sync_names(&self, growing: &mut Growing) -> std::io::Result<()> {
        let folder = partition_dir(self.id);
        let mut above = folder.ancestors().skip(1);
        match growing.names {
            Names::Synced => return Ok(()),
            Names::File => {}
            Names::All => above.try_for_each(|dir| self.store.sync_folder(dir))?,
        }
        self.store.sync_folder(&folder)?;
        growing.names = Names::Synced;
        Ok(())
    }

    /// Writes batches that follow each other in one segment. Returns its file.
    fn write_run(
        &self,
        growing: &mut Growing,
        source: Source,
        place: Placement,
        run: &[Append<'_>],
    ) -> Result<Arc<dyn DiskFile>, StorageError> {
        let segment = self.segment_for(growing, place, run[0].batches)?;
        let interval = self.search().interval;
        if !growing.has_cut_index {
            growing.has_cut_index = segment.cut_index(&self.store);
        }
        let key = segment.key(FileKind::Log);
        let file = self.store.open_file(key).map_err(|error| write_failed(&segment, error))?;
        if source == Source::Memory {
            let slices: Vec<&[u8]> = run.iter().map(|append| &append.batches.bytes()[..]).collect();
            let end = place.position + slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
            let written = file.write_at(place.position, &slices);
            // Noted after the write, so that no sync in between takes the note without the bytes;
            // and noted in any case, since a failed write may have changed the file.
            self.store.files.note_written(key, &file, place.position..end);
            written.map_err(|error| write_failed(&segment, error))?;
        }
        for append in run {
            segment.publish(append.batches, interval);
        }
        self.state.lock().wrote(&segment);
        Ok(file)
    }

    /// The segment of a placement: the last one, or a new one behind it.
    fn segment_for(
        &self,
        growing: &mut Growing,
        place: Placement,
        batches: &SealedBatches,
    ) -> Result<Arc<Segment>, StorageError> {
        let last = self.state.lock().segments.back().map(Arc::clone);
        let written_end = self.state.lock().written_end;
        if let Some(last) = &last
            && last.base_offset == place.segment
            && last.facts().bytes == place.position
            && batches.base_offset() == last.facts().next_offset
        {
            last.look(|live| live.state = ChunkState::Active);
            return Ok(Arc::clone(last));
        }
        let is_new = place.position == 0
            && batches.base_offset() == place.segment
            && place.segment >= written_end;
        if !is_new {
            let message = format!(
                "append does not follow what is written. log=`{}`, segment=`{}`, position=`{}`, \
                 base_offset=`{}`, written_end=`{written_end}`",
                self.id,
                place.segment,
                place.position,
                batches.base_offset(),
            );
            return Err(StorageError::new(ErrorKind::Invalid, message));
        }
        if let Some(last) = last {
            last.seal(&self.store);
        }
        self.begin_segment(growing, batches)
    }

    fn begin_segment(
        &self,
        growing: &mut Growing,
        batches: &SealedBatches,
    ) -> Result<Arc<Segment>, StorageError> {
        let facts = SegmentFacts::begun_by(batches);
        let segment =
            Arc::new(Segment::new(self.id, facts, ChunkState::Active, Some(Index::default())));
        if !growing.has_dirs {
            self.store.create_dirs(self.id).map_err(|error| write_failed(&segment, error))?;
            growing.has_dirs = true;
        }
        self.create_file(&segment).map_err(|error| write_failed(&segment, error))?;
        if growing.names == Names::Synced {
            growing.names = Names::File;
        }
        self.state.lock().segments.push_back(Arc::clone(&segment));
        Ok(segment)
    }

    /// Makes the file of a segment, empty unless a replay may find bytes of it, and removes what bears the names of its indexes.
    fn create_file(&self, segment: &Segment) -> std::io::Result<()> {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            self.store.remove_file(segment.key(kind))?;
        }
        let file = self.store.files.create(segment.key(FileKind::Log))?;
        self.store.files.note_names_changed(partition_dir(self.id));
        if self.replay.is_none() && file.size()? > 0 {
            file.set_len(0)?;
        }
        Ok(())
    }
}

impl State {
    /// Takes note that everything up to the end of `segment`, the last one, is written.
    fn wrote(&mut self, segment: &Segment) {
        let facts = segment.facts();
        self.written_end = facts.next_offset;
        if self.cursor.end < self.written_end {
            // The placement came from a journal: the cursor follows.
            self.cursor = Cursor { active: Some(facts), end: facts.next_offset };
        } else if self.cursor.end == self.written_end && self.cursor.active.is_none() {
            // Rolled between the placement and now.
            segment.look(|live| live.state = ChunkState::Sealed);
        }
    }
}

/// How many appends follow each other in the segment of the first.
fn run_length(appends: &[Append<'_>]) -> usize {
    let Some(first) = appends.first() else { return 0 };
    let mut place = first.place;
    let follows = |append: &&Append<'_>| {
        let matches = append.place == place;
        place.position += append.batches.size().get();
        matches
    };
    appends.iter().take(WRITE_SLICES_MAX).take_while(follows).count()
}

fn write_failed(segment: &Segment, error: std::io::Error) -> StorageError {
    let file = segment.key(FileKind::Log).path();
    StorageError::io(format!("write segment. file=`{}`", file.display()), error)
}
