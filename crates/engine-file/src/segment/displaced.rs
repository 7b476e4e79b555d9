//! Open files that have lost their names: somebody removed them, moved them or put others in their place.
//!
//! What is written to such a file is gone when it is closed, and no sync tells. Only the name does: it
//! stands for another file than the one that is open, or for none.

use std::io;
use std::sync::Arc;

use strandline_model::PartitionId;

use super::SegmentFacts;
use super::name::{FileKey, FileKind, SegmentName};
use super::store::SegmentStore;
use crate::disk::DiskFile;

impl SegmentStore {
    /// Makes the bytes of a segment durable, and sees that they are found again under its name.
    pub(super) fn sync_in_place(&self, key: FileKey, file: &Arc<dyn DiskFile>) -> io::Result<()> {
        file.sync_data()?;
        if self.is_displaced(key, file) {
            let message = "somebody removed the file, or put another one in its place";
            return Err(io::Error::other(message));
        }
        Ok(())
    }

    /// Whether files of a log are open at all: only then [`displaced`](Self::displaced) finds some.
    /// Never waits for the disk.
    pub(crate) fn has_open_files(&self, id: PartitionId, facts: &[SegmentFacts]) -> bool {
        !self.files.opened_of(keys_of(id, facts)).is_empty()
    }

    /// The segments of `facts` whose files are open and have lost their names. Blocks.
    pub(crate) fn displaced(&self, id: PartitionId, facts: &[SegmentFacts]) -> Vec<SegmentName> {
        let opened = self.files.opened_of(keys_of(id, facts));
        let displaced = opened.into_iter().filter(|(key, file)| self.is_displaced(*key, file));
        displaced.map(|(key, _)| key.segment).collect()
    }

    /// Closes the file of a segment: from then on its name says which file it is. What is unsynced of it
    /// no longer matters.
    pub(crate) fn close_displaced(&self, id: PartitionId, segment: SegmentName) {
        self.files.forget(FileKey::new(id, segment, FileKind::Log));
    }

    fn is_displaced(&self, key: FileKey, file: &Arc<dyn DiskFile>) -> bool {
        let identity = match self.disk.look(&key.path()) {
            Ok(look) => Some(look.identity),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => None,
                // Nobody says that it is gone.
                _ => return false,
            },
        };
        let Ok(ours) = file.identity() else { return false };
        // What we remove or replace ourselves is forgotten before.
        identity != Some(ours) && self.files.is_current(key, file)
    }
}

fn keys_of(id: PartitionId, facts: &[SegmentFacts]) -> impl Iterator<Item = FileKey> {
    facts.iter().map(move |facts| FileKey::new(id, facts.name(), FileKind::Log))
}
