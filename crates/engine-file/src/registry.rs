//! Which logs were opened in this run, by whom, and in which epoch.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use strandline_model::{LeaderEpoch, Offset, PartitionId};
use strandline_records::BatchHeader;

use crate::live::LiveLog;

/// Epochs that are remembered of a log. Reached: the oldest is forgotten, and a segment with batches of
/// it can't be [told from an older one](Registry::epochs).
const EPOCHS_MAX: usize = 64;

/// What is known of a log that was opened in this run.
#[derive(Debug)]
struct Claim {
    epoch: LeaderEpoch,
    epochs: Epochs,
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

/// Where the epochs of a log began that were claimed in this run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epochs {
    /// Oldest first. Mostly one: its room is for as many as there are.
    starts: Vec<(LeaderEpoch, Offset)>,
    /// Some are forgotten.
    is_cut: bool,
}

impl Epochs {
    fn begin(&mut self, epoch: LeaderEpoch, at: Offset) {
        if self.starts.last().is_some_and(|last| last.0 == epoch) {
            return;
        }
        if self.starts.len() == EPOCHS_MAX {
            self.starts.remove(0);
            self.is_cut = true;
        }
        self.starts.reserve_exact(1);
        self.starts.push((epoch, at));
    }

    /// Whether a batch can be the one that was last written where it stands: what an earlier life of
    /// the log left there is of an older epoch.
    pub(crate) fn may_hold(&self, batch: &BatchHeader) -> bool {
        let begun = self.starts.iter().rev().find(|(_, at)| *at <= batch.base_offset);
        match begun {
            Some((epoch, _)) => batch.leader_epoch >= Some(*epoch),
            // Durable since before this run.
            None => !self.is_cut,
        }
    }
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
        let mut claims = self.claims.lock();
        let mut epochs =
            claims.get(&log.id).map_or_else(Epochs::default, |claim| claim.epochs.clone());
        epochs.begin(log.epoch, log.written_end());
        let (epoch, live) = (log.epoch, Arc::downgrade(log));
        let replaced = claims.insert(log.id, Claim { epoch, epochs, must_raise: false, live });
        drop(claims);
        drop(replaced);
    }

    /// The epochs of a log in this run.
    pub(crate) fn epochs(&self, id: PartitionId) -> Epochs {
        self.claims.lock().get(&id).map_or_else(Epochs::default, |claim| claim.epochs.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(at: i64, epoch: i32) -> BatchHeader {
        BatchHeader {
            size: 100,
            base_offset: Offset::new(at),
            next_offset: Offset::new(at + 1),
            max_timestamp: None,
            leader_epoch: Some(LeaderEpoch::new(epoch)),
        }
    }

    #[test]
    fn a_batch_of_an_older_epoch_does_not_stand_where_a_newer_one_began() {
        let mut epochs = Epochs::default();
        assert!(epochs.may_hold(&batch(0, 0)), "nothing was written in this run");
        for (epoch, at) in [(3, 10), (3, 15), (4, 20), (6, 20)] {
            epochs.begin(LeaderEpoch::new(epoch), Offset::new(at));
        }
        // (offset, epoch, whether it may stand there)
        for (at, epoch, may) in [
            (9, 0, true),
            (10, 2, false),
            (10, 3, true),
            (19, 3, true),
            (20, 3, false),
            (20, 5, false),
            (99, 6, true),
        ] {
            assert_eq!(epochs.may_hold(&batch(at, epoch)), may, "{epoch} at {at}");
        }
        for epoch in 0..EPOCHS_MAX {
            let epoch = 7 + i32::try_from(epoch).unwrap();
            epochs.begin(LeaderEpoch::new(epoch), Offset::new(100 + i64::from(epoch)));
        }
        assert!(!epochs.may_hold(&batch(20, 6)), "what is forgotten can't be told");
        assert!(epochs.may_hold(&batch(107, 7)));
    }
}
