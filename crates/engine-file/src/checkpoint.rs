//! Checkpoints: what lets the journal's space be used again.
//!
//! The commit thread takes the state between two groups ([`Frozen`]); this thread makes it durable
//! while appends go on; the commit thread then gives the space up ([`Outcome`]).

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use strandline_storage::{Completion, ErrorKind, StorageError, Ticket};

use crate::engine::Shared;
use crate::journal::GroupSequence;
use crate::queue::{Control, Queue, StopMark};
use crate::rows::RowMap;
use crate::segment::{SegmentLog, SyncWork};
use crate::snapshot::{self, SnapshotHead};

/// How long a failed checkpoint is not tried again.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// The state of the engine between two groups.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) head: SnapshotHead,
    pub(crate) rows: Arc<RowMap>,
    /// Segments with bytes of the groups up to the head's sequence.
    pub(crate) work: SyncWork,
    /// Logs whose indexes grew.
    pub(crate) logs: Vec<Arc<SegmentLog>>,
}

/// How a checkpoint ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) sequence: GroupSequence,
    pub(crate) mark: StopMark,
    pub(crate) result: Result<(), CheckpointFailure>,
    /// Who waits for it.
    pub(crate) waiting: Vec<Completion>,
}

/// Why there is no new snapshot. The journal keeps everything since the last one.
#[derive(Debug)]
pub(crate) enum CheckpointFailure {
    /// Segments, or their names, could not be synced, and no copies take their place: what they hold may
    /// be gone, however well it reads.
    Unsound(StorageError),
    /// A later one may come to its end: the snapshot could not be written, or there is no room.
    Passing(StorageError),
}

impl Frozen {
    /// Makes everything durable. Blocks.
    pub(crate) fn run(self, shared: &Shared) -> Result<(), CheckpointFailure> {
        for log in &self.logs {
            log.save_index();
        }
        // A stop holds up nobody, and somebody waits for its end.
        let failures = if self.head.clean { self.work.run_at_once(|| {}) } else { self.work.run() };
        shared.replace_unsound(&failures)?;
        snapshot::write(&*shared.disk, &self.head, &self.rows)
            .map_err(|error| CheckpointFailure::Passing(StorageError::io("write snapshot", error)))
    }
}

/// Asks for checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    wanted: Option<StopMark>,
    waiting: Vec<Completion>,
    stopping: bool,
    /// The last one failed: the next one waits a little.
    not_before: Option<Instant>,
}

impl Checkpoints {
    /// A checkpoint is to begin soon.
    pub(crate) fn request(&self) {
        let mut state = self.state.lock();
        if state.wanted.is_none() {
            state.wanted = Some(StopMark::Running);
            self.work.notify_one();
        }
    }

    /// Resolves when a checkpoint that begins after this call is durable.
    pub(crate) fn done(&self, mark: StopMark) -> Ticket {
        let (completion, ticket) = Ticket::pair();
        let mut state = self.state.lock();
        if state.stopping {
            return Ticket::settled(Err(stopped()));
        }
        state.waiting.push(completion);
        if mark == StopMark::Clean || state.wanted.is_none() {
            state.wanted = Some(mark);
        }
        self.work.notify_one();
        ticket
    }

    /// The last checkpoint failed: its cause is given a moment to pass.
    pub(crate) fn note_failure(&self) {
        self.state.lock().not_before = Instant::now().checked_add(PAUSE_AFTER_FAILURE);
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stopping = true;
        self.work.notify_one();
    }

    /// The checkpoint thread: has `make_durable` [run](Frozen::run) what is frozen, for each that is asked
    /// for. Runs until it is stopped or the commit thread is gone.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        make_durable: impl Fn(Frozen) -> Result<(), CheckpointFailure>,
    ) {
        let _ended = Ended { checkpoints: self, queue };
        while let Some((mark, waiting)) = self.next() {
            let (sender, frozen) = mpsc::sync_channel(1);
            queue.control(Control::Freeze(mark, sender));
            let Ok(frozen) = frozen.recv() else { break };
            let sequence = frozen.head.sequence;
            let result = make_durable(frozen);
            // The failed segments count as clean from now on: a later snapshot would believe them.
            let is_last = matches!(result, Err(CheckpointFailure::Unsound(_)));
            queue.control(Control::Finish(Outcome { sequence, mark, result, waiting }));
            if is_last {
                break;
            }
        }
    }

    fn next(&self) -> Option<(StopMark, Vec<Completion>)> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            match (state.wanted, state.not_before) {
                (None, _) => self.work.wait(&mut state),
                (Some(StopMark::Running), Some(at)) if Instant::now() < at => {
                    // However it ends, all is looked at again.
                    let _timed_out = self.work.wait_until(&mut state, at);
                }
                (Some(mark), _) => {
                    state.wanted = None;
                    state.not_before = None;
                    return Some((mark, std::mem::take(&mut state.waiting)));
                }
            }
        }
    }
}

/// Tells whoever waits when the thread ends, even by a panic.
struct Ended<'a> {
    checkpoints: &'a Checkpoints,
    queue: &'a Queue,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.checkpoints.state.lock();
        state.stopping = true;
        let abandoned = std::mem::take(&mut state.waiting);
        drop(state);
        for completion in abandoned {
            completion.settle(Err(stopped()));
        }
        if std::thread::panicking() {
            // Without checkpoints the journal fills up, and what heals waits for one for ever.
            let message = "checkpoint thread of the file engine panicked";
            self.queue.close(StorageError::new(ErrorKind::Closed, message));
            self.queue.stop();
        }
    }
}

fn stopped() -> StorageError {
    StorageError::new(ErrorKind::Closed, "file engine is stopped")
}
