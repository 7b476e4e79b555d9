//! An open log: what its handle, its readers and the commit thread share.
//!
//! # Invariants
//! - `log_start <= durable_end <= written_end`. Each only rises; a reader that takes them in this
//!   order sees them so.
//! - `written_end` and the fate change only under the queue's lock, so nothing is queued behind a
//!   death, and appends are queued in offset order.
//! - What `changed` says was published: durable as the log's settings mean it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use strandline_model::{LeaderEpoch, Offset, PartitionId};
use strandline_records::SealedBatches;
use strandline_storage::{
    Completion, Durability, ErrorKind, LogBounds, LogListener, LogSettings, StorageError, Ticket,
};

use crate::registry::Registry;
use crate::segment::{Placement, SegmentFacts, SegmentLog};
use crate::tables::EpochRow;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct LiveLog {
    pub(crate) id: PartitionId,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) segments: Arc<SegmentLog>,
    pub(crate) listener: Arc<dyn LogListener>,
    /// Told when the last reference goes.
    pub(crate) registry: Arc<Registry>,
    durability: Mutex<Durability>,
    log_start: AtomicI64,
    durable_end: AtomicI64,
    written_end: AtomicI64,
    fate: OnceLock<StorageError>,
    /// The opener has its handle.
    is_held: AtomicBool,
    /// A ticket of [`durable`](Self::durable) waits.
    has_waiting: AtomicBool,
    waiting: Mutex<Vec<(Offset, Completion)>>,
    /// Touched by the commit thread, and by whoever retires the log.
    pub(crate) commit: Mutex<CommitSide>,
}

/// What the commit thread keeps of a log.
#[derive(Debug)]
pub(crate) struct CommitSide {
    /// The epoch's row, until it is journaled before the first append.
    pub(crate) epoch_row: Option<EpochRow>,
    /// Published facts of the newest segment.
    pub(crate) active: Option<SegmentFacts>,
    /// Published facts of segments that differ from the rows, oldest first.
    pub(crate) changed: Vec<SegmentFacts>,
    /// The place in which the commit thread remembers that something was published since the last
    /// checkpoint; `None` while nothing was.
    pub(crate) dirty: Option<u64>,
    /// An append failed: what follows it fails too.
    pub(crate) broken: Option<StorageError>,
}

/// What a log is opened with.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) id: PartitionId,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) epoch_row: Option<EpochRow>,
    pub(crate) segments: Arc<SegmentLog>,
    /// The newest segment.
    pub(crate) active: Option<SegmentFacts>,
    pub(crate) log_start: Offset,
    pub(crate) end: Offset,
    pub(crate) durability: Durability,
    pub(crate) listener: Arc<dyn LogListener>,
    pub(crate) registry: Arc<Registry>,
}

impl LiveLog {
    pub(crate) fn new(opening: Opening) -> Self {
        let commit = CommitSide {
            epoch_row: opening.epoch_row,
            active: opening.active,
            changed: Vec::new(),
            dirty: None,
            broken: None,
        };
        Self {
            id: opening.id,
            epoch: opening.epoch,
            segments: opening.segments,
            listener: opening.listener,
            registry: opening.registry,
            durability: Mutex::new(opening.durability),
            log_start: AtomicI64::new(opening.log_start.get()),
            durable_end: AtomicI64::new(opening.end.get()),
            written_end: AtomicI64::new(opening.end.get()),
            fate: OnceLock::new(),
            is_held: AtomicBool::new(true),
            has_waiting: AtomicBool::new(false),
            waiting: Mutex::new(Vec::new()),
            commit: Mutex::new(commit),
        }
    }

    pub(crate) fn bounds(&self) -> LogBounds {
        let log_start = self.log_start();
        let durable_end = self.durable_end();
        LogBounds { log_start, durable_end, written_end: self.written_end() }
    }

    pub(crate) fn log_start(&self) -> Offset {
        Offset::new(self.log_start.load(Ordering::Acquire))
    }

    pub(crate) fn durable_end(&self) -> Offset {
        Offset::new(self.durable_end.load(Ordering::Acquire))
    }

    pub(crate) fn written_end(&self) -> Offset {
        Offset::new(self.written_end.load(Ordering::Acquire))
    }

    /// Under the queue's lock only.
    pub(crate) fn set_written_end(&self, end: Offset) {
        self.written_end.store(end.get(), Ordering::Release);
    }

    /// By the commit thread only.
    pub(crate) fn raise_log_start(&self, log_start: Offset) {
        self.log_start.fetch_max(log_start.get(), Ordering::AcqRel);
    }

    /// By the commit thread only. Returns the tickets that waited for it, to be settled after the
    /// listener heard of it.
    #[must_use]
    pub(crate) fn raise_durable_end(&self, end: Offset) -> Vec<Completion> {
        self.durable_end.store(end.get(), Ordering::SeqCst);
        if !self.has_waiting.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut waiting = self.waiting.lock();
        let reached = waiting.extract_if(.., |(at, _)| *at <= end).map(|(_, done)| done).collect();
        self.has_waiting.store(!waiting.is_empty(), Ordering::SeqCst);
        reached
    }

    /// A ticket for everything before `end`.
    pub(crate) fn durable(&self, end: Offset) -> Ticket {
        if end <= self.durable_end() {
            return Ticket::settled(Ok(()));
        }
        let mut waiting = self.waiting.lock();
        // Before the end is looked at again: whoever raises it afterwards sees the flag.
        self.has_waiting.store(true, Ordering::SeqCst);
        if let Some(error) = self.fate.get() {
            return Ticket::settled(Err(error.clone()));
        }
        if end.get() <= self.durable_end.load(Ordering::SeqCst) {
            return Ticket::settled(Ok(()));
        }
        assert!(end <= self.written_end(), "nobody waits for what was never written");
        let (completion, ticket) = Ticket::pair();
        waiting.push((end, completion));
        ticket
    }

    pub(crate) fn configure(&self, settings: LogSettings) {
        *self.durability.lock() = settings.durability;
        self.segments.configure(settings);
    }

    pub(crate) fn durability(&self) -> Durability {
        *self.durability.lock()
    }

    /// The opener let go of its handle.
    pub(crate) fn let_go(&self) {
        self.is_held.store(false, Ordering::Release);
    }

    /// Whether the commit thread keeps the log until the next checkpoint.
    pub(crate) fn is_dirty(&self) -> bool {
        self.commit.lock().dirty.is_some()
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// Fails when the handle is dead, with what its calls answer.
    pub(crate) fn check_alive(&self) -> Result<(), StorageError> {
        self.fate.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Ends the handle: its calls answer `answer` from now on. Under the queue's lock only. False
    /// when it was dead already.
    pub(crate) fn set_fate(&self, answer: StorageError) -> bool {
        self.fate.set(answer).is_ok()
    }

    /// The tickets of [`durable`](Self::durable) that will not be reached any more.
    #[must_use]
    pub(crate) fn take_waiting(&self) -> Vec<Completion> {
        let mut waiting = self.waiting.lock();
        waiting.drain(..).map(|(_, completion)| completion).collect()
    }
}

impl CommitSide {
    /// Notes that `batches` were published where they were placed.
    pub(crate) fn note(&mut self, place: Placement, batches: &SealedBatches) {
        let mut facts = match self.active {
            Some(active) if active.base_offset == place.segment => active,
            _ => SegmentFacts::begun_by(batches),
        };
        facts.add(batches);
        self.active = Some(facts);
        match self.changed.last_mut() {
            Some(last) if last.base_offset == place.segment => *last = facts,
            _ => self.changed.push(facts),
        }
    }
}

/// What the calls of a handle answer once `error` has happened to it.
pub(crate) fn answer_after(id: PartitionId, error: &StorageError) -> StorageError {
    if error.kind() == ErrorKind::Fenced {
        return error.clone();
    }
    let message = format!("log failed before and must be opened again. partition=`{id}`");
    StorageError::new(ErrorKind::Closed, message).caused_by(error.clone())
}
