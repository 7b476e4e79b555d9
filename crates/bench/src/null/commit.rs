//! Group commit: one sync at a time; the next begins with everything that arrived meanwhile.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::log::Partition;

/// From this many dirty files on, one `syncfs` is cheaper than an `fdatasync` of each.
const SYNCFS_FROM_FILES: usize = 8;

/// Syncs partitions for all connections together.
#[derive(Debug, Default)]
pub(super) struct Committer {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    syncing: bool,
    asked: u64,
    synced: u64,
    dirty: Vec<Arc<Partition>>,
}

impl Committer {
    /// Returns when everything that was written to `partitions` before the call is on disk.
    ///
    /// Whoever finds nobody syncing syncs for all that have asked so far; the others wait.
    pub(super) fn commit(&self, partitions: &[Arc<Partition>]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.dirty.extend_from_slice(partitions);
        state.asked += 1;
        let ticket = state.asked;
        while state.synced < ticket {
            if state.syncing {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.syncing = true;
            let upto = state.asked;
            let dirty = std::mem::take(&mut state.dirty);
            drop(state);
            // A reference that cannot sync has nothing to say: the process ends, so does the run.
            sync(dirty).unwrap_or_else(|error| panic!("sync the partitions. error=`{error}`"));
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.syncing = false;
            state.synced = upto;
            self.done.notify_all();
        }
    }
}

fn sync(mut dirty: Vec<Arc<Partition>>) -> io::Result<()> {
    dirty.sort_by_key(Arc::as_ptr);
    dirty.dedup_by_key(|partition| Arc::as_ptr(partition));
    let marks: Vec<_> = dirty.iter().map(|partition| partition.written()).collect();
    match dirty.as_slice() {
        many if many.len() >= SYNCFS_FROM_FILES => rustix::fs::syncfs(&many[0].file)?,
        few => few.iter().try_for_each(|partition| partition.file.sync_data())?,
    }
    for (partition, mark) in dirty.iter().zip(marks) {
        partition.publish(mark);
    }
    Ok(())
}
