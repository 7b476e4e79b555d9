//! The files of a repair: new segments from parts of others, and what goes when they have their place.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use strandline_model::{LeaderEpoch, PartitionId, Timestamp};
use strandline_records::hole;
use strandline_storage::{ErrorKind, StorageError};

use super::SegmentFacts;
use super::name::{FileKey, FileKind, partition_dir};
use super::salvage::Run;
use super::store::SegmentStore;
use crate::disk::{DiskFile, OpenMode, read_exact_at};

/// Bytes that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// Where bytes of a new segment come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A segment of the rows.
    Segment(SegmentFacts),
    /// A file of rescued batches.
    Rescued(String),
    /// Nothing is left: a batch without records spans the offsets.
    Hole(LeaderEpoch),
}

/// A part of a new segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) source: Source,
    pub(crate) run: Run,
}

/// A segment that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewSegment {
    /// Never empty, in the order of their offsets.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) first_appended_at: Timestamp,
    pub(crate) last_appended_at: Timestamp,
}

impl Run {
    /// Bytes of its batches.
    pub(crate) const fn size(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }
}

impl SegmentStore {
    /// Writes new segments, durably, and reads them again. Returns what the rows are to say of them.
    /// Until they do the files are leftovers, and after a failure they stay such. Blocks.
    pub(crate) fn write_repaired(
        &self,
        id: PartitionId,
        new: &[NewSegment],
    ) -> Result<Vec<SegmentFacts>, StorageError> {
        let found = self.files_of(id)?;
        let generation = found.iter().map(|key| key.segment.generation).max().unwrap_or(0);
        self.generations.fetch_max(generation.saturating_add(1), Ordering::Relaxed);
        if !new.is_empty() {
            let folder = partition_dir(id);
            self.create_dirs(id).map_err(|error| failed(&folder, error))?;
        }
        let all = new.iter().map(|segment| self.write_one(id, segment));
        let all: Vec<SegmentFacts> = all.collect::<Result<_, _>>()?;
        self.sync_names(id)?;
        Ok(all)
    }

    /// Makes the names in a partition's folder durable, and those of the folders that it lies in.
    fn sync_names(&self, id: PartitionId) -> Result<(), StorageError> {
        let folder = partition_dir(id);
        for folder in folder.ancestors() {
            match self.sync_folder(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                synced => synced.map_err(|error| failed(folder, error))?,
            }
        }
        Ok(())
    }

    fn write_one(&self, id: PartitionId, new: &NewSegment) -> Result<SegmentFacts, StorageError> {
        let base_offset = new.pieces.first().expect("a segment has parts").run.offsets.start;
        let mut facts = SegmentFacts {
            base_offset,
            generation: self.generations.fetch_add(1, Ordering::Relaxed),
            bytes: 0,
            next_offset: base_offset,
            max_timestamp: None,
            first_appended_at: new.first_appended_at,
            last_appended_at: new.last_appended_at,
        };
        let path = FileKey::new(id, facts.name(), FileKind::Log).path();
        let file = self.disk.open(&path, OpenMode::New).map_err(|error| failed(&path, error))?;
        for piece in &new.pieces {
            self.copy_piece(id, piece, &*file, facts.bytes)
                .map_err(|error| failed(&path, error))?;
            facts.bytes += piece.run.size();
            facts.next_offset = piece.run.offsets.end;
            facts.max_timestamp = facts.max_timestamp.max(piece.run.max_timestamp);
        }
        file.sync_data().map_err(|error| failed(&path, error))?;
        drop(file);
        let scan = self.scan(id, facts.name())?;
        let ends = |facts: SegmentFacts| (facts.bytes, facts.next_offset);
        if scan.finding.is_none() && scan.facts.map(ends) == Some(ends(facts)) {
            return Ok(facts);
        }
        let file = path.display();
        let message = format!("repaired segment does not read as it was written. file=`{file}`");
        Err(StorageError::new(ErrorKind::Corrupt, message))
    }

    fn copy_piece(
        &self,
        id: PartitionId,
        piece: &Piece,
        to: &dyn DiskFile,
        at: u64,
    ) -> io::Result<()> {
        let name = match &piece.source {
            Source::Hole(epoch) => {
                let holes = hole(piece.run.offsets.clone(), *epoch);
                let bytes: Vec<Bytes> = holes.into_iter().map(|(_, bytes)| bytes).collect();
                return to.write_at(at, &[&bytes.concat()]);
            }
            Source::Segment(facts) => FileKey::new(id, facts.name(), FileKind::Log).name(),
            Source::Rescued(name) => name.clone(),
        };
        let from = self.disk.open(&partition_dir(id).join(name), OpenMode::Existing)?;
        let mut done = 0;
        let mut buf = Vec::new();
        while done < piece.run.size() {
            let some = COPY_BYTES.min(piece.run.size() - done);
            buf.resize(usize::try_from(some).map_err(|_| io::ErrorKind::OutOfMemory)?, 0);
            read_exact_at(&*from, piece.run.bytes.start + done, &mut buf)?;
            to.write_at(at + done, &[&buf])?;
            done += some;
        }
        Ok(())
    }

    /// Removes what a repair has replaced: the files of `dropped` segments, and rescued batches. Durable
    /// when it returns; what is left of it after a crash goes when the log is opened. Blocks.
    pub(crate) fn remove_repaired(
        &self,
        id: PartitionId,
        dropped: &[SegmentFacts],
    ) -> Result<(), StorageError> {
        for facts in dropped {
            for kind in FileKind::ALL {
                let key = FileKey::new(id, facts.name(), kind);
                self.remove_file(key).map_err(|error| failed(&key.path(), error))?;
            }
        }
        self.remove_rescues(id, &mut u64::MAX.clone())?;
        self.sync_names(id)
    }
}

fn failed(path: &Path, error: io::Error) -> StorageError {
    StorageError::io(format!("repair log. file=`{}`", path.display()), error)
}
