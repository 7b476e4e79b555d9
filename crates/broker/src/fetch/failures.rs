//! Reads that failed: told of now and then, and kept for whoever asks about the storage.
//!
//! A client that can't read asks again at once, so each partition is told of once in a while only.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use strandline_model::PartitionId;

/// How long a partition is not told of again.
const TOLD_AGAIN_AFTER: Duration = Duration::from_mins(1);
/// Partitions that are remembered. Reached: others are told of, as often as they fail, not kept.
const PARTITIONS_MAX: usize = 1_000;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct ReadFailures {
    met: Mutex<BTreeMap<PartitionId, Met>>,
}

/// A partition that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadFailure {
    pub(crate) id: PartitionId,
    /// What the last reader met.
    pub(crate) what: String,
}

#[derive(Debug)]
struct Met {
    what: String,
    told_at: Duration,
    /// Somebody met it since the last [`ReadFailures::forget_old`].
    is_fresh: bool,
}

impl ReadFailures {
    /// Notes a failure, by a clock that never goes back. Whether it is to be told of.
    pub(crate) fn note(&self, id: PartitionId, what: &str, now: Duration) -> bool {
        let mut met = self.met.lock();
        if let Some(before) = met.get_mut(&id) {
            what.clone_into(&mut before.what);
            before.is_fresh = true;
            let is_due = now.saturating_sub(before.told_at) >= TOLD_AGAIN_AFTER;
            if is_due {
                before.told_at = now;
            }
            return is_due;
        }
        if met.len() < PARTITIONS_MAX {
            met.insert(id, Met { what: what.to_owned(), told_at: now, is_fresh: true });
        }
        true
    }

    /// What was met, in order.
    pub(crate) fn all(&self) -> Vec<ReadFailure> {
        let met = self.met.lock();
        met.iter().map(|(id, met)| ReadFailure { id: *id, what: met.what.clone() }).collect()
    }

    /// Forgets what nobody met since this was called last.
    pub(crate) fn forget_old(&self) {
        self.met.lock().retain(|_, met| std::mem::take(&mut met.is_fresh));
    }
}

#[cfg(test)]
mod tests {
    use strandline_model::{PartitionIndex, TopicId};

    use super::*;

    fn id(index: u32) -> PartitionId {
        PartitionId::new(TopicId::from_bytes([1; 16]), PartitionIndex::new(index))
    }

    #[test]
    fn a_failure_is_told_of_once_a_minute_and_kept_while_somebody_meets_it() {
        let failures = ReadFailures::default();
        let told: Vec<u64> = (0..150)
            .filter(|second| failures.note(id(1), "gone", Duration::from_secs(*second)))
            .collect();
        assert_eq!(told, [0, 60, 120]);
        assert!(failures.note(id(2), "gone", Duration::from_secs(1)), "another partition");
        failures.forget_old();
        failures.note(id(1), "elsewhere", Duration::from_secs(151));
        failures.forget_old();
        let left = [ReadFailure { id: id(1), what: "elsewhere".to_owned() }];
        assert_eq!(failures.all(), left);
        failures.forget_old();
        assert_eq!(failures.all(), []);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let failures = ReadFailures::default();
        for index in 0..2_000 {
            assert!(failures.note(id(index), "gone", Duration::ZERO));
        }
        assert_eq!(failures.all().len(), PARTITIONS_MAX);
    }
}
