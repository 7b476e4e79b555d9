//! A thread that removes the files of dropped segments, in steps that never stall the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use parking_lot::Mutex;
use strandline_model::ByteCount;
use strandline_storage::Removal;

use crate::segment::SegmentLog;

/// Logs that may wait. Reached: a log is swept when it drops segments again, or is opened again.
const WAITING_MAX: usize = 1024;
/// Bytes removed from a log before the next one has its turn.
const TURN: ByteCount = ByteCount::mib(64);
/// How long a segment in use is left alone before it is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Where logs are handed to the thread.
#[derive(Debug)]
pub(crate) struct Sweeper {
    /// `None` once it is stopped.
    queue: Mutex<Option<SyncSender<Arc<SegmentLog>>>>,
    is_stopped: Arc<AtomicBool>,
}

/// The thread's end of it.
#[derive(Debug)]
pub(crate) struct ToSweep {
    queue: Receiver<Arc<SegmentLog>>,
    is_stopped: Arc<AtomicBool>,
}

impl Sweeper {
    pub(crate) fn new() -> (Self, ToSweep) {
        let (sender, queue) = mpsc::sync_channel(WAITING_MAX);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let to_sweep = ToSweep { queue, is_stopped: Arc::clone(&is_stopped) };
        (Self { queue: Mutex::new(Some(sender)), is_stopped }, to_sweep)
    }

    pub(crate) fn sweep(&self, log: &Arc<SegmentLog>) {
        if let Some(queue) = &*self.queue.lock() {
            // A full queue: see `WAITING_MAX`.
            drop(queue.try_send(Arc::clone(log)));
        }
    }

    /// Ends the thread after the turn that it is in. What is not removed then is found when its log is
    /// opened again.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        drop(self.queue.lock().take());
    }
}

/// The thread. Logs whose segments are in use wait in a list of its own.
pub(crate) fn run(to_sweep: &ToSweep) {
    let ToSweep { queue: waiting, is_stopped } = to_sweep;
    let mut unfinished: Vec<Arc<SegmentLog>> = Vec::new();
    while !is_stopped.load(Ordering::Relaxed) {
        let next = if unfinished.is_empty() {
            waiting.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        } else {
            waiting.recv_timeout(PAUSE)
        };
        match next {
            Ok(log) => {
                if !unfinished.iter().any(|other| Arc::ptr_eq(other, &log)) {
                    unfinished.push(log);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        unfinished.retain(|log| {
            !is_stopped.load(Ordering::Relaxed)
                && match log.remove_dropped(TURN) {
                    Ok(Removal::Done) => false,
                    // A log that nobody has open any more is swept when it is opened again.
                    Ok(Removal::Remaining(_)) => Arc::strong_count(log) > 1,
                    Err(error) => {
                        tracing::warn!(%error, log = %log.id(), "dropped segment stays");
                        false
                    }
                }
        });
    }
}
