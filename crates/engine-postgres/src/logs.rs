//! The logs that are known in this run.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::PartitionId;
use strandline_storage::StorageError;

use crate::state::Log;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Logs(Mutex<BTreeMap<PartitionId, Arc<Log>>>);

impl Logs {
    /// Logs that are known at the start.
    pub(crate) fn add(&self, known: BTreeMap<PartitionId, Arc<Log>>) {
        self.0.lock().extend(known);
    }

    pub(crate) fn known(&self, id: PartitionId) -> Option<Arc<Log>> {
        self.0.lock().get(&id).map(Arc::clone)
    }

    pub(crate) fn known_or_new(&self, id: PartitionId) -> Arc<Log> {
        let mut logs = self.0.lock();
        Arc::clone(logs.entry(id).or_insert_with(|| Arc::new(Log::new(id))))
    }

    pub(crate) fn all(&self) -> Vec<Arc<Log>> {
        self.0.lock().values().map(Arc::clone).collect()
    }

    pub(crate) fn forget(&self, id: PartitionId) {
        let gone = self.0.lock().remove(&id);
        drop(gone);
    }

    /// Ends the handles of all logs that lane `index` of `lanes` appends to.
    pub(crate) fn kill_lane(&self, index: usize, lanes: usize, error: &StorageError) {
        for log in self.all() {
            let (log_id, opening) = {
                let state = log.state.lock();
                (state.log_id, state.opening)
            };
            if opening > 0 && lane_of(log_id, lanes) == index {
                log.kill(opening, error);
            }
        }
    }
}

/// The lane of a log: always the same one, so that what it does stays in order.
pub(crate) fn lane_of(log_id: i64, lanes: usize) -> usize {
    usize::try_from(log_id.cast_unsigned() % lanes as u64).unwrap_or(0)
}
