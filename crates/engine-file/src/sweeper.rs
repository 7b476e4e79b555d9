//! A thread that removes the files of dropped segments, in steps that never stall the device.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use strandline_model::ByteCount;
use strandline_storage::Removal;

use crate::segment::SegmentLog;

/// Logs that may wait. Reached: a log is swept when it drops segments again, or is opened again.
const WAITING_MAX: usize = 1024;
/// Bytes removed from a log before the next one has its turn.
const TURN: ByteCount = ByteCount::mib(64);
/// How long a segment in use is left alone before it is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Where logs are handed to the thread. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sweeper(SyncSender<Arc<SegmentLog>>);

impl Sweeper {
    pub(crate) fn new() -> (Self, Receiver<Arc<SegmentLog>>) {
        let (sender, receiver) = mpsc::sync_channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    pub(crate) fn sweep(&self, log: &Arc<SegmentLog>) {
        // A full queue: see `WAITING_MAX`.
        drop(self.0.try_send(Arc::clone(log)));
    }
}

/// The thread. Logs whose segments are in use wait in a list of its own.
pub(crate) fn run(waiting: &Receiver<Arc<SegmentLog>>) {
    let mut unfinished: Vec<Arc<SegmentLog>> = Vec::new();
    loop {
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
        unfinished.retain(|log| match log.remove_dropped(TURN) {
            Ok(Removal::Done) => false,
            // A log that nobody has open any more is swept when it is opened again.
            Ok(Removal::Remaining(_)) => Arc::strong_count(log) > 1,
            Err(error) => {
                tracing::warn!(%error, log = %log.id(), "dropped segment stays");
                false
            }
        });
    }
}
