//! The commit thread's part of a checkpoint.

use std::sync::Arc;

use strandline_model::PartitionId;
use strandline_storage::StorageError;

use super::{Committer, Healing};
use crate::checkpoint::{CheckpointFailure, Frozen, Outcome};
use crate::journal::writer::WriteFailure;
use crate::journal::{Generation, GroupPosition, GroupSequence};
use crate::queue::{Control, StopMark};
use crate::snapshot::SnapshotHead;

impl Committer {
    pub(super) fn control(&mut self, control: Control) {
        match control {
            Control::Freeze(mark, sender) => {
                let frozen = self.freeze(mark);
                // Without a receiver the checkpoint thread is gone, and with it the engine.
                drop(sender.send(frozen));
            }
            Control::Break(id, error, sender) => {
                let broken = self.break_unsound(id, &error);
                // As above.
                drop(sender.send(broken));
            }
            Control::Finish(outcome) => self.finish(outcome),
        }
    }

    /// Ends the handle of a log, between two groups: from then on nobody writes to its segments until
    /// it is opened again, and the rows have all that was published. Fails when the engine has failed.
    fn break_unsound(&self, id: PartitionId, error: &StorageError) -> Result<(), StorageError> {
        if let Some(fatal) = &self.fatal {
            return Err(fatal.clone());
        }
        if let Some(log) = self.shared.logs.live(id) {
            self.break_log(&log, error);
        }
        Ok(())
    }

    /// Takes the state as of the last group.
    fn freeze(&mut self, mark: StopMark) -> Frozen {
        // So that the sequence never goes back below what a snapshot says that it holds.
        self.sync_published();
        self.direct_bytes = 0;
        if self.healing == Healing::Wanted {
            self.healing = Healing::Begun;
        }
        let mut logs = Vec::with_capacity(self.dirty.len());
        for log in std::mem::take(&mut self.dirty).into_values() {
            log.commit.lock().dirty = None;
            self.bring_facts_down(&log);
            logs.push(Arc::clone(&log.segments));
        }
        let generation_max = self.writer.generation_max();
        let position = match mark {
            StopMark::Running => self.writer.end(),
            // Nothing follows in the current file: a start need not look.
            StopMark::Clean => {
                GroupPosition { generation: Generation(generation_max.0 + 1), position: 0 }
            }
        };
        let head = SnapshotHead {
            sequence: self.writer.last(),
            position,
            generation_max,
            run: self.shared.run,
            unclean_run: self.shared.unclean_run,
            clean: mark == StopMark::Clean,
        };
        self.shared.unsaved.begin_saving();
        let rows = self.shared.rows.write().freeze();
        Frozen { head, rows, work: self.shared.segments.take_unsynced(), logs }
    }

    fn finish(&mut self, outcome: Outcome) {
        let Outcome { sequence, mark, result, waiting } = outcome;
        self.checkpointing = false;
        self.shared.rows.write().thaw();
        self.shared.unsaved.end_saving(result.is_ok());
        if result.is_ok() && self.healing == Healing::Begun {
            // The snapshot has all that was published, whatever becomes of the record of it.
            self.healing = Healing::No;
            self.work.published_unsynced = false;
        }
        let result = result.and_then(|()| match mark {
            StopMark::Running => {
                self.record_checkpoint(sequence).map_err(CheckpointFailure::Passing)
            }
            StopMark::Clean => Ok(()),
        });
        let result = match result {
            Ok(()) => {
                self.writer.release(sequence);
                Ok(())
            }
            Err(failure) => Err(self.checkpoint_failed(failure)),
        };
        if result.is_ok() && mark == StopMark::Running {
            // What came meanwhile may be as much again, and nothing may come after it to ask. A single
            // file of the journal is given up by no checkpoint, however long it is.
            if self.writer.has_older_files() || self.are_segments_due() {
                self.ask_for_checkpoint();
            }
        }
        self.shared.queue.checkpoint_ended(self.writer.live_bytes());
        for completion in waiting {
            completion.settle(result.clone());
        }
    }

    /// Journals that the snapshot is durable: an older one in its place would be noticed.
    fn record_checkpoint(&mut self, sequence: GroupSequence) -> Result<(), StorageError> {
        if let Some(fatal) = &self.fatal {
            return Err(fatal.clone());
        }
        self.builder.begin();
        self.builder.checkpoint(sequence);
        let written = self
            .writer
            .write(&mut self.builder)
            .and_then(|()| self.sync_journal().map_err(WriteFailure::Broken));
        match written {
            // Without a file the snapshot is durable all the same, and may free the space for one.
            Ok(()) | Err(WriteFailure::NoFile(_)) => Ok(()),
            Err(WriteFailure::Broken(error)) => {
                let error = StorageError::io("record checkpoint", error);
                self.abandon_file(&error);
                Err(error)
            }
        }
    }

    fn checkpoint_failed(&mut self, failure: CheckpointFailure) -> StorageError {
        match failure {
            // What was to be synced may be gone, however well it reads, and no sync tells. The
            // journal has it: the next start writes it again.
            CheckpointFailure::Unsound(error) => {
                self.end(error.clone());
                error
            }
            CheckpointFailure::Passing(error) => {
                tracing::warn!(%error, "checkpoint failed, the journal keeps its space");
                self.shared.space.note_full(&error);
                self.shared.checkpoints.note_failure();
                // The next group asks again: what went direct is still to be compared at a start.
                let due = self.shared.config.direct_checkpoint_at.get();
                self.direct_bytes = self.direct_bytes.max(due);
                if self.healing == Healing::Begun {
                    self.end(error.clone());
                }
                error
            }
        }
    }
}
