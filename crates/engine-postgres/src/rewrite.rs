//! A chunk that is written to take the place of others.
//!
//! Its entries go in as they come, under a number that no reader knows; one statement on the rows of
//! chunks then swaps it in. Nothing is copied and no lock is held for longer than that statement.

use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use strandline_model::{LeaderEpoch, Offset, Timestamp};
use strandline_records::{BatchView, batches};
use strandline_storage::{BoxFuture, ChunkId, ChunkRewrite, ChunkState, ErrorKind, StorageError};

use crate::connection::Params;
use crate::engine::Shared;
use crate::error::closed;
use crate::facts::Facts;
use crate::handle::PgLog;
use crate::lane::digest;
use crate::queue::{Change, PendingChange, Queue};
use crate::read::offsets;
use crate::sql::Query;
use crate::state::{Log, State};

/// Bytes of one entry; a larger batch is one alone.
const ENTRY_BYTES: usize = 512 << 10;

/// See the [module](self). Its end lets the next rewrite of the log begin.
pub(crate) struct PgRewrite {
    shared: Arc<Shared>,
    log: Arc<Log>,
    lane: Arc<Queue>,
    log_id: i64,
    opening: u64,
    epoch: LeaderEpoch,
    number: i64,
    /// The chunks that are replaced, by number.
    replaced: Vec<i64>,
    /// Where batches may lie.
    base: Offset,
    end: Offset,
    /// What was added so far.
    facts: Option<Facts>,
    pending: BytesMut,
    pending_base: Option<Offset>,
    pending_max: Option<Timestamp>,
    is_committed: bool,
}

impl PgRewrite {
    pub(crate) async fn begin(
        handle: &PgLog,
        first: ChunkId,
        last: ChunkId,
    ) -> Result<Self, StorageError> {
        let (rewrite, begun) = {
            let mut state = handle.log.state.lock();
            handle.check(&state)?;
            let (replaced, end) = sources(&state, first, last)?;
            if std::mem::replace(&mut state.is_rewriting, true) {
                let message = "chunks of the log are being rewritten";
                return Err(StorageError::new(ErrorKind::Unavailable, message));
            }
            state.last_number += 1;
            let number = state.last_number;
            // From here on its end lets the next begin.
            let rewrite = Self {
                shared: Arc::clone(&handle.shared),
                log: Arc::clone(&handle.log),
                lane: Arc::clone(&handle.lane),
                log_id: handle.log_id,
                opening: handle.opening,
                epoch: handle.epoch,
                number,
                replaced,
                base: first.0,
                end,
                facts: None,
                pending: BytesMut::new(),
                pending_base: None,
                pending_max: None,
                is_committed: false,
            };
            match handle.push(Change::BeginChunk(number)) {
                Ok(begun) => (rewrite, begun),
                Err(error) => {
                    drop(state);
                    drop(rewrite);
                    return Err(error);
                }
            }
        };
        begun.await.unwrap_or_else(|_| Err(closed()))?;
        Ok(rewrite)
    }

    /// Where the next batch may begin.
    fn next(&self) -> Offset {
        self.facts.map_or(self.base, |facts| facts.next)
    }

    fn accept(&mut self, batch: &BatchView<'_>) -> Result<(), StorageError> {
        let (base, next) = offsets(batch).map_err(|_| outside(self.next()))?;
        if base < self.next() || next > self.end {
            return Err(outside(base));
        }
        let size = i64::try_from(batch.bytes().len()).expect("a batch fits memory");
        let max_timestamp = batch.max_timestamp();
        let facts = self.facts.get_or_insert(Facts {
            number: self.number,
            base,
            next,
            bytes: 0,
            max_timestamp: None,
            first_at: Timestamp::default(),
            last_at: Timestamp::default(),
        });
        facts.next = next;
        facts.bytes += size;
        facts.max_timestamp = facts.max_timestamp.max(max_timestamp);
        self.pending.extend_from_slice(batch.bytes());
        self.pending_base.get_or_insert(base);
        self.pending_max = self.pending_max.max(max_timestamp);
        Ok(())
    }

    /// Writes what is pending as an entry.
    async fn flush(&mut self) -> Result<(), StorageError> {
        let (Some(base), Some(facts)) = (self.pending_base.take(), self.facts) else {
            return Ok(());
        };
        let data = self.pending.split().freeze();
        let stamp = self.pending_max.take().map(Timestamp::as_millis);
        let newest = facts.max_timestamp.map(Timestamp::as_millis);
        let data: &[u8] = data.as_ref();
        let values: Params<'_> = &[
            &self.log_id,
            &self.number,
            &facts.next.get(),
            &base.get(),
            &self.epoch.get(),
            &digest(data),
            &stamp,
            &newest,
            &data,
        ];
        let rows = self.shared.query("write a rewritten chunk", Query::AddEntry, values).await?;
        if rows.first().is_some_and(|row| row.get::<_, i64>(0) == 1) {
            return Ok(());
        }
        Err(StorageError::new(ErrorKind::Unavailable, "the rewritten chunk was given up"))
    }

    async fn add_all(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        for batch in batches(&bytes) {
            let sound = batch.and_then(|batch| batch.check_crc().map(|()| batch));
            let batch = sound.map_err(|error| {
                StorageError::new(ErrorKind::Invalid, "a batch is damaged").caused_by(error)
            })?;
            self.accept(&batch)?;
            if self.pending.len() >= ENTRY_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn swap(mut self: Box<Self>) -> Result<(), StorageError> {
        self.flush().await?;
        let log = Arc::clone(&self.log);
        let _turn = log.turn.lock().await;
        let done = {
            let state = log.state.lock();
            self.shared.check_open()?;
            state.check_handle(log.id, self.opening)?;
            let facts = self.replacement(&state)?;
            let (number, replaced) = (self.number, self.replaced.clone());
            let change = Change::Replace { number, facts, replaced };
            let (done, answer) = tokio::sync::oneshot::channel();
            let (log, opening) = (Arc::clone(&log), self.opening);
            self.lane.push_change(PendingChange { log, opening, change, done })?;
            answer
        };
        // The lane carries it out whether anybody waits or not.
        self.is_committed = true;
        done.await.unwrap_or_else(|_| Err(closed()))
    }

    /// What takes the place of the chunks, if they are all there.
    fn replacement(&self, state: &State) -> Result<Option<Facts>, StorageError> {
        let is_old = |number: i64| self.replaced.contains(&number);
        let old = || state.chunks.iter().filter(|chunk| is_old(chunk.facts.number));
        if old().count() != self.replaced.len() {
            let message = "there are no such chunks any more";
            return Err(StorageError::new(ErrorKind::Unavailable, message));
        }
        let has_end = state.chunks.last().is_some_and(|last| is_old(last.facts.number));
        if has_end && self.facts.map(|facts| facts.next) != Some(self.end) {
            let message = "the end of the log would be lost";
            return Err(StorageError::new(ErrorKind::Invalid, message));
        }
        let first_at = old().map(|chunk| chunk.facts.first_at).min().unwrap_or_default();
        let last_at = old().map(|chunk| chunk.facts.last_at).max().unwrap_or_default();
        Ok(self.facts.map(|facts| Facts { first_at, last_at, ..facts }))
    }
}

/// The numbers of the chunks from `first` to `last`, and where they end, if they may be replaced.
fn sources(
    state: &State,
    first: ChunkId,
    last: ChunkId,
) -> Result<(Vec<i64>, Offset), StorageError> {
    let position = |id: ChunkId| state.chunks.iter().position(|chunk| chunk.facts.base == id.0);
    let (Some(from), Some(to)) = (position(first), position(last)) else {
        return Err(StorageError::new(ErrorKind::Unavailable, "there are no such chunks"));
    };
    let invalid = |message: &'static str| Err(StorageError::new(ErrorKind::Invalid, message));
    if from > to {
        return invalid("the chunks are in no order");
    }
    let run = || state.chunks[from..=to].iter();
    if run().any(|chunk| chunk.state == ChunkState::Active) {
        return invalid("a chunk that grows can't be rewritten");
    }
    let end = run().last().map_or(first.0, |chunk| chunk.facts.next);
    if end > state.bounds.durable_end {
        return invalid("the chunks are not durable");
    }
    Ok((run().map(|chunk| chunk.facts.number).collect(), end))
}

fn outside(offset: Offset) -> StorageError {
    let message = format!("a batch lies outside the chunks. offset=`{offset}`");
    StorageError::new(ErrorKind::Invalid, message)
}

impl ChunkRewrite for PgRewrite {
    fn add(&mut self, batches: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.add_all(batches))
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(self.swap())
    }
}

impl Drop for PgRewrite {
    fn drop(&mut self) {
        if !self.is_committed {
            self.shared.sweeps.give_up(self.log_id, self.number);
        }
        self.log.state.lock().is_rewriting = false;
    }
}

impl fmt::Debug for PgRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgRewrite")
            .field("id", &self.log.id)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
