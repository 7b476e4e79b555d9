//! The handle of an opener.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{Offset, Timestamp};
use strandline_records::SealedBatches;
use strandline_storage::{
    AppendError, BatchBytes, BatchInfo, BoxFuture, ChunkId, ChunkInfo, ChunkRewrite, CommitError,
    CommitLog, Compacted, ErrorKind, LogBounds, LogSettings, ReadError, ReadLimit, StorageError,
    Ticket,
};
use tokio::sync::oneshot;

use crate::blocking::blocking;
use crate::engine::{Running, Shared};
use crate::live::LiveLog;
use crate::queue::{Item, PendingChange, RowChange, Wait};
use crate::rewrite::FileRewrite;
use crate::tables::{self, TableNumber};

/// The handle of an opener. Dropping it ends the opener's claim; what it submitted goes on.
pub(crate) struct FileLog {
    pub(crate) shared: Arc<Shared>,
    /// The engine runs for as long as somebody has a log open.
    pub(crate) running: Arc<Running>,
    pub(crate) live: Arc<LiveLog>,
}

/// What a read needs, wherever it runs.
#[derive(Clone)]
struct Reader {
    shared: Arc<Shared>,
    live: Arc<LiveLog>,
}

impl Reader {
    /// Whoever was superseded does not hear of the new owner's trims: it answers no reads either.
    fn check_readable(&self) -> Result<(), StorageError> {
        self.live.check_alive()?;
        self.shared.check_open()
    }

    /// Reads with `read`; `None` when it answers so.
    fn read(
        &self,
        from: Offset,
        upto: Offset,
        read: impl FnOnce(Offset) -> Result<Option<BatchBytes>, StorageError>,
    ) -> Result<Option<BatchBytes>, ReadError> {
        self.check_readable()?;
        let bounds = self.live.bounds();
        if from < bounds.log_start || from > bounds.durable_end {
            return Err(ReadError::OutOfRange(bounds));
        }
        let upto = upto.min(bounds.durable_end);
        if from >= upto {
            return Ok(Some(BatchBytes::empty()));
        }
        let read = read(upto);
        // A trim, or another owner, may have come meanwhile: then what was found may begin too late.
        self.check_readable()?;
        let bounds = self.live.bounds();
        if from < bounds.log_start {
            return Err(ReadError::OutOfRange(bounds));
        }
        Ok(read?)
    }
}

impl FileLog {
    fn reader(&self) -> Reader {
        Reader { shared: Arc::clone(&self.shared), live: Arc::clone(&self.live) }
    }

    fn check_durable(&self, what: &str, offset: Offset) -> Result<(), StorageError> {
        let durable_end = self.live.durable_end();
        if offset <= durable_end {
            return Ok(());
        }
        let message = format!(
            "{what} lies past the durable end. {what}=`{offset}`, durable_end=`{durable_end}`"
        );
        Err(StorageError::new(ErrorKind::Invalid, message))
    }

    /// Commits one row of this log, with the log start when it moves.
    async fn change(
        &self,
        table: TableNumber,
        value: Bytes,
        wait: Wait,
        trim: Option<Offset>,
    ) -> Result<(), StorageError> {
        let key = Bytes::copy_from_slice(&tables::partition_key(self.live.id));
        let (done, answer) = oneshot::channel();
        self.shared.queue.push(Item::Change(PendingChange {
            expectations: Vec::new(),
            changes: vec![RowChange { table, key, value: Some(value) }],
            wait,
            log: Some(Arc::clone(&self.live)),
            trim,
            rewritten: None,
            done,
        }))?;
        await_change(answer).await.map_err(without_expectations)
    }
}

/// The answer to a change, or that the engine is gone.
pub(crate) async fn await_change(
    answer: oneshot::Receiver<Result<(), CommitError>>,
) -> Result<(), CommitError> {
    answer.await.unwrap_or_else(|_| {
        let message = "file engine stopped before the change was durable";
        Err(StorageError::new(ErrorKind::Closed, message).into())
    })
}

/// The failure of a change that expected nothing.
pub(crate) fn without_expectations(error: CommitError) -> StorageError {
    match error {
        CommitError::Storage(error) => error,
        CommitError::Unexpected { .. } => {
            unreachable!("a change without expectations meets them all")
        }
    }
}

impl CommitLog for FileLog {
    fn bounds(&self) -> LogBounds {
        self.live.bounds()
    }

    fn submit(&self, at: Offset, batches: SealedBatches) -> Result<Ticket, AppendError> {
        self.shared.space.check(&*self.shared.disk)?;
        self.shared.queue.submit(&self.live, at, batches)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.queue.data_room(&self.shared.checkpoints).await;
        })
    }

    fn durable(&self, end: Offset) -> Ticket {
        self.live.durable(end)
    }

    fn read(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<BatchBytes, ReadError>> {
        Box::pin(async move {
            let reader = self.reader();
            let segments = Arc::clone(&self.live.segments);
            // Whoever follows the log is answered from memory; anything else may wait for the disk.
            let at_once = |upto| Ok(segments.read_at_once(from, upto, limit));
            if let Some(batches) = reader.read(from, upto, at_once)? {
                return Ok(batches);
            }
            blocking(move || {
                let found =
                    reader.read(from, upto, |upto| segments.read(from, upto, limit).map(Some));
                found.map(Option::unwrap_or_default)
            })
            .await
        })
    }

    fn find_timestamp(&self, at: Timestamp) -> BoxFuture<'_, Result<Option<BatchInfo>, ReadError>> {
        Box::pin(async move {
            let reader = self.reader();
            reader.check_readable()?;
            blocking(move || {
                let LogBounds { log_start, durable_end, .. } = reader.live.bounds();
                Ok(reader.live.segments.find_timestamp(at, log_start, durable_end)?)
            })
            .await
        })
    }

    fn roll(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let (done, rolled) = Ticket::pair();
            self.shared.queue.push(Item::Roll { log: Arc::clone(&self.live), done })?;
            rolled.await
        })
    }

    fn trim(&self, log_start: Offset) -> BoxFuture<'_, Result<LogBounds, StorageError>> {
        Box::pin(async move {
            self.live.check_alive()?;
            self.check_durable("log_start", log_start)?;
            if log_start > self.live.log_start() {
                let value = Bytes::copy_from_slice(&tables::offset_value(log_start));
                self.change(tables::LOG_STARTS, value, Wait::Sync, Some(log_start)).await?;
            }
            Ok(self.live.bounds())
        })
    }

    fn chunks(&self) -> Vec<ChunkInfo> {
        self.live.segments.chunks()
    }

    fn configure(&self, settings: LogSettings) {
        if self.live.check_alive().is_ok() {
            self.live.configure(settings);
        }
    }

    fn save_state(&self, at: Offset, state: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.live.check_alive()?;
            self.check_durable("at", at)?;
            let value = tables::state_value(at, &state);
            // Derived: an older one after a crash only costs time.
            self.change(tables::STATES, value, Wait::Write, None).await
        })
    }

    fn load_state(&self) -> BoxFuture<'_, Result<Option<(Offset, Bytes)>, StorageError>> {
        Box::pin(async move {
            self.reader().check_readable()?;
            let state = self.shared.rows.read().state(self.live.id);
            Ok(state.filter(|(at, _)| *at <= self.live.durable_end()))
        })
    }

    fn rewrite(
        &self,
        first: ChunkId,
        last: ChunkId,
    ) -> BoxFuture<'_, Result<Box<dyn ChunkRewrite>, StorageError>> {
        let (shared, running) = (Arc::clone(&self.shared), Arc::clone(&self.running));
        Box::pin(FileRewrite::begin(shared, running, Arc::clone(&self.live), first, last))
    }

    fn compacted(&self) -> Compacted {
        self.shared.rows.read().compacted(self.live.id)
    }

    fn note_compacted(&self, compacted: Compacted) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.live.check_alive()?;
            self.check_durable("clean_end", compacted.clean_end)?;
            let value = tables::compacted_value(compacted);
            // An older one after a crash only costs a pass.
            self.change(tables::COMPACTED, value, Wait::Write, None).await
        })
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.live.let_go();
        if self.live.is_dirty() {
            // A queue that takes nothing any more is about to forget everything.
            drop(self.shared.queue.push(Item::Release(Arc::clone(&self.live))));
        }
    }
}

impl fmt::Debug for FileLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLog")
            .field("id", &self.live.id)
            .field("epoch", &self.live.epoch)
            .field("bounds", &self.live.bounds())
            .finish_non_exhaustive()
    }
}
