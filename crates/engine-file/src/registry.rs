//! Which logs were opened in this run, by whom, and in which epoch.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use strandline_model::{LeaderEpoch, PartitionId};

use crate::live::LiveLog;

/// What is known of a log that was opened in this run.
#[derive(Debug)]
struct Claim {
    epoch: LeaderEpoch,
    /// The next opener must raise the epoch: an append failed, or somebody was fenced.
    must_raise: bool,
    live: Weak<LiveLog>,
}

/// What an opener has to know of those before it in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) epoch: LeaderEpoch,
    pub(crate) must_raise: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Registry {
    claims: Mutex<HashMap<PartitionId, Claim>>,
}

impl Registry {
    /// The log if it is open, or was and is still being written.
    pub(crate) fn live(&self, id: PartitionId) -> Option<Arc<LiveLog>> {
        self.claims.lock().get(&id).and_then(|claim| claim.live.upgrade())
    }

    /// All logs that are open, in order.
    pub(crate) fn all_live(&self) -> Vec<Arc<LiveLog>> {
        let mut live: Vec<_> =
            self.claims.lock().values().filter_map(|claim| claim.live.upgrade()).collect();
        live.sort_unstable_by_key(|log| log.id);
        live
    }

    pub(crate) fn earlier(&self, id: PartitionId) -> Option<Earlier> {
        let claims = self.claims.lock();
        claims.get(&id).map(|claim| Earlier { epoch: claim.epoch, must_raise: claim.must_raise })
    }

    pub(crate) fn claim(&self, log: &Arc<LiveLog>) {
        let claim = Claim { epoch: log.epoch, must_raise: false, live: Arc::downgrade(log) };
        let replaced = self.claims.lock().insert(log.id, claim);
        drop(replaced);
    }

    /// An append of the log failed, or a later opener fences it.
    pub(crate) fn note_broken(&self, log: &LiveLog) {
        let mut claims = self.claims.lock();
        if let Some(claim) = claims.get_mut(&log.id)
            && claim.epoch == log.epoch
        {
            claim.must_raise = true;
        }
    }

    /// The log is removed: nothing of it is remembered.
    pub(crate) fn forget(&self, id: PartitionId) {
        let removed = self.claims.lock().remove(&id);
        drop(removed);
    }

    /// Lets the memory of a closed handle go.
    pub(crate) fn release(&self, log: &LiveLog) {
        let mut claims = self.claims.lock();
        if let Some(claim) = claims.get_mut(&log.id)
            && claim.live.as_ptr() == std::ptr::from_ref(log)
        {
            claim.live = Weak::new();
        }
    }
}

impl Drop for LiveLog {
    fn drop(&mut self) {
        self.registry.release(self);
    }
}
