//! Segments whose file could not be synced, from the failure until a copy has its place.
//!
//! A file that has lost its name counts as one that could not be synced: what goes there is gone when it
//! is closed.
//! docs/adr/0009-failed-segment-sync.md has the reasons. The checkpoint thread replaces the file; until
//! it has, nobody writes to the log or removes it.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset, PartitionId};
use strandline_storage::{ErrorKind, StorageError};

use crate::checkpoint::CheckpointFailure;
use crate::disk::DiskFile;
use crate::engine::Shared;
use crate::queue::{Control, StopMark};
use crate::segment::SyncFailure;

/// The marks of all logs. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Unsound {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    segments: BTreeMap<(PartitionId, Offset), Mark>,
    /// How many marks a log ever had, of logs that had one.
    counts: BTreeMap<PartitionId, u64>,
}

#[derive(Clone, Debug)]
struct Mark {
    error: StorageError,
    /// Kept open: the system may forget what it has of a file that nobody has.
    file: Option<Arc<dyn DiskFile>>,
}

/// How many marks a log had at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkCount(u64);

impl Unsound {
    /// A segment's file could not be synced.
    pub(crate) fn mark(
        &self,
        id: PartitionId,
        segment: Offset,
        error: &StorageError,
        file: Option<&Arc<dyn DiskFile>>,
    ) {
        let mut state = self.state.lock();
        let fresh = || Mark { error: error.clone(), file: None };
        let mark = state.segments.entry((id, segment)).or_insert_with(fresh);
        if let Some(file) = file {
            mark.file = Some(Arc::clone(file));
        }
        *state.counts.entry(id).or_default() += 1;
    }

    /// Whether a segment of the log waits for its replacement.
    pub(crate) fn contains(&self, id: PartitionId) -> bool {
        self.state.lock().has_segment_of(id)
    }

    pub(crate) fn count(&self, id: PartitionId) -> MarkCount {
        MarkCount(self.state.lock().counts.get(&id).copied().unwrap_or_default())
    }

    /// Fails when a segment of the log waits for its replacement, or had to since `count` was taken.
    pub(crate) fn check(&self, id: PartitionId, count: MarkCount) -> Result<(), StorageError> {
        if !self.contains(id) && self.count(id) == count {
            return Ok(());
        }
        let message = format!("segment of the log is being replaced. partition=`{id}`");
        Err(StorageError::new(ErrorKind::Unavailable, message))
    }

    /// The log is removed: nothing of it is remembered.
    pub(crate) fn forget(&self, id: PartitionId) {
        self.state.lock().counts.remove(&id);
    }

    fn all(&self) -> Vec<(PartitionId, Offset, StorageError)> {
        let state = self.state.lock();
        state.segments.iter().map(|((id, at), mark)| (*id, *at, mark.error.clone())).collect()
    }

    fn take_back(&self, id: PartitionId, segment: Offset) {
        let mark = self.state.lock().segments.remove(&(id, segment));
        // After the lock: the last reference to the file may go here.
        drop(mark);
    }
}

impl State {
    fn has_segment_of(&self, id: PartitionId) -> bool {
        self.segments.range((id, Offset::ZERO)..).next().is_some_and(|((found, _), _)| *found == id)
    }
}

impl Shared {
    /// Waits for the checkpoint that replaces what is unsound of a log. That it failed shows in the
    /// mark, which is still there then.
    pub(crate) async fn wait_until_sound(&self, id: PartitionId) {
        if self.unsound.contains(id) {
            drop(self.checkpoints.done(StopMark::Running).await);
        }
    }

    /// Replaces every segment file that could not be synced. By the checkpoint thread, which then goes
    /// on as if they had been: what the rows believe of them is durable. Blocks.
    ///
    /// `failures` is what the checkpoint met; what a direct append met before, or meanwhile, is marked.
    /// A segment for whose copy there is no room keeps its mark, and the checkpoint fails: the next one
    /// tries again.
    pub(crate) fn replace_unsound(
        &self,
        failures: &[SyncFailure],
    ) -> Result<(), CheckpointFailure> {
        for SyncFailure { segment, error, file } in failures {
            let Some((id, segment)) = segment else {
                return Err(CheckpointFailure::Unsound(error.clone()));
            };
            self.unsound.mark(*id, *segment, error, file.as_ref());
        }
        let mut no_room = None;
        for (id, segment, error) in self.unsound.all() {
            self.break_unsound(id, &error).map_err(CheckpointFailure::Unsound)?;
            match self.replace(id, segment, &error) {
                Ok(()) => self.unsound.take_back(id, segment),
                Err(error) if error.kind() == ErrorKind::Full => drop(no_room.get_or_insert(error)),
                Err(error) => return Err(CheckpointFailure::Unsound(error)),
            }
        }
        no_room.map_or(Ok(()), |error| Err(CheckpointFailure::Passing(error)))
    }

    /// Has the commit thread end the log's handle.
    pub(crate) fn break_unsound(
        &self,
        id: PartitionId,
        error: &StorageError,
    ) -> Result<(), StorageError> {
        let (sender, broken) = mpsc::sync_channel(1);
        self.queue.control(Control::Break(id, error.clone(), sender));
        broken.recv().unwrap_or_else(|_| Err(error.clone()))
    }

    fn replace(
        &self,
        id: PartitionId,
        segment: Offset,
        cause: &StorageError,
    ) -> Result<(), StorageError> {
        // The mark is set before this looks, and a remover looks for the mark after its own is in the
        // rows: one of the two sees the other. Without a row, a trim has dropped the segment.
        let facts = {
            let rows = self.rows.read();
            let is_removed = rows.is_removed(id);
            rows.segments(id).into_iter().find(|facts| facts.base_offset == segment && !is_removed)
        };
        let Some(facts) = facts else { return Ok(()) };
        self.check_room_for_copy(facts.bytes)?;
        let epochs = self.logs.epochs(id);
        self.segments.replace(id, &facts, |batch| epochs.may_hold(batch)).map_err(|error| {
            let message = format!("segment could not be synced, nor replaced. cause=`{cause}`");
            StorageError::new(error.kind(), message).caused_by(error)
        })?;
        tracing::warn!(log = %id, %segment, error = %cause, "segment could not be synced and was replaced");
        Ok(())
    }
}

impl Shared {
    /// Half of the reserve is left to metadata and removals, which may be what makes room.
    pub(crate) fn check_room_for_copy(&self, bytes: u64) -> Result<(), StorageError> {
        // A disk that can't tell is not full: the write will tell.
        let free = self.disk.free_space().map_or(u64::MAX, ByteCount::get);
        if free >= bytes.saturating_add(self.config.reserve.get() / 2) {
            return Ok(());
        }
        let message = format!("no room for the copy of a segment. free=`{free}`, bytes=`{bytes}`");
        Err(StorageError::new(ErrorKind::Full, message))
    }
}

#[cfg(test)]
mod tests {
    use strandline_model::{PartitionIndex, TopicId};

    use super::*;

    #[test]
    fn a_mark_refuses_who_began_before_it_even_when_it_is_gone_again() {
        let id = |index| PartitionId::new(TopicId::from_bytes([3; 16]), PartitionIndex::new(index));
        let error = StorageError::new(ErrorKind::Unavailable, "sync segment");
        let unsound = Unsound::default();
        let (before, other) = (unsound.count(id(1)), unsound.count(id(2)));
        unsound.check(id(1), before).unwrap();
        unsound.mark(id(1), Offset::new(7), &error, None);
        unsound.mark(id(1), Offset::new(9), &error, None);
        assert_eq!(unsound.all().len(), 2);
        unsound.take_back(id(1), Offset::new(7));
        assert!(unsound.contains(id(1)) && !unsound.contains(id(0)) && !unsound.contains(id(2)));
        unsound.check(id(1), unsound.count(id(1))).unwrap_err();
        unsound.take_back(id(1), Offset::new(9));
        let refused = unsound.check(id(1), before).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        unsound.check(id(1), unsound.count(id(1))).unwrap();
        unsound.check(id(2), other).unwrap();
    }
}
