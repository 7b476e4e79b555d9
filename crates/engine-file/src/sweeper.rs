//! A thread that removes the files of dropped segments, in steps that never stall the device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use strandline_model::{ByteCount, PartitionId};
use strandline_storage::Removal;

use crate::segment::SegmentLog;

/// Bytes removed from a log before the next one has its turn.
const TURN: ByteCount = ByteCount::mib(64);
/// How long a segment in use is left alone before it is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a log is left alone of which a segment could not be removed.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);

/// Where logs are handed to the thread.
#[derive(Debug)]
pub(crate) struct Sweeper(ToSweep);

/// What is to be swept, as the thread sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToSweep(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    logs: Logs,
    is_stopped: bool,
}

/// By partition and address, so that each is there once: no more than there are open logs, and of a
/// log that was opened anew the old life too.
type Logs = BTreeMap<(PartitionId, usize), Arc<SegmentLog>>;

impl Sweeper {
    pub(crate) fn new() -> (Self, ToSweep) {
        let to_sweep = ToSweep::default();
        (Self(to_sweep.clone()), to_sweep)
    }

    pub(crate) fn sweep(&self, log: &Arc<SegmentLog>) {
        let queue = &self.0.0;
        let mut waiting = queue.waiting.lock();
        if !waiting.is_stopped {
            waiting.logs.insert((log.id(), Arc::as_ptr(log).addr()), Arc::clone(log));
            queue.changed.notify_one();
        }
    }

    /// Ends the thread after the turn that it is in. What is not removed then is found when its log is
    /// opened again.
    pub(crate) fn stop(&self) {
        let queue = &self.0.0;
        let logs = {
            let mut waiting = queue.waiting.lock();
            waiting.is_stopped = true;
            std::mem::take(&mut waiting.logs)
        };
        queue.changed.notify_one();
        // After the lock: the last reference to a log may go here.
        drop(logs);
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ToSweep {
    fn is_stopped(&self) -> bool {
        self.0.waiting.lock().is_stopped
    }

    /// What was handed over; waits for it, but not longer than `pause`. `None` when it is over.
    fn next(&self, pause: Option<Duration>) -> Option<Logs> {
        let mut waiting = self.0.waiting.lock();
        while waiting.logs.is_empty() && !waiting.is_stopped {
            match pause {
                None => self.0.changed.wait(&mut waiting),
                Some(pause) => {
                    if self.0.changed.wait_for(&mut waiting, pause).timed_out() {
                        break;
                    }
                }
            }
        }
        (!waiting.is_stopped).then(|| std::mem::take(&mut waiting.logs))
    }
}

/// The thread. Logs whose segments are in use, or could not be removed, wait in a list of its own.
pub(crate) fn run(to_sweep: &ToSweep) {
    let mut unfinished = Logs::new();
    let mut failed_at = BTreeMap::new();
    while let Some(logs) = to_sweep.next((!unfinished.is_empty()).then_some(PAUSE)) {
        unfinished.extend(logs);
        unfinished.retain(|key, log| {
            if to_sweep.is_stopped() {
                return false;
            }
            // A log that nobody has open any more is swept when it is opened again.
            let is_open = Arc::strong_count(log) > 1;
            if failed_at.get(key).is_some_and(|at: &Instant| at.elapsed() < FAILURE_PAUSE) {
                return is_open;
            }
            match log.remove_dropped(TURN) {
                Ok(Removal::Done) => false,
                Ok(Removal::Remaining(_)) => is_open,
                Err(error) => {
                    tracing::warn!(%error, log = %log.id(), "dropped segment stays, and is tried again");
                    failed_at.insert(*key, Instant::now());
                    is_open
                }
            }
        });
        failed_at.retain(|key, _| unfinished.contains_key(key));
    }
}
