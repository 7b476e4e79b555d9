//! A durable copy in the place of a segment's file that can't be synced, or that has lost its name.
//!
//! The system still has what was written in its memory, as long as it keeps the pages; where it does
//! not, a read finds zeros, or what stood there before. So every batch is checked on its way, and a
//! copy that is not whole takes no place.

use std::io;
use std::path::Path;
use std::sync::Arc;

use strandline_model::PartitionId;
use strandline_records::BatchHeader;
use strandline_storage::{ErrorKind, StorageError};

use super::SegmentFacts;
use super::name::{FileKey, FileKind, copy_path, is_copy, partition_dir};
use super::store::SegmentStore;
use super::verify::{Totals, check_batches};
use crate::disk::{DirEntry, DiskFile, OpenMode};

fn refused(key: FileKey, fault: &str) -> StorageError {
    let file = key.path();
    let message = format!("segment can't be replaced. file=`{}`, fault=`{fault}`", file.display());
    StorageError::new(ErrorKind::Corrupt, message)
}

/// Checked batches are written in pieces of about this size.
const PIECE_BYTES: usize = 256 * 1024;

impl SegmentStore {
    /// Replaces the file of a segment by a copy of what `facts` believe of it; everything of the copy is
    /// durable when this returns. Blocks.
    ///
    /// `belongs` says whether a batch, whose checksum and place are right, is the one that was written
    /// there last. Nobody writes to the segment meanwhile; who reads it may go on. After an error the
    /// file may be the old one or the copy, and the journal is all that can be trusted.
    pub(crate) fn replace(
        &self,
        id: PartitionId,
        facts: &SegmentFacts,
        belongs: impl Fn(&BatchHeader) -> bool,
    ) -> Result<(), StorageError> {
        let key = FileKey::new(id, facts.name(), FileKind::Log);
        let failed = |error| {
            StorageError::io(format!("replace segment. file=`{}`", key.path().display()), error)
        };
        let _alone = self.replacing.lock();
        let path = copy_path(key);
        // Whoever took the file away may have taken its folder too.
        let is_homeless = matches!(self.disk.list(&partition_dir(id)),
            Err(error) if error.kind() == io::ErrorKind::NotFound);
        if is_homeless {
            self.create_dirs(id).map_err(failed)?;
        }
        let copied = self.copy(key, &path, facts, belongs).map_err(failed);
        let copy = match copied.and_then(|copied| copied.map_err(|fault| refused(key, &fault))) {
            Ok(copy) => copy,
            Err(error) => {
                // It may be what fills the disk. When it stays, the next opening removes it.
                drop(self.disk.remove_file(&path));
                return Err(error);
            }
        };
        self.disk.rename(&path, &key.path()).map_err(failed)?;
        self.files.replace(key, copy);
        // Not for want of room, whatever it says: it is never tried again.
        let folder = partition_dir(id);
        let folders = folder.ancestors().take(if is_homeless { usize::MAX } else { 1 });
        folders.into_iter().try_for_each(|folder| self.sync_folder(folder)).map_err(|error| {
            let message = format!("sync replaced segment. file=`{}`", key.path().display());
            StorageError::new(ErrorKind::Unavailable, message).caused_by(error)
        })
    }

    /// A durable copy of what is believed, or what is wrong with it.
    fn copy(
        &self,
        key: FileKey,
        path: &Path,
        facts: &SegmentFacts,
        belongs: impl Fn(&BatchHeader) -> bool,
    ) -> io::Result<Result<Arc<dyn DiskFile>, String>> {
        let old = self.open_file(key)?;
        let copy = self.disk.open(path, OpenMode::Either)?;
        copy.set_len(0)?;
        if let Some(fault) = self.copy_believed(&*old, &*copy, facts, belongs)? {
            return Ok(Err(fault));
        }
        copy.sync_data()?;
        Ok(Ok(copy))
    }

    /// Copies what is believed; says what is wrong with it.
    fn copy_believed(
        &self,
        from: &dyn DiskFile,
        to: &dyn DiskFile,
        facts: &SegmentFacts,
        belongs: impl Fn(&BatchHeader) -> bool,
    ) -> io::Result<Option<String>> {
        let mut written = 0;
        let mut piece = Vec::new();
        let mut superseded = None;
        let each = |batch: &BatchHeader, bytes: &[u8]| {
            if !belongs(batch) {
                superseded.get_or_insert(batch.base_offset);
            }
            piece.extend_from_slice(bytes);
            if piece.len() >= PIECE_BYTES {
                flush(to, &mut piece, &mut written)?;
            }
            Ok(())
        };
        let walk_bytes = self.options.walk_bytes;
        let (totals, fault) =
            check_batches(from, facts.base_offset, facts.bytes, walk_bytes, each)?;
        flush(to, &mut piece, &mut written)?;
        let Totals { bytes, next_offset, .. } = totals;
        let stale = superseded.map(|at| format!("an older batch stands at {at}"));
        let is_whole = bytes == facts.bytes && next_offset == facts.next_offset;
        let short = (!is_whole).then(|| format!("it ends at {bytes}, before offset {next_offset}"));
        Ok(fault.or(stale).or(short))
    }

    /// Removes copies that a crash, or a failure, left behind, of what a partition's folder holds.
    pub(super) fn remove_copies(
        &self,
        id: PartitionId,
        entries: &[DirEntry],
    ) -> Result<(), StorageError> {
        for entry in entries.iter().filter(|entry| is_copy(&entry.name)) {
            let path = partition_dir(id).join(&entry.name);
            let _alone = self.replacing.lock();
            match self.disk.remove_file(&path) {
                Ok(()) => self.files.note_names_changed(partition_dir(id)),
                // It was being made, and has its place now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let context = format!("remove copy. file=`{}`", path.display());
                    return Err(StorageError::io(context, error));
                }
            }
        }
        Ok(())
    }
}

fn flush(to: &dyn DiskFile, piece: &mut Vec<u8>, written: &mut u64) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    to.write_at(*written, &[piece])?;
    *written += piece.len() as u64;
    piece.clear();
    Ok(())
}
