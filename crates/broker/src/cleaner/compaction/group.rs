//! Rewriting adjacent chunks: one takes their place.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use strandline_model::{Offset, Timestamp};
use strandline_records::{FilterOutcome, batches};
use strandline_storage::{ChunkInfo, StorageError};

use super::pass::{Known, Pass, Stopped, blocking, sound};
use super::reading::Reading;

/// What is left of some batches.
#[derive(Debug)]
struct Left {
    bytes: Bytes,
    is_changed: bool,
    removed: u64,
    unreadable: u64,
    delete_horizon: Option<Timestamp>,
}

impl Pass<'_> {
    /// Puts what stays of `group` in its place, if anything goes or several become one.
    pub(super) async fn rewrite(
        &mut self,
        group: &[ChunkInfo],
        log_start: Offset,
    ) -> Result<(), Stopped> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(()) };
        let sums = self.sums;
        if group.len() == 1 && self.is_same(first, log_start).await? {
            return Ok(());
        }
        // What was looked at is looked at again.
        self.sums = sums;
        let partition = Arc::clone(&self.partition);
        let log = partition.log();
        let mut rewrite = log.rewrite(first.id, last.id).await.map_err(gone)?;
        let from = first.base_offset.max(log_start);
        let mut reading = Reading::new(log, from, last.next_offset, self.step);
        while let Some(bytes) = reading.step().await? {
            let read = bytes.len() as u64;
            let left = self.clean(bytes).await?;
            let written = left.bytes.len() as u64;
            if written > 0 {
                rewrite.add(left.bytes).await?;
            }
            self.sums.written += written;
            self.spend(read + written).await?;
        }
        // What lies below the log start is not read, nor kept.
        let bytes = group.iter().map(|chunk| chunk.bytes.get()).sum();
        reading.check_whole((from == first.base_offset).then_some(bytes))?;
        self.sums.read += reading.bytes();
        rewrite.commit().await.map_err(gone)?;
        Ok(())
    }

    /// Whether nothing of a chunk goes.
    async fn is_same(&mut self, chunk: &ChunkInfo, log_start: Offset) -> Result<bool, Stopped> {
        let partition = Arc::clone(&self.partition);
        let from = chunk.base_offset.max(log_start);
        let mut reading = Reading::new(partition.log(), from, chunk.next_offset, self.step);
        while let Some(bytes) = reading.step().await? {
            let read = bytes.len() as u64;
            if self.clean(bytes).await?.is_changed {
                return Ok(false);
            }
            self.spend(read).await?;
        }
        reading.check_whole((from == chunk.base_offset).then_some(chunk.bytes.get()))?;
        self.sums.read += reading.bytes();
        Ok(true)
    }

    async fn clean(&mut self, bytes: Bytes) -> Result<Left, Stopped> {
        let known = Arc::clone(&self.known);
        let left = blocking(move || clean(&known, bytes)).await??;
        let sums = &mut self.sums;
        sums.removed += left.removed;
        sums.unreadable += left.unreadable;
        let horizons = [sums.delete_horizon, left.delete_horizon];
        sums.delete_horizon = horizons.into_iter().flatten().min();
        Ok(left)
    }
}

/// A chunk that is not there any more was dropped by retention.
fn gone(error: StorageError) -> Stopped {
    match error.kind() {
        strandline_storage::ErrorKind::Unavailable
            if std::error::Error::source(&error).is_none() =>
        {
            Stopped::Interrupted("its chunks changed")
        }
        _ => error.into(),
    }
}

/// What stays of some batches; the same bytes when nothing goes.
fn clean(known: &Known, bytes: Bytes) -> Result<Left, StorageError> {
    let cleaning = known.cleaning();
    let mut left = Left {
        bytes: Bytes::new(),
        is_changed: false,
        removed: 0,
        unreadable: 0,
        delete_horizon: None,
    };
    let mut written = BytesMut::new();
    let mut position = 0;
    for batch in batches(&bytes) {
        let batch = sound(batch)?;
        let cleaned = cleaning.clean(&batch);
        left.removed += u64::from(cleaned.removed);
        left.unreadable += u64::from(cleaned.is_unreadable);
        let horizons = [left.delete_horizon, cleaned.delete_horizon];
        left.delete_horizon = horizons.into_iter().flatten().min();
        if !left.is_changed && cleaned.outcome != FilterOutcome::Same {
            left.is_changed = true;
            written.reserve(bytes.len());
            written.extend_from_slice(bytes.get(..position).unwrap_or_default());
        }
        position += batch.bytes().len();
        match cleaned.outcome {
            FilterOutcome::Same if left.is_changed => written.extend_from_slice(batch.bytes()),
            FilterOutcome::Changed(changed) => written.extend_from_slice(&changed),
            FilterOutcome::Same | FilterOutcome::Gone => {}
        }
    }
    left.bytes = if left.is_changed { written.freeze() } else { bytes };
    Ok(left)
}
