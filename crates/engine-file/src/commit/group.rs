//! What one group carries, beside its bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::Offset;
use strandline_records::SealedBatches;
use strandline_storage::{CommitError, Completion, Durability, StorageError};
use tokio::sync::oneshot;

use crate::journal::group::{AppendHead, GroupBuilder, WrittenBytes};
use crate::live::LiveLog;
use crate::rows::RowKey;
use crate::segment::{Append, DurableWriteError, Placement, Rewritten};
use crate::unsound::Unsound;

/// The group under way. Its buffers are used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) appends: Vec<Placed>,
    /// Bytes that they would take in the journal.
    pub(super) append_bytes: u64,
    /// Appends that failed before they were placed.
    pub(super) failed_appends: Vec<(Completion, StorageError)>,
    /// The rows as the group leaves them; `None` where it deletes one.
    pub(super) pending_rows: BTreeMap<RowKey, Option<Bytes>>,
    /// With the base offsets of the segments that go.
    pub(super) trims: Vec<(Arc<LiveLog>, Offset, Vec<Offset>)>,
    pub(super) rewrites: Vec<(Arc<LiveLog>, RewriteSlot)>,
    pub(super) answers: Vec<Answer>,
    /// Runs of appends of one log.
    pub(super) runs: Vec<Run>,
    pub(super) wants_sync: bool,
    /// The shortest interval of its appends.
    pub(super) sync_within: Option<Duration>,
    /// Something was published that is not synced. Outlives the group.
    pub(super) published_unsynced: bool,
}

/// Where a rewrite waits until it has happened.
pub(super) type RewriteSlot = Arc<Mutex<Option<Rewritten>>>;

/// An append and where it goes.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) log: Arc<LiveLog>,
    pub(super) batches: SealedBatches,
    pub(super) place: Placement,
    pub(super) completion: Completion,
}

/// Appends of one log: indexes into `appends`, and how their segment write went.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) path: Path,
    pub(super) result: Result<(), StorageError>,
}

/// How a run becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Its batches go through the journal and are synced with it; its segments, later.
    Journal,
    /// Its segments are synced first; the journal names what is there.
    Direct,
}

/// What became of the direct runs of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Direct {
    /// What was written and synced.
    pub(super) bytes: u64,
    /// A segment is to be replaced.
    pub(super) met_unsound: bool,
}

/// An answer that waits for the group.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) done: oneshot::Sender<Result<(), CommitError>>,
    pub(super) result: Result<(), CommitError>,
}

impl Work {
    /// Whether there is nobody to answer and nothing to write.
    pub(super) const fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.failed_appends.is_empty() && self.answers.is_empty()
    }

    /// Forgets the group before.
    pub(super) fn begin(&mut self) {
        self.appends.clear();
        self.append_bytes = 0;
        self.failed_appends.clear();
        self.pending_rows.clear();
        self.trims.clear();
        self.rewrites.clear();
        self.answers.clear();
        self.runs.clear();
        self.wants_sync = false;
        self.sync_within = None;
    }

    /// Brings the appends of each log together, in their order, and decides how they become durable:
    /// from `direct_min` bytes of one log on, writing them once and syncing one more file costs less
    /// than writing them twice.
    pub(super) fn gather_runs(&mut self, direct_min: u64) {
        // Stable: the appends of a log stay in offset order.
        self.appends.sort_by_key(|placed| Arc::as_ptr(&placed.log).addr());
        let mut start = 0;
        while let Some(first) = self.appends.get(start) {
            let same = |placed: &&Placed| Arc::ptr_eq(&placed.log, &first.log);
            let end = start + self.appends[start..].iter().take_while(same).count();
            let bytes: u64 =
                self.appends[start..end].iter().map(|placed| placed.batches.size().get()).sum();
            let waits = first.log.durability() == Durability::Commit;
            let path = if waits && bytes >= direct_min { Path::Direct } else { Path::Journal };
            self.runs.push(Run { start, end, path, result: Ok(()) });
            start = end;
        }
    }

    /// Writes the direct runs to their segments and syncs those. A segment whose
    /// file is not synced goes to `unsound`: what was written to it before may be hit too. An error says
    /// that names were not synced, which other logs may have made.
    pub(super) fn write_direct(&mut self, unsound: &Unsound) -> Result<Direct, StorageError> {
        let mut done = Direct::default();
        for run in self.runs.iter_mut().filter(|run| run.path == Path::Direct) {
            let placed = &self.appends[run.start..run.end];
            match placed[0].log.segments.write_durably(&appends_of(placed)) {
                Ok(()) => {
                    done.bytes +=
                        placed.iter().map(|placed| placed.batches.size().get()).sum::<u64>();
                }
                Err(DurableWriteError::Write(error)) => run.result = Err(error),
                Err(DurableWriteError::Sync { segment, error }) => {
                    unsound.mark(placed[0].log.id, segment, &error, None);
                    done.met_unsound = true;
                    run.result = Err(error);
                }
                Err(DurableWriteError::Names(error)) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Writes the other runs to their segments.
    pub(super) fn write_journaled(&mut self) {
        for run in self.runs.iter_mut().filter(|run| run.path == Path::Journal) {
            let placed = &self.appends[run.start..run.end];
            run.result = placed[0].log.segments.write(&appends_of(placed));
        }
    }

    /// Puts an entry into the group for each append that was not refused yet.
    pub(super) fn journal_appends(&self, builder: &mut GroupBuilder) {
        for Run { start, end, path, result } in &self.runs {
            if result.is_err() {
                continue;
            }
            for placed in &self.appends[*start..*end] {
                let (head, batches) = (placed.head(), placed.batches.bytes());
                match path {
                    Path::Journal => builder.append(&head, batches),
                    Path::Direct => builder.written(&head, WrittenBytes::of(batches)),
                }
            }
        }
    }
}

fn appends_of(placed: &[Placed]) -> Vec<Append<'_>> {
    placed.iter().map(|placed| Append { place: placed.place, batches: &placed.batches }).collect()
}

impl Placed {
    fn head(&self) -> AppendHead {
        AppendHead {
            partition: self.log.id,
            leader_epoch: self.log.epoch,
            base_offset: self.batches.base_offset(),
            next_offset: self.batches.next_offset(),
            max_timestamp: self.batches.max_timestamp(),
            appended_at: self.batches.appended_at(),
            segment: self.place.segment,
            position: self.place.position,
        }
    }
}
