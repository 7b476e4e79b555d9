//! Rewrites of segments: from the trait to the commit thread.
//!
//! docs/adr/0018-compaction.md has the reasons.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset, PartitionId};
use strandline_storage::{BoxFuture, ChunkId, ChunkRewrite, ErrorKind, StorageError};
use tokio::sync::oneshot;

use crate::blocking::blocking;
use crate::engine::{Running, Shared};
use crate::live::LiveLog;
use crate::log::{await_change, without_expectations};
use crate::queue::{Item, PendingChange, StopMark, Wait};
use crate::segment::{Leftover, Rewrite, Rewritten};

/// Logs of which somebody rewrites segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewriting(Arc<Mutex<BTreeSet<PartitionId>>>);

impl Rewriting {
    pub(crate) fn contains(&self, id: PartitionId) -> bool {
        self.0.lock().contains(&id)
    }

    fn begin(&self, id: PartitionId) -> Option<RewritingGuard> {
        let is_first = self.0.lock().insert(id);
        is_first.then(|| RewritingGuard { rewriting: self.clone(), id })
    }
}

/// Whoever rewrites segments of a log, until nothing is written any more.
#[derive(Debug)]
struct RewritingGuard {
    rewriting: Rewriting,
    id: PartitionId,
}

impl Drop for RewritingGuard {
    fn drop(&mut self) {
        self.rewriting.0.lock().remove(&self.id);
    }
}

/// A rewrite under way.
pub(crate) struct FileRewrite {
    parts: Arc<Parts>,
    /// `None` while a thread writes, and after a failure.
    rewrite: Option<Rewrite>,
}

/// What outlives a caller that goes away while a thread writes for it.
struct Parts {
    shared: Arc<Shared>,
    _running: Arc<Running>,
    live: Arc<LiveLog>,
    _guard: RewritingGuard,
}

impl Parts {
    fn check(&self) -> Result<(), StorageError> {
        self.live.check_alive()?;
        self.shared.check_open()
    }

    /// Fails when the disk has no room for `bytes` beside its reserve: they are for who appends.
    fn check_room(&self, bytes: u64) -> Result<(), StorageError> {
        let Shared { space, disk, .. } = &*self.shared;
        space.look(&**disk);
        space.check(&**disk)?;
        let free = space.room().map_or(u64::MAX, ByteCount::get);
        if free >= bytes {
            return Ok(());
        }
        let message = format!(
            "disk has no room to rewrite segments. partition=`{}`, free=`{free}`, need=`{bytes}`",
            self.live.id
        );
        Err(StorageError::new(ErrorKind::Full, message))
    }

    /// Lets the file of a rewrite that came to nothing go, in steps.
    fn drop_file(&self, leftover: Option<Leftover>) {
        if let Some(leftover) = leftover {
            self.live.segments.drop_rewrite(leftover);
            self.shared.sweeper.sweep(&self.live.segments);
        }
    }
}

/// A rewrite on a thread that writes: given up unless it is taken out.
struct Held {
    parts: Arc<Parts>,
    rewrite: Option<Rewrite>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(rewrite) = self.rewrite.take() {
            self.parts.drop_file(rewrite.give_up());
        }
    }
}

impl FileRewrite {
    /// Begins to replace the chunks from `first` to `last` of an open log.
    pub(crate) async fn begin(
        shared: Arc<Shared>,
        running: Arc<Running>,
        live: Arc<LiveLog>,
        first: ChunkId,
        last: ChunkId,
    ) -> Result<Box<dyn ChunkRewrite>, StorageError> {
        let id = live.id;
        let Some(guard) = shared.rewriting.begin(id) else {
            let message = format!("segments of the log are being rewritten. partition=`{id}`");
            return Err(StorageError::new(ErrorKind::Unavailable, message));
        };
        // After the guard: a removal ends the handle first and looks for the guard then.
        let parts = Arc::new(Parts { shared, _running: running, live, _guard: guard });
        parts.check()?;
        let ChunkId(first) = first;
        let mut rewrite = parts.begin(first, last.0)?;
        if rewrite.is_unsynced() || parts.has_unsaved(last.0) {
            // So that nothing that a start replays goes to a segment that is not there any more, or
            // before one that is in the rows already.
            parts.shared.checkpoints.done(StopMark::Running).await?;
            parts.check()?;
            rewrite = parts.begin(first, last.0)?;
        }
        parts.check_room(rewrite.replaced_bytes())?;
        Ok(Box::new(Self { parts, rewrite: Some(rewrite) }))
    }

    fn take(&mut self) -> Result<Held, StorageError> {
        self.parts.check()?;
        let Some(rewrite) = self.rewrite.take() else {
            let message = "rewrite failed before";
            return Err(StorageError::new(ErrorKind::Closed, message));
        };
        Ok(Held { parts: Arc::clone(&self.parts), rewrite: Some(rewrite) })
    }
}

impl Parts {
    fn begin(&self, first: Offset, last: Offset) -> Result<Rewrite, StorageError> {
        let rewrite = self.live.segments.begin_rewrite(first, last)?;
        let end = rewrite.end_of_replaced();
        let durable_end = self.live.durable_end();
        if end > durable_end {
            let message = format!(
                "segments that are not durable can't be rewritten. partition=`{}`, end=`{end}`, \
                 durable_end=`{durable_end}`",
                self.live.id
            );
            return Err(StorageError::new(ErrorKind::Invalid, message));
        }
        Ok(rewrite)
    }

    /// Whether a start may still replay batches of the segments up to the one at `last`: the snapshot
    /// does not have them all as they are.
    fn has_unsaved(&self, last: Offset) -> bool {
        let side = self.live.commit.lock();
        // Facts go from one to the other under this lock.
        side.changed.iter().any(|facts| facts.base_offset <= last)
            || self.shared.unsaved.contains(self.live.id)
    }

    async fn commit(self: Arc<Self>, rewritten: Rewritten) -> Result<(), StorageError> {
        let (done, answer) = oneshot::channel();
        let slot = Arc::new(Mutex::new(Some(rewritten)));
        let pushed = self.shared.queue.push(Item::Change(PendingChange {
            expectations: Vec::new(),
            changes: Vec::new(),
            wait: Wait::Sync,
            log: Some(Arc::clone(&self.live)),
            trim: None,
            rewritten: Some(Arc::clone(&slot)),
            done,
        }));
        let answered = match pushed {
            Ok(()) => await_change(answer).await.map_err(without_expectations),
            Err(error) => Err(error),
        };
        // Only where it is certain that no row names the file: when the engine has failed, a start may
        // find the group.
        if answered.is_err() && self.shared.check_open().is_ok() {
            let left = slot.lock().take();
            self.drop_file(left.and_then(Rewritten::give_up));
        }
        answered
    }
}

impl ChunkRewrite for FileRewrite {
    fn add(&mut self, batches: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.parts.check_room(batches.len() as u64)?;
            let mut held = self.take()?;
            let added = blocking(move || {
                held.rewrite.as_mut().map_or(Ok(()), |rewrite| rewrite.add(&batches))?;
                Ok(held)
            });
            self.rewrite = added.await?.rewrite.take();
            Ok(())
        })
    }

    fn commit(mut self: Box<Self>) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(async move {
            let mut held = self.take()?;
            let finished = blocking(move || match &mut held.rewrite {
                Some(rewrite) => rewrite.finish(),
                None => Err(StorageError::new(ErrorKind::Closed, "rewrite failed before")),
            });
            let rewritten = finished.await?;
            Arc::clone(&self.parts).commit(rewritten).await
        })
    }
}

impl Drop for FileRewrite {
    fn drop(&mut self) {
        if let Some(rewrite) = self.rewrite.take() {
            self.parts.drop_file(rewrite.give_up());
        }
    }
}

impl fmt::Debug for FileRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRewrite").field("id", &self.parts.live.id).finish_non_exhaustive()
    }
}
