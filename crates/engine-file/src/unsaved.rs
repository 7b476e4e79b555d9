//! Logs of which the memory has rows that no durable snapshot has: a start still brings some of their
//! batches back from the journal.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use strandline_model::PartitionId;

/// From the moment that facts of a log go into the rows until a snapshot with them is durable.
#[derive(Debug, Default)]
pub(crate) struct Unsaved {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Since rows were taken for a snapshot the last time.
    since: BTreeSet<PartitionId>,
    /// Those of the snapshot that is being written.
    saving: BTreeSet<PartitionId>,
}

impl Unsaved {
    /// Facts of the log's segments went into the rows.
    pub(crate) fn note(&self, id: PartitionId) {
        self.state.lock().since.insert(id);
    }

    /// The rows as they are now become a snapshot.
    pub(crate) fn begin_saving(&self) {
        let State { since, saving } = &mut *self.state.lock();
        saving.append(since);
    }

    /// That snapshot is durable, or there is none.
    pub(crate) fn end_saving(&self, is_durable: bool) {
        let State { since, saving } = &mut *self.state.lock();
        if is_durable {
            saving.clear();
        } else {
            since.append(saving);
        }
    }

    pub(crate) fn contains(&self, id: PartitionId) -> bool {
        let state = self.state.lock();
        state.since.contains(&id) || state.saving.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use strandline_storage::testkit::partition;

    use super::*;

    #[test]
    fn a_log_is_saved_by_the_snapshot_that_began_after_it_changed() {
        let unsaved = Unsaved::default();
        let holds = |expected: [bool; 2]| {
            assert_eq!([0, 1].map(|index| unsaved.contains(partition(index))), expected);
        };
        unsaved.note(partition(0));
        unsaved.begin_saving();
        unsaved.note(partition(1));
        holds([true, true]);
        unsaved.end_saving(false);
        holds([true, true]);
        unsaved.begin_saving();
        unsaved.note(partition(1));
        unsaved.end_saving(true);
        holds([false, true]);
        unsaved.begin_saving();
        unsaved.end_saving(true);
        holds([false, false]);
    }
}
