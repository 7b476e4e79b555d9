//! What one group carries, beside its bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strandline_model::Offset;
use strandline_records::SealedBatches;
use strandline_storage::{CommitError, Completion, StorageError};
use tokio::sync::oneshot;

use crate::live::LiveLog;
use crate::rows::RowKey;
use crate::segment::{Append, Placement};

/// The group under way. Its buffers are used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) appends: Vec<Placed>,
    /// Appends that failed before they were placed.
    pub(super) failed_appends: Vec<(Completion, StorageError)>,
    /// The rows as the group leaves them; `None` where it deletes one.
    pub(super) pending_rows: BTreeMap<RowKey, Option<Bytes>>,
    pub(super) trims: Vec<(Arc<LiveLog>, Offset)>,
    pub(super) answers: Vec<Answer>,
    /// Runs of appends of one log: indexes into `appends`, and how their segment write went.
    pub(super) runs: Vec<Run>,
    pub(super) wants_sync: bool,
    /// The shortest interval of its appends.
    pub(super) sync_within: Option<Duration>,
    /// Something was published that is not synced. Outlives the group.
    pub(super) published_unsynced: bool,
}

/// An append and where it goes.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) log: Arc<LiveLog>,
    pub(super) batches: SealedBatches,
    pub(super) place: Placement,
    pub(super) completion: Completion,
}

/// Appends of one log.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) result: Result<(), StorageError>,
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
        self.failed_appends.clear();
        self.pending_rows.clear();
        self.trims.clear();
        self.answers.clear();
        self.runs.clear();
        self.wants_sync = false;
        self.sync_within = None;
    }

    /// Brings the appends of each log together, in their order, and writes them to their segments.
    pub(super) fn write_segments(&mut self) {
        // Stable: the appends of a log stay in offset order.
        self.appends.sort_by_key(|placed| Arc::as_ptr(&placed.log).addr());
        let mut start = 0;
        while let Some(first) = self.appends.get(start) {
            let same = |placed: &&Placed| Arc::ptr_eq(&placed.log, &first.log);
            let end = start + self.appends[start..].iter().take_while(same).count();
            let appends: Vec<Append<'_>> = self.appends[start..end]
                .iter()
                .map(|placed| Append { place: placed.place, batches: &placed.batches })
                .collect();
            let result = first.log.segments.write(&appends);
            self.runs.push(Run { start, end, result });
            start = end;
        }
    }
}
