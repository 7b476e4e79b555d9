//! The handle of an opener.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{LeaderEpoch, Offset, Timestamp};
use strandline_records::SealedBatches;
use strandline_storage::{
    AppendError, BatchBytes, BatchInfo, BoxFuture, ChunkId, ChunkInfo, ChunkRewrite, CommitLog,
    Compacted, LogBounds, LogSettings, ReadError, ReadLimit, StorageError, Ticket,
};
use tokio::sync::oneshot;

use crate::engine::Shared;
use crate::error::closed;
use crate::queue::{Change, PendingAppend, PendingChange, Queue};
use crate::rewrite::PgRewrite;
use crate::sql::Query;
use crate::state::{Log, State};

/// See the [module](self). Dropping it ends the opener's claim; what it submitted goes on.
pub(crate) struct PgLog {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: Arc<Log>,
    pub(crate) lane: Arc<Queue>,
    pub(crate) log_id: i64,
    pub(crate) cache_id: i64,
    pub(crate) opening: u64,
    pub(crate) epoch: LeaderEpoch,
}

impl PgLog {
    /// The handle may be used.
    pub(crate) fn check(&self, state: &State) -> Result<(), StorageError> {
        self.shared.check_open()?;
        state.check_handle(self.log.id, self.opening)
    }

    /// Queues what `decide` decides on, under the log's lock, and waits until it is done.
    async fn change(
        &self,
        decide: impl FnOnce(&mut State) -> Result<Option<Change>, StorageError>,
    ) -> Result<(), StorageError> {
        let done = {
            let mut state = self.log.state.lock();
            self.check(&state)?;
            match decide(&mut state)? {
                Some(change) => self.push(change)?,
                None => return Ok(()),
            }
        };
        done.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Under the log's lock.
    pub(crate) fn push(
        &self,
        change: Change,
    ) -> Result<oneshot::Receiver<Result<(), StorageError>>, StorageError> {
        let (done, answer) = oneshot::channel();
        let (log, opening) = (Arc::clone(&self.log), self.opening);
        self.lane.push_change(PendingChange { log, opening, change, done })?;
        Ok(answer)
    }

    async fn trim_to(&self, log_start: Offset) -> Result<LogBounds, StorageError> {
        let _turn = self.log.turn.lock().await;
        let mut sealed = None;
        self.change(|state| {
            state.check_durable("log_start", log_start)?;
            if log_start <= state.bounds.log_start {
                return Ok(None);
            }
            // When everything goes, what is appended next begins a new chunk.
            if log_start == state.bounds.written_end {
                sealed = state.seal().map(|facts| self.push(Change::Seal(facts))).transpose()?;
            }
            let below = state.chunks.iter().take_while(|chunk| chunk.facts.next <= log_start);
            let dropped = below.map(|chunk| chunk.facts.number).collect();
            Ok(Some(Change::Trim { log_start, dropped }))
        })
        .await?;
        // Its answer came before that of the trim.
        drop(sealed);
        Ok(self.log.state.lock().bounds)
    }
}

impl CommitLog for PgLog {
    fn bounds(&self) -> LogBounds {
        self.log.state.lock().bounds
    }

    fn submit(&self, at: Offset, batches: SealedBatches) -> Result<Ticket, AppendError> {
        let mut state = self.log.state.lock();
        self.check(&state)?;
        let written_end = state.bounds.written_end;
        if at != written_end {
            return Err(AppendError::Moved { written_end });
        }
        assert_eq!(batches.base_offset(), at, "batches are sealed with the offset they go to");
        self.lane.reserve(batches.size())?;
        let placement = state.place(&batches);
        let (completion, ticket) = Ticket::pair();
        let (log, opening) = (Arc::clone(&self.log), self.opening);
        // Under the lock: appends are carried out in the order of their offsets.
        self.lane.push_append(PendingAppend { log, opening, batches, placement, completion });
        Ok(ticket)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.lane.ready())
    }

    fn durable(&self, end: Offset) -> Ticket {
        self.log.durable(self.opening, end)
    }

    fn read(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<BatchBytes, ReadError>> {
        Box::pin(self.read_batches(from, upto, limit))
    }

    fn find_timestamp(&self, at: Timestamp) -> BoxFuture<'_, Result<Option<BatchInfo>, ReadError>> {
        Box::pin(self.find(at))
    }

    fn roll(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let _turn = self.log.turn.lock().await;
            self.change(|state| Ok(state.seal().map(Change::Seal))).await
        })
    }

    fn trim(&self, log_start: Offset) -> BoxFuture<'_, Result<LogBounds, StorageError>> {
        Box::pin(self.trim_to(log_start))
    }

    fn chunks(&self) -> Vec<ChunkInfo> {
        self.log.state.lock().infos()
    }

    fn configure(&self, settings: LogSettings) {
        let mut state = self.log.state.lock();
        if state.opening == self.opening
            && let Some(opener) = &mut state.opener
        {
            opener.settings = settings;
        }
    }

    fn save_state(&self, at: Offset, state: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.change(move |log| {
            log.check_durable("at", at)?;
            Ok(Some(Change::SaveState { at, state }))
        }))
    }

    fn load_state(&self) -> BoxFuture<'_, Result<Option<(Offset, Bytes)>, StorageError>> {
        Box::pin(async move {
            self.check(&self.log.state.lock())?;
            let rows = self.shared.query("load state", Query::LoadState, &[&self.log_id]).await?;
            let durable_end = self.log.state.lock().bounds.durable_end;
            let saved = rows.first().map(|row| {
                (Offset::new(row.get(0)), Bytes::copy_from_slice(row.get::<_, &[u8]>(1)))
            });
            Ok(saved.filter(|(at, _)| *at <= durable_end))
        })
    }

    fn rewrite(
        &self,
        first: ChunkId,
        last: ChunkId,
    ) -> BoxFuture<'_, Result<Box<dyn ChunkRewrite>, StorageError>> {
        Box::pin(async move {
            let rewrite = PgRewrite::begin(self, first, last).await?;
            Ok(Box::new(rewrite) as Box<dyn ChunkRewrite>)
        })
    }

    fn compacted(&self) -> Compacted {
        self.log.state.lock().compacted
    }

    fn note_compacted(&self, compacted: Compacted) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.change(move |state| {
            state.check_durable("clean_end", compacted.clean_end)?;
            Ok(Some(Change::NoteCompacted(compacted)))
        }))
    }
}

impl Drop for PgLog {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        let opener = if state.opening == self.opening { state.opener.take() } else { None };
        drop(state);
        // After the lock: what the listener owns may come back to this log.
        drop(opener);
    }
}

impl fmt::Debug for PgLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgLog")
            .field("id", &self.log.id)
            .field("epoch", &self.epoch)
            .field("bounds", &self.bounds())
            .finish_non_exhaustive()
    }
}
