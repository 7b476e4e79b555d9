//! Removing segments and whole logs, in steps that never stall the device.
//!
//! A file is cut from its end, step by step, and unlinked when it is empty: freeing a gibibyte at
//! once takes 0.3 s and stalls every sync meanwhile. Nothing is cut while somebody reads it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use strandline_model::{ByteCount, Offset, PartitionId};
use strandline_storage::{Removal, StorageError};

use super::SegmentFacts;
use super::log::SegmentLog;
use super::name::{
    FileKey, FileKind, LOGS, QUARANTINE, partition_dir, quarantine_topic_dir, topic_dir,
};
use super::recover::Leftovers;
use super::store::SegmentStore;
use crate::disk::{DiskFile, OpenMode};

/// How a removal of one segment went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its files are gone.
    Gone,
    /// The budget is used up, or somebody reads it: so many bytes are left.
    Left(u64),
}

impl SegmentLog {
    /// Whether files of dropped segments are still there.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.state.lock().dropped.is_empty()
    }

    /// Bytes of dropped segments whose files are still there.
    pub(crate) fn dropped_bytes(&self) -> u64 {
        let dropped: Vec<_> = self.state.lock().dropped.iter().map(Arc::clone).collect();
        dropped.iter().map(|segment| segment.facts().bytes).sum()
    }

    /// Ends the segments that lie wholly below `log_start`: nothing more is placed in them. Returns their
    /// base offsets, oldest first.
    ///
    /// For whoever journals that they go, after which [`drop_ended`](Self::drop_ended) drops these and no
    /// others: a start passes over every entry of a segment whose row it finds deleted, so that one in
    /// which batches were placed, or still can be, must stay.
    pub(crate) fn end_below(&self, log_start: Offset) -> Vec<Offset> {
        let mut state = self.state.lock();
        let mut ended = Vec::new();
        for (index, segment) in state.segments.iter().enumerate() {
            let facts = segment.facts();
            if facts.bytes == 0 || facts.next_offset > log_start {
                break;
            }
            let is_last = index + 1 == state.segments.len();
            let begun_behind =
                state.cursor.active.is_some_and(|active| active.base_offset == facts.next_offset);
            if is_last && state.cursor.end > facts.next_offset && !begun_behind {
                // Batches were placed that are not written yet, perhaps in it.
                break;
            }
            ended.push(facts.base_offset);
        }
        if state.cursor.active.is_some_and(|active| ended.contains(&active.base_offset)) {
            state.cursor.active = None;
        }
        ended
    }

    /// Drops what [`end_below`](Self::end_below) has ended: no later read finds it. Says how many.
    ///
    /// Their files go by [`remove_dropped`](Self::remove_dropped). The caller has made the new log
    /// start durable.
    pub(crate) fn drop_ended(&self, ended: &[Offset]) -> usize {
        let mut state = self.state.lock();
        let mut count = 0;
        while let Some(segment) =
            state.segments.pop_front_if(|segment| ended.contains(&segment.base_offset))
        {
            state.dropped.push_back(segment);
            count += 1;
        }
        count
    }

    /// Both in one.
    #[cfg(test)]
    pub(crate) fn drop_below(&self, log_start: Offset) -> usize {
        self.drop_ended(&self.end_below(log_start))
    }

    /// Removes up to `budget` bytes of dropped segments, oldest first; says what is left. Blocks.
    ///
    /// One that can't be removed keeps no other: its error is told when the turn is over.
    pub(crate) fn remove_dropped(&self, budget: ByteCount) -> Result<Removal, StorageError> {
        let mut budget = budget.get().max(1);
        let dropped: Vec<_> = self.state.lock().dropped.iter().map(Arc::clone).collect();
        let mut left = 0;
        let mut failed = None;
        for segment in dropped {
            let key = segment.key(FileKind::Log);
            // One reference is in the list, one is ours; a third is a reader's on its way to the file.
            let is_wanted = Arc::strong_count(&segment) > 2;
            let step = if is_wanted || budget == 0 {
                Step::Left(segment.facts().bytes)
            } else {
                match self.store.remove_step(key, &mut budget) {
                    Ok(step) => step,
                    Err(error) => {
                        failed.get_or_insert_with(|| remove_failed(key, error));
                        continue;
                    }
                }
            };
            match step {
                Step::Gone => {
                    let mut state = self.state.lock();
                    state.dropped.retain(|dropped| !Arc::ptr_eq(dropped, &segment));
                }
                Step::Left(bytes) => {
                    segment.look(|live| live.facts.bytes = bytes);
                    left += bytes.max(1);
                }
            }
        }
        match failed {
            Some(error) => Err(error),
            None if left == 0 => Ok(Removal::Done),
            None => Ok(Removal::Remaining(ByteCount::new(left))),
        }
    }
}

impl SegmentStore {
    /// Removes up to `budget` bytes of a log that is not open and will not be opened again. Blocks.
    ///
    /// Idempotent and resumable. `Done` means that names are gone; it is durable once the next
    /// [`SyncWork`](super::SyncWork) or [`sync_removal`](Self::sync_removal) ran. While somebody reads a segment, it stays and counts as
    /// remaining.
    pub(crate) fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> Result<Removal, StorageError> {
        let mut budget = budget.get().max(1);
        let mut left = 0;
        for key in self.files_of(id)? {
            let failed = |error| remove_failed(key, error);
            if key.kind != FileKind::Log {
                continue;
            }
            match self.remove_step(key, &mut budget).map_err(failed)? {
                Step::Gone => {}
                Step::Left(bytes) => left += bytes.max(1),
            }
        }
        if left > 0 {
            return Ok(Removal::Remaining(ByteCount::new(left)));
        }
        let left = self.remove_rescues(id, &mut budget)?;
        if left > 0 {
            return Ok(Removal::Remaining(ByteCount::new(left)));
        }
        let left = self.remove_set_aside(id, &mut budget)?;
        if left > 0 {
            return Ok(Removal::Remaining(ByteCount::new(left)));
        }
        // What is left are indexes without a segment, and copies.
        for key in self.files_of(id)? {
            self.remove_file(key).map_err(|error| remove_failed(key, error))?;
        }
        self.remove_copies(id, &self.entries_of(id)?)?;
        self.remove_dirs(id)?;
        Ok(Removal::Done)
    }

    /// Removes up to `budget` bytes of what [`open`](Self::open) would find beside `facts`, of a log that
    /// nobody has open or opens meanwhile. Blocks.
    ///
    /// Idempotent and resumable. One file that can't be removed keeps no other. A log that misses a
    /// segment of `facts` is left as it is.
    pub(crate) fn remove_leftovers(
        &self,
        id: PartitionId,
        facts: &[SegmentFacts],
        end: Offset,
        budget: ByteCount,
    ) -> Result<Removal, StorageError> {
        let mut budget = budget.get().max(1);
        let mut left = 0;
        let Some(leftovers) = Leftovers::of(self.files_of(id)?, facts, end) else {
            return Ok(Removal::Done);
        };
        let mut failed = None;
        for key in leftovers.segments {
            match self.remove_step(key, &mut budget) {
                Ok(Step::Gone) => {}
                Ok(Step::Left(bytes)) => left += bytes.max(1),
                Err(error) => {
                    failed.get_or_insert_with(|| remove_failed(key, error));
                }
            }
        }
        for key in leftovers.orphans {
            self.remove_file(key).map_err(|error| remove_failed(key, error))?;
        }
        self.remove_copies(id, &self.entries_of(id)?)?;
        match failed {
            Some(error) => Err(error),
            None if left == 0 => Ok(Removal::Done),
            None => Ok(Removal::Remaining(ByteCount::new(left))),
        }
    }

    /// Makes it durable that [`remove_some`](Self::remove_some) was `Done`, for a log that nothing but
    /// its files knew. Blocks.
    pub(crate) fn sync_removal(&self, id: PartitionId) -> Result<(), StorageError> {
        let logs = [topic_dir(id.topic_id), LOGS.into()];
        let aside = [quarantine_topic_dir(id.topic_id), QUARANTINE.into()];
        for folder in logs.into_iter().chain(aside) {
            match self.sync_folder(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let context = format!("sync folder. folder=`{}`", folder.display());
                    return Err(StorageError::io(context, error));
                }
                // What is not there any more is told by the folder above.
                _ => {}
            }
        }
        Ok(())
    }

    /// Cuts a segment by up to `budget` and unlinks it with its indexes when nothing is left.
    fn remove_step(&self, key: FileKey, budget: &mut u64) -> io::Result<Step> {
        if !self.files.begin_removal(key) {
            return Ok(Step::Left(self.open_file(key)?.size()?));
        }
        let file = match self.disk.open(&key.path(), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.remove_with_indexes(key)?;
                return Ok(Step::Gone);
            }
            Err(error) => return Err(error),
        };
        let size = self.shorten(&*file, budget)?;
        drop(file);
        if size > 0 {
            return Ok(Step::Left(size));
        }
        self.remove_with_indexes(key)?;
        Ok(Step::Gone)
    }

    /// Cuts a file from its end, step by step, by up to `budget`; says what is left.
    pub(super) fn shorten(&self, file: &dyn DiskFile, budget: &mut u64) -> io::Result<u64> {
        let mut size = file.size()?;
        let step = self.options.removal_step.get().max(1);
        while size > 0 && *budget > 0 {
            let cut = size.min(step).min(*budget);
            size -= cut;
            *budget -= cut;
            file.set_len(size)?;
        }
        Ok(size)
    }

    /// Removes a file that nobody reads: cuts it in steps, then unlinks it.
    pub(super) fn remove_now(&self, key: FileKey) -> io::Result<()> {
        if key.kind == FileKind::Log {
            let mut budget = u64::MAX;
            self.remove_step(key, &mut budget)?;
        }
        self.remove_file(key)
    }

    fn remove_with_indexes(&self, log: FileKey) -> io::Result<()> {
        for kind in FileKind::ALL {
            self.remove_file(log.sibling(kind))?;
        }
        Ok(())
    }

    /// Unlinks a file if it is there.
    pub(super) fn remove_file(&self, key: FileKey) -> io::Result<()> {
        self.files.forget(key);
        let removed = self.disk.remove_file(&key.path());
        self.files.end_removal(key);
        match removed {
            Ok(()) => {
                self.files.note_names_changed(partition_dir(key.id));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn remove_dirs(&self, id: PartitionId) -> Result<(), StorageError> {
        self.remove_dirs_of(partition_dir(id), topic_dir(id.topic_id), LOGS)
    }

    /// Removes the folder of a partition, and that of its topic when it was the last one.
    pub(super) fn remove_dirs_of(
        &self,
        partition: PathBuf,
        topic: PathBuf,
        root: &str,
    ) -> Result<(), StorageError> {
        for (folder, parent) in [(partition, topic.clone()), (topic, root.into())] {
            match self.disk.remove_dir(&folder) {
                Ok(()) => self.files.note_names_changed(parent),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Gone by an earlier call, whose change of names may not be synced yet.
                    self.files.note_names_changed(parent);
                }
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) => {
                    let context = format!("remove folder. folder=`{}`", folder.display());
                    return Err(StorageError::io(context, error));
                }
            }
        }
        Ok(())
    }
}

fn remove_failed(key: FileKey, error: io::Error) -> StorageError {
    StorageError::io(format!("remove segment. file=`{}`", key.path().display()), error)
}
