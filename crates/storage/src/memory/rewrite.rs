//! A chunk that is written to take the place of others.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{LeaderEpoch, Offset};
use strandline_records::batches;

use super::Shared;
use super::chunk::{BATCH_OVERHEAD_BYTES, Batch, RewriteRefusal};
use super::log::{Log, State};
use super::space::Purpose;
use crate::{BoxFuture, ChunkId, ChunkRewrite, ErrorKind, StorageError};

/// See the [module](self). Its end lets the next rewrite of the log begin.
pub(super) struct MemoryRewrite {
    shared: Arc<Shared>,
    log: Arc<Log>,
    epoch: LeaderEpoch,
    first: ChunkId,
    last: ChunkId,
    /// Where the chunks that are replaced end.
    end: Offset,
    batches: Vec<Batch>,
    /// What was taken from the budget for them.
    taken: u64,
}

/// Where the chunks end that are to be replaced, if they may be.
pub(super) fn rewritable_end(
    state: &State,
    first: ChunkId,
    last: ChunkId,
) -> Result<Offset, StorageError> {
    let run = state.chunks.sealed(first.0, last.0).map_err(refused)?;
    let end = state.chunks.end_of(&run);
    if end > state.bounds.durable_end {
        return Err(StorageError::new(ErrorKind::Invalid, "chunks are not durable"));
    }
    Ok(end)
}

impl MemoryRewrite {
    /// The caller has noted in the log that there is one.
    pub(super) fn new(
        shared: Arc<Shared>,
        log: Arc<Log>,
        epoch: LeaderEpoch,
        (first, last): (ChunkId, ChunkId),
        end: Offset,
    ) -> Self {
        Self { shared, log, epoch, first, last, end, batches: Vec::new(), taken: 0 }
    }

    fn add_now(&mut self, bytes: &Bytes) -> Result<(), StorageError> {
        let mut next = self.batches.last().map_or(self.first.0, |last| last.next_offset);
        let mut added = Vec::new();
        for batch in batches(bytes) {
            let sound = batch.and_then(|batch| batch.check_crc().map(|()| batch));
            let batch = sound.map_err(|error| {
                StorageError::new(ErrorKind::Invalid, "a batch is damaged").caused_by(error)
            })?;
            let range = batch.base_offset().zip(batch.next_offset());
            let (base, end) = range.ok_or_else(|| outside(next))?;
            if base < next || end > self.end {
                return Err(outside(base));
            }
            next = end;
            added.push(Batch::of(batch, Bytes::copy_from_slice(batch.bytes())));
        }
        let cost = bytes.len() as u64 + added.len() as u64 * BATCH_OVERHEAD_BYTES;
        self.shared.budget.take(cost, Purpose::Batches)?;
        self.taken += cost;
        self.batches.extend(added);
        Ok(())
    }

    fn commit_now(&mut self) -> Result<(), StorageError> {
        self.shared.check_open()?;
        let mut state = self.log.state.lock();
        state.check_kept(self.log.id)?;
        state.check_owner(self.epoch)?;
        let run = state.chunks.sealed(self.first.0, self.last.0).map_err(refused)?;
        let batches = std::mem::take(&mut self.batches);
        let freed = state.chunks.replace(run, batches).map_err(refused)?;
        self.taken = 0;
        self.shared.budget.give_back(freed);
        Ok(())
    }
}

impl ChunkRewrite for MemoryRewrite {
    fn add(&mut self, batches: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move { self.add_now(&batches) })
    }

    fn commit(mut self: Box<Self>) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(async move { self.commit_now() })
    }
}

impl Drop for MemoryRewrite {
    fn drop(&mut self) {
        self.shared.budget.give_back(self.taken);
        self.log.state.lock().is_rewriting = false;
    }
}

impl fmt::Debug for MemoryRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRewrite").field("id", &self.log.id).finish_non_exhaustive()
    }
}

fn refused(refusal: RewriteRefusal) -> StorageError {
    let (kind, message) = match refusal {
        RewriteRefusal::Missing => (ErrorKind::Unavailable, "there are no such chunks"),
        RewriteRefusal::Grows => (ErrorKind::Invalid, "a chunk that grows can't be rewritten"),
        RewriteRefusal::LosesEnd => (ErrorKind::Invalid, "the end of the log would be lost"),
    };
    StorageError::new(kind, message)
}

fn outside(offset: Offset) -> StorageError {
    let message = format!("a batch lies outside the chunks. offset=`{offset}`");
    StorageError::new(ErrorKind::Invalid, message)
}
