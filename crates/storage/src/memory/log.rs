//! One log in memory, and the handle of its opener.

use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_records::SealedBatches;
use tokio::sync::mpsc::error::TrySendError;

use super::Shared;
use super::chunk::Chunks;
use super::rewrite::{MemoryRewrite, rewritable_end};
use super::settle::Settlement;
use super::space::Purpose;
use crate::{
    AppendError, BatchBytes, BatchInfo, BatchPiece, BoxFuture, ChunkId, ChunkInfo, ChunkRewrite,
    CommitLog, Compacted, Completion, ErrorKind, LogBounds, LogListener, LogSettings, Minimum,
    ReadError, ReadLimit, StorageError, Ticket,
};

/// Batches smaller than this are copied together when they are read: a socket takes a few large
/// pieces sooner than many small ones.
const PIECE_BYTES_MIN: usize = 4096;

/// A log, whoever holds it.
pub(super) struct Log {
    pub(super) id: PartitionId,
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub(super) bounds: LogBounds,
    pub(super) chunks: Chunks,
    pub(super) saved: Option<(Offset, Bytes)>,
    pub(super) compacted: Compacted,
    /// Somebody writes a chunk that is to take the place of others.
    pub(super) is_rewriting: bool,
    /// The epoch of the last opener.
    pub(super) epoch: LeaderEpoch,
    /// The last opener, while it holds its handle.
    pub(super) opener: Option<Opener>,
    /// The last opener was killed without closing. Only tests kill.
    pub(super) unclean: bool,
    /// Removal has begun: nobody opens, reads or writes any more.
    pub(super) removing: bool,
    /// Since when nobody opens, reads or writes it.
    pub(super) quarantined: Option<Timestamp>,
    /// Tickets of [`CommitLog::durable`] with the end that each waits for.
    pub(super) waiting: Vec<(Offset, Completion)>,
}

/// What is known of an opener.
pub(super) struct Opener {
    pub(super) listener: Arc<dyn LogListener>,
    pub(super) settings: LogSettings,
}

/// The handle of an opener.
pub(super) struct MemoryLog {
    pub(super) shared: Arc<Shared>,
    pub(super) log: Arc<Log>,
    pub(super) epoch: LeaderEpoch,
}

impl Log {
    pub(super) fn new(id: PartitionId, first: Offset) -> Self {
        Self { id, state: Mutex::new(State::empty(first)) }
    }

    /// Raises the durable end to `end`, which an opener of `epoch` appended, and tells who waits.
    pub(super) fn become_durable(
        &self,
        epoch: LeaderEpoch,
        end: Offset,
    ) -> Result<(), StorageError> {
        let (listener, reached) = {
            let mut state = self.state.lock();
            state.check_kept(self.id)?;
            // Not above it when the log was opened again in the meantime.
            let rose = end > state.bounds.durable_end;
            state.bounds.durable_end = state.bounds.durable_end.max(end);
            let opener = state.opener.as_ref().filter(|_| rose && state.epoch == epoch);
            let listener = opener.map(|opener| Arc::clone(&opener.listener));
            (listener, state.take_reached())
        };
        if let Some(listener) = listener {
            listener.durable_end_moved(end);
        }
        for completion in reached {
            completion.settle(Ok(()));
        }
        Ok(())
    }
}

impl State {
    pub(super) fn empty(first: Offset) -> Self {
        Self {
            bounds: LogBounds { log_start: first, durable_end: first, written_end: first },
            chunks: Chunks::default(),
            saved: None,
            compacted: Compacted::default(),
            is_rewriting: false,
            epoch: LeaderEpoch::ZERO,
            opener: None,
            unclean: false,
            removing: false,
            quarantined: None,
            waiting: Vec::new(),
        }
    }

    /// Everything that is held, with its overhead.
    pub(super) fn held(&self) -> u64 {
        self.chunks.held() + self.saved.as_ref().map_or(0, |(_, state)| state.len() as u64)
    }

    /// Whoever opened the log in `epoch` still owns it.
    pub(super) fn check_owner(&self, epoch: LeaderEpoch) -> Result<(), StorageError> {
        if self.epoch == epoch {
            return Ok(());
        }
        let owner = self.epoch;
        let message = format!("a later opener owns the log. epoch=`{epoch}`, owner=`{owner}`");
        Err(StorageError::new(ErrorKind::Fenced, message))
    }

    pub(super) fn check_kept(&self, id: PartitionId) -> Result<(), StorageError> {
        self.withdrawn(id).map_or(Ok(()), |why| Err(StorageError::new(ErrorKind::Closed, why)))
    }

    /// Why nobody may have the log open, if so.
    pub(super) fn withdrawn(&self, id: PartitionId) -> Option<String> {
        if self.removing {
            return Some(format!("log is being removed. partition=`{id}`"));
        }
        self.quarantined.map(|_| format!("log is in quarantine. partition=`{id}`"))
    }

    /// Takes the completions whose end is durable.
    pub(super) fn take_reached(&mut self) -> Vec<Completion> {
        let durable_end = self.bounds.durable_end;
        self.waiting.extract_if(.., |(end, _)| *end <= durable_end).map(|(_, done)| done).collect()
    }

    /// An offset that a caller got from somewhere else than the log.
    fn check_durable(&self, what: &str, offset: Offset) -> Result<(), StorageError> {
        let durable_end = self.bounds.durable_end;
        if offset <= durable_end {
            return Ok(());
        }
        let message = format!(
            "{what} lies past the durable end. {what}=`{offset}`, durable_end=`{durable_end}`"
        );
        Err(StorageError::new(ErrorKind::Invalid, message))
    }
}

impl MemoryLog {
    /// The handle may be read from.
    fn check_readable(&self, state: &State) -> Result<(), StorageError> {
        self.shared.check_open()?;
        state.check_kept(self.log.id)
    }

    /// The handle may change the log.
    fn check_writable(&self, state: &State) -> Result<(), StorageError> {
        self.check_readable(state)?;
        state.check_owner(self.epoch)
    }

    fn read_now(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> Result<BatchBytes, ReadError> {
        let state = self.log.state.lock();
        self.check_readable(&state)?;
        let bounds = state.bounds;
        if from < bounds.log_start || from > bounds.durable_end {
            return Err(ReadError::OutOfRange(bounds));
        }
        let upto = upto.min(bounds.durable_end);
        if from >= upto {
            return Ok(BatchBytes::empty());
        }
        let mut pieces = Pieces::default();
        let mut left = limit.bytes.get();
        let mut owed = limit.minimum == Minimum::OneBatch;
        for batch in state.chunks.batches_from(from).take_while(|batch| batch.base_offset < upto) {
            let size = batch.bytes.len() as u64;
            if size > left && !owed {
                break;
            }
            owed = false;
            left = left.saturating_sub(size);
            pieces.push(&batch.bytes);
        }
        Ok(pieces.finish())
    }

    fn trim_now(&self, log_start: Offset) -> Result<LogBounds, StorageError> {
        let mut state = self.log.state.lock();
        self.check_writable(&state)?;
        state.check_durable("log_start", log_start)?;
        if log_start > state.bounds.log_start {
            state.bounds.log_start = log_start;
            self.shared.budget.give_back(state.chunks.drop_below(log_start));
        }
        Ok(state.bounds)
    }

    fn save_now(&self, at: Offset, bytes: Bytes) -> Result<(), StorageError> {
        let mut state = self.log.state.lock();
        self.check_writable(&state)?;
        state.check_durable("at", at)?;
        self.shared.budget.take(bytes.len() as u64, Purpose::Rows)?;
        if let Some((_, replaced)) = state.saved.replace((at, bytes)) {
            self.shared.budget.give_back(replaced.len() as u64);
        }
        Ok(())
    }
}

impl CommitLog for MemoryLog {
    fn bounds(&self) -> LogBounds {
        self.log.state.lock().bounds
    }

    fn submit(&self, at: Offset, batches: SealedBatches) -> Result<Ticket, AppendError> {
        // Before anything is written, since a refused append must not have been.
        let place = self.shared.settlements.try_reserve().map_err(|error| match error {
            TrySendError::Full(()) => AppendError::Busy,
            TrySendError::Closed(()) => AppendError::Refused(StorageError::new(
                ErrorKind::Closed,
                "task of the memory engine is gone",
            )),
        })?;
        let mut state = self.log.state.lock();
        self.check_writable(&state)?;
        let written_end = state.bounds.written_end;
        if at != written_end {
            return Err(AppendError::Moved { written_end });
        }
        assert_eq!(batches.base_offset(), at, "batches are sealed with the offset they go to");
        self.shared.budget.take(Chunks::cost(&batches), Purpose::Batches)?;
        let State { chunks, opener, .. } = &mut *state;
        let opener = opener.as_ref().expect("an opener stays known while it holds its handle");
        chunks.append(&batches, &opener.settings);
        let end = batches.next_offset();
        state.bounds.written_end = end;
        let (completion, ticket) = Ticket::pair();
        let log = Arc::clone(&self.log);
        // Under the lock: appends are settled in the order in which they were written.
        place.send(Settlement::Append { log, epoch: self.epoch, end, completion });
        Ok(ticket)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // The place is given up at once: whoever asked competes for it with all others.
            // An error says that the engine's task is gone, which the next submit reports.
            drop(self.shared.settlements.reserve().await);
        })
    }

    fn durable(&self, end: Offset) -> Ticket {
        let mut state = self.log.state.lock();
        if let Err(error) = self.check_readable(&state) {
            return Ticket::settled(Err(error));
        }
        if end <= state.bounds.durable_end {
            return Ticket::settled(Ok(()));
        }
        assert!(end <= state.bounds.written_end, "nobody waits for what was never written");
        let (completion, ticket) = Ticket::pair();
        state.waiting.push((end, completion));
        ticket
    }

    fn read(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<BatchBytes, ReadError>> {
        Box::pin(async move { self.read_now(from, upto, limit) })
    }

    fn find_timestamp(&self, at: Timestamp) -> BoxFuture<'_, Result<Option<BatchInfo>, ReadError>> {
        Box::pin(async move {
            let state = self.log.state.lock();
            self.check_readable(&state)?;
            let LogBounds { log_start, durable_end, .. } = state.bounds;
            Ok(state.chunks.find_timestamp(at, log_start, durable_end))
        })
    }

    fn roll(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let mut state = self.log.state.lock();
            self.check_writable(&state)?;
            state.chunks.seal();
            Ok(())
        })
    }

    fn trim(&self, log_start: Offset) -> BoxFuture<'_, Result<LogBounds, StorageError>> {
        Box::pin(async move { self.trim_now(log_start) })
    }

    fn chunks(&self) -> Vec<ChunkInfo> {
        self.log.state.lock().chunks.infos()
    }

    fn configure(&self, settings: LogSettings) {
        let mut state = self.log.state.lock();
        if state.epoch == self.epoch
            && let Some(opener) = &mut state.opener
        {
            opener.settings = settings;
        }
    }

    fn save_state(&self, at: Offset, state: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move { self.save_now(at, state) })
    }

    fn load_state(&self) -> BoxFuture<'_, Result<Option<(Offset, Bytes)>, StorageError>> {
        Box::pin(async move {
            let state = self.log.state.lock();
            self.check_readable(&state)?;
            Ok(state.saved.clone())
        })
    }

    fn rewrite(
        &self,
        first: ChunkId,
        last: ChunkId,
    ) -> BoxFuture<'_, Result<Box<dyn ChunkRewrite>, StorageError>> {
        Box::pin(async move {
            let end = {
                let mut state = self.log.state.lock();
                self.check_writable(&state)?;
                let end = rewritable_end(&state, first, last)?;
                if std::mem::replace(&mut state.is_rewriting, true) {
                    let message = "chunks of the log are being rewritten";
                    return Err(StorageError::new(ErrorKind::Unavailable, message));
                }
                end
            };
            let (log, shared) = (Arc::clone(&self.log), Arc::clone(&self.shared));
            let rewrite = MemoryRewrite::new(shared, log, self.epoch, (first, last), end);
            Ok(Box::new(rewrite) as Box<dyn ChunkRewrite>)
        })
    }

    fn compacted(&self) -> Compacted {
        self.log.state.lock().compacted
    }

    fn note_compacted(&self, compacted: Compacted) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let mut state = self.log.state.lock();
            self.check_writable(&state)?;
            state.check_durable("clean_end", compacted.clean_end)?;
            state.compacted = compacted;
            Ok(())
        })
    }
}

/// An opener that lets go of its handle stops cleanly: memory has nothing to lose.
impl Drop for MemoryLog {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        let opener = if state.epoch == self.epoch { state.opener.take() } else { None };
        drop(state);
        // After the lock: what the listener owns may come back to this log.
        drop(opener);
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog")
            .field("id", &self.log.id)
            .field("epoch", &self.epoch)
            .field("bounds", &self.bounds())
            .finish_non_exhaustive()
    }
}

/// Pieces of a read, small batches copied together.
#[derive(Default)]
struct Pieces {
    done: BatchBytes,
    small: BytesMut,
}

impl Pieces {
    fn push(&mut self, batch: &Bytes) {
        if batch.len() < PIECE_BYTES_MIN {
            self.small.extend_from_slice(batch);
        } else {
            self.flush();
            self.done.push(BatchPiece::Memory(batch.clone()));
        }
    }

    fn flush(&mut self) {
        self.done.push(BatchPiece::Memory(self.small.split().freeze()));
    }

    fn finish(mut self) -> BatchBytes {
        self.flush();
        self.done
    }
}

/// What a log gives back to the budget when it goes: how much, and how much is still there.
pub(super) struct Freed {
    pub(super) bytes: u64,
    pub(super) remaining: u64,
}

impl State {
    /// Drops the oldest batches, at least one and about `budget`, and the saved state with the last.
    pub(super) fn drop_oldest(&mut self, budget: ByteCount) -> Freed {
        let mut bytes = self.chunks.drop_oldest(budget);
        let remaining = self.chunks.held();
        if remaining == 0 {
            bytes += self.saved.take().map_or(0, |(_, state)| state.len() as u64);
        }
        Freed { bytes, remaining }
    }
}
