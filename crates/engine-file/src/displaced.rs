//! Logs whose files were taken away, or replaced, while they were open.
//!
//! Their handles are ended, so that nobody writes to a file that has no name. What is still open of them
//! is all that is left of what the files held, and is put back under their names; whoever opens the log
//! again opens it from what is on the disk.

use std::sync::Arc;

use strandline_model::PartitionId;
use strandline_storage::{ErrorKind, StorageError};

use crate::blocking::blocking;
use crate::engine::{Shared, Turn};
use crate::queue::StopMark;
use crate::segment::SegmentFacts;

impl Shared {
    /// The segments of a log that must have files.
    pub(crate) fn named_facts(&self, id: PartitionId) -> Vec<SegmentFacts> {
        match self.logs.live(id) {
            // The rows of an open log come behind.
            Some(live) => live.segments.facts(),
            None => self.rows.read().segments(id),
        }
    }

    /// Puts back what is open of a log's files that have lost their names, for an opener.
    pub(crate) async fn put_back_before_opening(
        self: &Arc<Self>,
        id: PartitionId,
        turn: &Turn,
    ) -> Result<(), StorageError> {
        let facts = self.named_facts(id);
        if !self.segments.has_open_files(id, &facts) {
            return Ok(());
        }
        let store = Arc::clone(&self.segments);
        let displaced = blocking(move || Ok(store.displaced(id, &facts))).await?;
        if displaced.is_empty() { Ok(()) } else { self.put_back(&[id], turn).await }
    }

    /// Ends the handles of logs, and puts back what is open of their files that have lost their names.
    /// Nobody opens one of them meanwhile: the caller has the turn.
    pub(crate) async fn put_back(
        self: &Arc<Self>,
        ids: &[PartitionId],
        turn: &Turn,
    ) -> Result<(), StorageError> {
        let (shared, broken) = (Arc::clone(self), ids.to_vec());
        blocking(move || {
            let message = "files of the log were removed or replaced by somebody";
            let error = StorageError::new(ErrorKind::Unavailable, message);
            broken.iter().try_for_each(|id| shared.break_unsound(*id, &error))
        })
        .await?;
        // What the journal has of them is put back by it; the rest was durable, and is looked at here.
        self.checkpoints.done(StopMark::Running).await?;
        let (shared, ids, held) = (Arc::clone(self), ids.to_vec(), Arc::clone(turn));
        blocking(move || {
            let done = ids.iter().try_for_each(|id| shared.put_back_synced(*id));
            drop(held);
            done
        })
        .await
    }

    /// Puts back what is open of a log of which nothing is unsynced. What can't be read whole any more is
    /// given up: then the disk alone says what there is.
    fn put_back_synced(&self, id: PartitionId) -> Result<(), StorageError> {
        let facts = {
            let rows = self.rows.read();
            if rows.is_removed(id) { Vec::new() } else { rows.segments(id) }
        };
        let displaced = self.segments.displaced(id, &facts);
        let epochs = self.logs.epochs(id);
        for facts in facts.iter().filter(|facts| displaced.contains(&facts.name())) {
            let segment = facts.base_offset;
            self.check_room_for_copy(facts.bytes)?;
            match self.segments.replace(id, facts, |batch| epochs.may_hold(batch)) {
                Ok(()) => {
                    tracing::warn!(log = %id, %segment, "segment was removed or replaced by somebody while it was open, and was put back");
                }
                Err(error) if error.kind() == ErrorKind::Full => return Err(error),
                Err(error) => {
                    let cause = error.in_one_line();
                    tracing::error!(log = %id, %segment, cause, "segment was removed or replaced by somebody while it was open, and can't be put back");
                    self.segments.close_displaced(id, facts.name());
                }
            }
        }
        Ok(())
    }
}
