//! The files of a log that nobody knows: moved out of the way, and back.
//!
//! A file at a time, so that every step is a rename that a crash shows whole or not at all; which of the
//! two folders a file is in does not matter, since the log's row says that it is in neither's service.

use std::io;
use std::path::{Path, PathBuf};

use strandline_model::PartitionId;
use strandline_storage::{ErrorKind, StorageError};

use super::name::{
    LOGS, QUARANTINE, is_ours, partition_dir, quarantine_dir, quarantine_topic_dir, topic_dir,
};
use super::store::SegmentStore;
use crate::disk::{DirEntry, OpenMode};

impl SegmentStore {
    /// Whether a partition has a folder, here or aside, that holds more than what is none of ours.
    pub(crate) fn has_files(&self, id: PartitionId) -> Result<bool, StorageError> {
        for folder in [partition_dir(id), quarantine_dir(id)] {
            match self.is_ours(&folder) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed("list folder", &folder, error)),
            }
        }
        Ok(false)
    }

    /// Bytes of what is set aside of a partition, and of what still is to be.
    pub(crate) fn set_aside_bytes(&self, id: PartitionId) -> Result<u64, StorageError> {
        let mut bytes = 0;
        for folder in [partition_dir(id), quarantine_dir(id)] {
            for entry in self.entries_in(&folder)? {
                bytes += self.size_of(&folder.join(entry.name))?;
            }
        }
        Ok(bytes)
    }

    /// Sets everything aside that a partition has here. Durable when it returns; what an earlier call
    /// did not finish is finished. The log is closed, stays so, and is durable. Blocks.
    pub(crate) fn set_aside(&self, id: PartitionId) -> Result<(), StorageError> {
        for key in self.files_of(id)? {
            self.files.forget(key);
        }
        let aside =
            [PathBuf::from(QUARANTINE), quarantine_topic_dir(id.topic_id), quarantine_dir(id)];
        let here = [PathBuf::from(LOGS), topic_dir(id.topic_id), partition_dir(id)];
        self.move_all(&here, &aside)
    }

    /// Brings everything back that was set aside. Durable when it returns; what an earlier call did not
    /// finish is finished. Blocks.
    pub(crate) fn bring_back(&self, id: PartitionId) -> Result<(), StorageError> {
        let aside =
            [PathBuf::from(QUARANTINE), quarantine_topic_dir(id.topic_id), quarantine_dir(id)];
        let here = [PathBuf::from(LOGS), topic_dir(id.topic_id), partition_dir(id)];
        self.move_all(&aside, &here)
    }

    /// Moves what is in the last folder of `from` to that of `to`. Each is a folder with those that it
    /// lies in.
    fn move_all(&self, from: &[PathBuf; 3], to: &[PathBuf; 3]) -> Result<(), StorageError> {
        let [from_root, from_topic, source] = from;
        let [to_root, to_topic, target] = to;
        let entries = self.entries_in(source)?;
        let taken = self.entries_in(target)?;
        if let Some(both) = entries.iter().find(|entry| taken.contains(entry)) {
            let path = target.join(&both.name);
            let message = format!("there is a file already. file=`{}`", path.display());
            return Err(StorageError::new(ErrorKind::Unavailable, message));
        }
        if !entries.is_empty() {
            // Durable before a file goes there: a folder whose name is lost takes along what it holds.
            for (folder, parent) in to.iter().zip([Path::new(""), to_root, to_topic]) {
                let made = self.disk.create_dir(folder);
                made.map_err(|error| failed("make folder", folder, error))?;
                self.sync_if_there(parent)?;
            }
        }
        for entry in entries {
            let path = source.join(&entry.name);
            match self.disk.rename(&path, &target.join(&entry.name)) {
                // A segment that the log had dropped, whose removal was under way: it is gone.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved.map_err(|error| failed("move file", &path, error))?,
            }
        }
        self.sync_if_there(target)?;
        self.sync_if_there(source)?;
        self.remove_dirs_of(source.clone(), from_topic.clone(), &from_root.to_string_lossy())?;
        self.sync_if_there(from_topic)?;
        self.sync_if_there(from_root)
    }

    /// Removes what is set aside of a partition, within `budget`; says how many bytes are left.
    pub(super) fn remove_set_aside(
        &self,
        id: PartitionId,
        budget: &mut u64,
    ) -> Result<u64, StorageError> {
        let folder = quarantine_dir(id);
        let mut left = 0;
        for entry in self.entries_in(&folder)? {
            let path = folder.join(entry.name);
            let mut remove = || {
                let file = self.disk.open(&path, OpenMode::Existing)?;
                let size = self.shorten(&*file, budget)?;
                drop(file);
                if size == 0 {
                    self.disk.remove_file(&path)?;
                    self.files.note_names_changed(folder.clone());
                }
                Ok(size)
            };
            left += remove().map_err(|error| failed("remove file", &path, error))?;
        }
        if left == 0 {
            self.remove_dirs_of(folder, quarantine_topic_dir(id.topic_id), QUARANTINE)?;
        }
        Ok(left)
    }

    /// Our files in a partition's folder; none when it is not there. Others are nobody's to move or to
    /// remove.
    fn entries_in(&self, folder: &Path) -> Result<Vec<DirEntry>, StorageError> {
        match self.disk.list(folder) {
            Ok(mut entries) => {
                entries.retain(is_ours);
                Ok(entries)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed("list folder", folder, error)),
        }
    }

    fn size_of(&self, path: &Path) -> Result<u64, StorageError> {
        match self.disk.open(path, OpenMode::Existing).and_then(|file| file.size()) {
            Ok(size) => Ok(size),
            // Moved or removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(failed("open file", path, error)),
        }
    }

    fn sync_if_there(&self, folder: &Path) -> Result<(), StorageError> {
        match self.sync_folder(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("sync folder", folder, error))
            }
            _ => Ok(()),
        }
    }
}

fn failed(what: &str, path: &Path, error: io::Error) -> StorageError {
    StorageError::io(format!("{what}. path=`{}`", path.display()), error)
}
