//! An open log that fails by plan.

use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{Offset, Timestamp};
use strandline_records::SealedBatches;

use super::gate::Gate;
use super::{Faults, SubmitFault, TrimFault, injected};
use crate::{
    AppendError, BatchBytes, BatchInfo, BoxFuture, ChunkId, ChunkInfo, ChunkRewrite, CommitLog,
    Compacted, ErrorKind, LogBounds, LogSettings, ReadError, ReadLimit, StorageError, Ticket,
};

#[derive(Debug)]
pub(super) struct FaultyLog {
    pub(super) inner: Arc<dyn CommitLog>,
    pub(super) gate: Arc<Gate>,
    pub(super) faults: Faults,
}

impl FaultyLog {
    fn check_alive(&self) -> Result<(), StorageError> {
        match self.gate.death() {
            None => Ok(()),
            // Whoever was fenced stays fenced; any other death is just the end of the handle.
            Some(error) if error.kind() == ErrorKind::Fenced => Err(error),
            Some(_) => Err(StorageError::new(ErrorKind::Closed, "log handle failed before")),
        }
    }

    /// What was planned for a change, before it is made.
    async fn meet(&self, planned: Option<TrimFault>) -> Result<(), StorageError> {
        match planned {
            None => Ok(()),
            Some(TrimFault::Fail(kind)) => Err(injected(kind)),
            Some(TrimFault::Hang) => std::future::pending().await,
            Some(TrimFault::Pause) => {
                self.faults.paused.reached.notify_one();
                self.faults.paused.resume.notified().await;
                Ok(())
            }
            Some(TrimFault::Panic) => panic!("injected by a test"),
        }
    }

    /// Takes the append's ticket to the grave.
    fn die(&self) -> Ticket {
        let error = injected(ErrorKind::Unavailable);
        let alive = self.gate.kill(&error);
        assert!(alive, "a dead handle takes no appends");
        self.faults.plan.lock().dead.push(Arc::clone(&self.inner));
        let (completion, ticket) = Ticket::pair();
        let gate = Arc::clone(&self.gate);
        // In a task: the caller holds the partition's lock, where the listener must not be called.
        tokio::spawn(async move {
            gate.announce_death(&error);
            completion.settle(Err(error));
        });
        ticket
    }
}

impl CommitLog for FaultyLog {
    fn bounds(&self) -> LogBounds {
        // The shown end first: the log start only rises, and never above what is durable.
        let durable_end = self.gate.shown_end();
        let bounds = self.inner.bounds();
        LogBounds { durable_end: durable_end.max(bounds.log_start), ..bounds }
    }

    fn submit(&self, at: Offset, batches: SealedBatches) -> Result<Ticket, AppendError> {
        self.check_alive()?;
        let fault = self.faults.plan.lock().submits.next();
        match fault {
            None => Ok(self.gate.ticket(self.inner.submit(at, batches)?)),
            Some(SubmitFault::Busy) => Err(AppendError::Busy),
            Some(SubmitFault::Full) => Err(AppendError::Refused(injected(ErrorKind::Full))),
            Some(SubmitFault::LoseAndDie) => Ok(self.die()),
            Some(SubmitFault::KeepAndDie) => {
                drop(self.inner.submit(at, batches)?);
                Ok(self.die())
            }
        }
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }

    fn durable(&self, end: Offset) -> Ticket {
        match self.check_alive() {
            Ok(()) => self.gate.ticket(self.inner.durable(end)),
            Err(error) => Ticket::settled(Err(error)),
        }
    }

    fn read(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<BatchBytes, ReadError>> {
        Box::pin(async move {
            if let Some(kind) = self.faults.plan.lock().reads.next() {
                return Err(injected(kind).into());
            }
            let bounds = self.bounds();
            if from > bounds.durable_end {
                return Err(ReadError::OutOfRange(bounds));
            }
            self.inner.read(from, upto, limit).await
        })
    }

    fn find_timestamp(&self, at: Timestamp) -> BoxFuture<'_, Result<Option<BatchInfo>, ReadError>> {
        Box::pin(async move {
            let found = self.inner.find_timestamp(at).await?;
            Ok(found.filter(|batch| batch.next_offset <= self.gate.shown_end()))
        })
    }

    fn roll(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.check_alive()?;
            self.inner.roll().await
        })
    }

    fn trim(&self, log_start: Offset) -> BoxFuture<'_, Result<LogBounds, StorageError>> {
        Box::pin(async move {
            self.check_alive()?;
            if log_start > self.gate.shown_end() {
                return Err(StorageError::new(ErrorKind::Invalid, "log_start is not durable"));
            }
            let planned = self.faults.plan.lock().trims.next();
            self.meet(planned).await?;
            self.inner.trim(log_start).await?;
            Ok(self.bounds())
        })
    }

    fn chunks(&self) -> Vec<ChunkInfo> {
        let planned = self.faults.plan.lock().chunks.next();
        assert!(planned.is_none(), "injected by a test");
        self.inner.chunks()
    }

    fn configure(&self, settings: LogSettings) {
        self.inner.configure(settings);
    }

    fn save_state(&self, at: Offset, state: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.check_alive()?;
            if at > self.gate.shown_end() {
                return Err(StorageError::new(ErrorKind::Invalid, "at is not durable"));
            }
            self.inner.save_state(at, state).await
        })
    }

    fn load_state(&self) -> BoxFuture<'_, Result<Option<(Offset, Bytes)>, StorageError>> {
        Box::pin(async move {
            self.check_alive()?;
            self.inner.load_state().await
        })
    }

    fn rewrite(
        &self,
        first: ChunkId,
        last: ChunkId,
    ) -> BoxFuture<'_, Result<Box<dyn ChunkRewrite>, StorageError>> {
        Box::pin(async move {
            self.check_alive()?;
            let planned = self.faults.plan.lock().rewrites.next();
            self.meet(planned).await?;
            self.inner.rewrite(first, last).await
        })
    }

    fn compacted(&self) -> Compacted {
        self.inner.compacted()
    }

    fn note_compacted(&self, compacted: Compacted) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.check_alive()?;
            if compacted.clean_end > self.gate.shown_end() {
                return Err(StorageError::new(ErrorKind::Invalid, "clean_end is not durable"));
            }
            self.inner.note_compacted(compacted).await
        })
    }
}
