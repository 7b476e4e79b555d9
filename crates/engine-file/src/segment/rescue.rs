//! Files for batches that no segment of their log can take.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use strandline_model::{Offset, PartitionId};
use strandline_storage::StorageError;

use super::name::{is_rescue, partition_dir, rescue_name};
use super::store::SegmentStore;
use crate::disk::{DiskFile, OpenMode};

/// Batches of a damaged log, one behind another, beside its segments.
#[derive(Debug)]
pub(crate) struct RescueFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    end: u64,
}

impl SegmentStore {
    /// Makes the file for batches from `base_offset` on, empty, in place of one of that name that an
    /// earlier try left. Its name is durable after the next sync.
    pub(crate) fn begin_rescue(
        &self,
        id: PartitionId,
        base_offset: Offset,
    ) -> Result<RescueFile, StorageError> {
        let path = partition_dir(id).join(rescue_name(base_offset));
        let make = || {
            self.create_dirs(id)?;
            let file = self.disk.open(&path, OpenMode::Either)?;
            self.files.note_names_changed(partition_dir(id));
            file.set_len(0)?;
            Ok(file)
        };
        let file = make().map_err(|error| failed(&path, error))?;
        Ok(RescueFile { file, path, end: 0 })
    }

    /// Removes the files of rescued batches, within `budget`; says how many bytes are left.
    pub(super) fn remove_rescues(
        &self,
        id: PartitionId,
        budget: &mut u64,
    ) -> Result<u64, StorageError> {
        let mut left = 0;
        let entries = self.entries_of(id)?;
        for entry in entries.iter().filter(|entry| is_rescue(&entry.name)) {
            let path = partition_dir(id).join(&entry.name);
            let mut remove = || {
                let file = self.disk.open(&path, OpenMode::Existing)?;
                let size = self.shorten(&*file, budget)?;
                if size == 0 {
                    drop(file);
                    self.disk.remove_file(&path)?;
                    self.files.note_names_changed(partition_dir(id));
                }
                Ok(size)
            };
            left += remove().map_err(|error| failed(&path, error))?;
        }
        Ok(left)
    }
}

impl RescueFile {
    /// Writes whole batches behind those before.
    pub(crate) fn add(&mut self, batches: &[u8]) -> Result<(), StorageError> {
        self.file.write_at(self.end, &[batches]).map_err(|error| failed(&self.path, error))?;
        self.end += batches.len() as u64;
        Ok(())
    }

    /// Makes the batches durable.
    pub(crate) fn sync(self) -> Result<(), StorageError> {
        self.file.sync_data().map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &std::path::Path, error: io::Error) -> StorageError {
    StorageError::io(format!("rescue batches. file=`{}`", path.display()), error)
}
