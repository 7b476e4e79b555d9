//! A thread that removes the files of dropped segments, in steps that never stall the device.
//!
//! Logs that are open are handed over when they drop something. What a stop, a crash or the end of a
//! handle left is found by the thread itself: at start it looks through all logs, and what is not gone
//! when a log is closed it takes up from there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use strandline_model::{ByteCount, PartitionId};
use strandline_storage::{Removal, StorageError};

use crate::segment::SegmentLog;

/// Bytes removed from a log before the next one has its turn.
const TURN: ByteCount = ByteCount::mib(64);
/// The same of a log that is closed: nobody opens any meanwhile.
const CLOSED_TURN: ByteCount = ByteCount::mib(16);
/// Closed logs that are looked at before open ones have their turn.
const CLOSED_LOOKS: usize = 32;
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
    /// Bytes that closed logs are known to have left.
    left: Mutex<BTreeMap<PartitionId, u64>>,
}

#[derive(Debug, Default)]
struct Waiting {
    logs: Logs,
    is_stopped: bool,
}

/// By partition and address, so that each is there once: no more than there are open logs, and of a
/// log that was opened anew the old life too.
type Logs = BTreeMap<(PartitionId, usize), Arc<SegmentLog>>;

/// The logs that nobody has open, as the thread needs them.
pub(crate) trait ClosedLogs {
    /// All logs that have a folder.
    fn list(&self) -> Result<Vec<PartitionId>, StorageError>;

    /// Removes up to `budget` bytes of what the rows of a log do not name. Never waits for an opener.
    fn sweep(&self, id: PartitionId, budget: ByteCount) -> Result<Swept, StorageError>;
}

/// How sweeping a closed log went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swept {
    /// Nothing is left, or it is not for the sweeper to remove.
    Done,
    /// About so many bytes are left.
    Remaining(ByteCount),
    /// Somebody opens or removes a log now.
    Later,
}

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

    /// Bytes that closed logs are known to have left, of those that `counts` names.
    pub(crate) fn left_bytes(&self, counts: impl Fn(PartitionId) -> bool) -> u64 {
        let left = self.0.0.left.lock();
        left.iter().filter(|(id, _)| counts(**id)).map(|(_, bytes)| bytes).sum()
    }

    /// Ends the thread after the turn that it is in. What is not removed then is found by the next
    /// start.
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

    fn note_left(&self, id: PartitionId, bytes: ByteCount) {
        let mut left = self.0.left.lock();
        if bytes == ByteCount::ZERO {
            left.remove(&id);
        } else {
            left.insert(id, bytes.get());
        }
    }
}

/// The thread. Logs whose segments are in use, or could not be removed, wait in lists of its own.
pub(crate) fn run(to_sweep: &ToSweep, closed: &impl ClosedLogs) {
    let mut unfinished = Logs::new();
    let mut failed_at = BTreeMap::new();
    let mut closed_work = ClosedWork::begin(closed);
    loop {
        let pause = (!unfinished.is_empty()).then_some(PAUSE);
        let pause = [pause, closed_work.pause()].into_iter().flatten().min();
        let Some(logs) = to_sweep.next(pause) else { return };
        unfinished.extend(logs);
        unfinished.retain(|key, log| {
            if to_sweep.is_stopped() {
                return false;
            }
            let is_open = Arc::strong_count(log) > 1;
            let has_failed =
                failed_at.get(key).is_some_and(|at: &Instant| at.elapsed() < FAILURE_PAUSE);
            let removed = if is_open && !has_failed { log.remove_dropped(TURN) } else { REMAINS };
            if let Err(error) = &removed {
                tracing::warn!(%error, log = %log.id(), "dropped segment stays, and is tried again");
                failed_at.insert(*key, Instant::now());
            }
            let stays = !matches!(removed, Ok(Removal::Done));
            if stays && !is_open {
                closed_work.fresh.push_back(log.id());
            }
            stays && is_open
        });
        failed_at.retain(|key, _| unfinished.contains_key(key));
        closed_work.turn(to_sweep, closed);
    }
}

/// What is known of a log that has just been closed, or failed a moment ago.
const REMAINS: Result<Removal, StorageError> = Ok(Removal::Remaining(ByteCount::ZERO));

/// Closed logs that are to be looked at: each log of the start, and those closed since with something
/// left.
#[derive(Debug)]
struct ClosedWork {
    fresh: VecDeque<PartitionId>,
    /// Those with something left, and the moment before which they are left alone.
    again: BTreeMap<PartitionId, Instant>,
}

impl ClosedWork {
    fn begin(closed: &impl ClosedLogs) -> Self {
        let listed = closed.list().unwrap_or_else(|error| {
            tracing::warn!(%error, "logs can't be listed: what was dropped before stays until they are opened");
            Vec::new()
        });
        Self { fresh: listed.into(), again: BTreeMap::new() }
    }

    /// How long this may wait; `None` when there is nothing to do.
    fn pause(&self) -> Option<Duration> {
        if !self.fresh.is_empty() {
            return Some(Duration::ZERO);
        }
        let next = self.again.values().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Looks at a few.
    fn turn(&mut self, to_sweep: &ToSweep, closed: &impl ClosedLogs) {
        let now = Instant::now();
        let due = self.again.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id);
        let due: Vec<_> = due.take(CLOSED_LOOKS).collect();
        let fresh = self.fresh.len().min(CLOSED_LOOKS - due.len());
        for id in due.into_iter().chain(self.fresh.drain(..fresh)) {
            if to_sweep.is_stopped() {
                return;
            }
            self.again.remove(&id);
            let wait = match closed.sweep(id, CLOSED_TURN) {
                Ok(Swept::Done) => {
                    to_sweep.note_left(id, ByteCount::ZERO);
                    continue;
                }
                Ok(Swept::Remaining(bytes)) => {
                    to_sweep.note_left(id, bytes);
                    PAUSE
                }
                Ok(Swept::Later) => PAUSE,
                Err(error) => {
                    tracing::warn!(%error, log = %id, "dropped segment stays, and is tried again");
                    FAILURE_PAUSE
                }
            };
            self.again.insert(id, now + wait);
        }
    }
}
