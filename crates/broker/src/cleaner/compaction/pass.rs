//! One pass over one log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use strandline_model::config::BrokerConfig;
use strandline_model::{ByteCount, Limits, Offset, ProducerId, Timestamp};
use strandline_partition::compaction::{
    Cleaning, KEY_BYTES, Noted, OffsetMap, Plan, groups, note_keys,
};
use strandline_records::{BatchView, batches};
use strandline_storage::{Compacted, ErrorKind, StorageError};
use tokio_util::sync::CancellationToken;

use super::super::log::{segment, stored};
use super::reading::Reading;
use super::{Compactor, pace, planned};
use crate::partition::{Partition, PartitionSlot, SlotError};
use crate::topic::Topic;

/// The least and the most that is read at a time, whatever `log.cleaner.io.buffer.size` says.
const STEP_MIN: ByteCount = ByteCount::kib(64);
const STEP_MAX: ByteCount = ByteCount::mib(16);

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Everything that may be compacted is.
    Done,
    /// The map was full: there is more to do.
    More,
}

/// Why a pass did not come to its end.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Something else came first. Nothing is wrong.
    Interrupted(&'static str),
    /// The log, or the engine, failed.
    Failed(StorageError),
}

impl From<StorageError> for Stopped {
    fn from(error: StorageError) -> Self {
        match error.kind() {
            ErrorKind::Closed | ErrorKind::Fenced => Self::Interrupted("its log was closed"),
            ErrorKind::Unavailable
            | ErrorKind::Corrupt
            | ErrorKind::Full
            | ErrorKind::Invalid
            | ErrorKind::Missing => Self::Failed(error),
        }
    }
}

impl From<SlotError> for Stopped {
    fn from(error: SlotError) -> Self {
        match error {
            SlotError::Deleted => Self::Interrupted("its topic was deleted"),
            SlotError::Storage(error) => error.into(),
        }
    }
}

/// What the steps of a pass share.
pub(super) struct Pass<'a> {
    pub(super) compactor: &'a Compactor,
    pub(super) topic: &'a Topic,
    slot: &'a PartitionSlot,
    pub(super) partition: Arc<Partition>,
    stop: &'a CancellationToken,
    progress: &'a AtomicU64,
    pub(super) step: ByteCount,
    pub(super) known: Arc<Known>,
    /// What became of it so far.
    pub(super) sums: Sums,
}

/// What decides about each record.
#[derive(Debug)]
pub(super) struct Known {
    map: OffsetMap,
    noted_end: Offset,
    upto: Offset,
    producers: BTreeMap<ProducerId, Offset>,
    now: Timestamp,
    latest: Timestamp,
    delete_retention_ms: u64,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) removed: u64,
    pub(super) unreadable: u64,
    pub(super) delete_horizon: Option<Timestamp>,
}

impl Known {
    pub(super) const fn cleaning(&self) -> Cleaning<'_> {
        Cleaning {
            map: &self.map,
            noted_end: self.noted_end,
            upto: self.upto,
            producers: &self.producers,
            now: self.now,
            latest: self.latest,
            delete_retention_ms: self.delete_retention_ms,
            decompressed_bytes_max: Limits::production().batch_decompressed_bytes_max,
        }
    }
}

impl Compactor {
    /// Compacts a log as far as it may be and memory lets it.
    pub(super) async fn pass(
        &self,
        topic: &Topic,
        slot: &Arc<PartitionSlot>,
        stop: &CancellationToken,
        progress: &AtomicU64,
    ) -> Result<Ended, Stopped> {
        let partition = self.cleaner.parts.partitions.open(topic, slot).await?;
        let (policy, now) = (topic.settings().compaction, self.cleaner.now());
        let mut found = stored(partition.log());
        if planned(&found, &policy, now).roll {
            partition.log().roll().await?;
            found = stored(partition.log());
        }
        let plan = planned(&found, &policy, now);
        if plan.due.is_none() {
            return Ok(Ended::Done);
        }
        let config = self.config();
        // What is derived from the log is saved before batches of it go: producers outlive their records.
        partition.save_state().await?;
        let producers = partition.last_batches();
        let keys = (plan.upto - plan.dirty_from).get().max(0).unsigned_abs();
        let wanted = ByteCount::new(keys.saturating_mul(2).max(2) * KEY_BYTES.get());
        let Some(memory) = self.memory.take(wanted, &config) else {
            return Err(Stopped::Interrupted("other passes have the memory"));
        };
        let load = config.log_cleaner_io_buffer_load_factor;
        let secret = self.cleaner.parts.environment.random_bits();
        let map = OffsetMap::new(keys, memory.bytes(), load, secret);
        let step = step_of(&config);
        let reading = Looking { compactor: self, slot, stop, progress };
        let (map, noted_end) = reading.note_all(&partition, map, &plan, step).await?;
        let known = Known {
            map,
            noted_end,
            upto: plan.upto,
            producers,
            now,
            latest: self.cleaner.append_time(),
            delete_retention_ms: policy.delete_retention_ms,
        };
        let (known, sums) = (Arc::new(known), Sums::default());
        let mut pass =
            Pass { compactor: self, topic, slot, partition, stop, progress, step, known, sums };
        let chunks: Vec<_> = found.chunks.into_iter().take(plan.segments_count).collect();
        let segments: Vec<_> = chunks.iter().map(segment).collect();
        for group in groups(&segments, topic.settings().log.segment_bytes) {
            let Some(group) = chunks.get(group) else { continue };
            if group.first().is_none_or(|first| first.base_offset >= noted_end) {
                break;
            }
            pass.rewrite(group, found.bounds.log_start).await?;
        }
        let delete_horizon = pass.sums.delete_horizon;
        let compacted = Compacted { clean_end: noted_end, delete_horizon };
        pass.partition.log().note_compacted(compacted).await?;
        pass.tell();
        drop(memory);
        Ok(if noted_end < plan.upto { Ended::More } else { Ended::Done })
    }
}

/// Bytes that are read at a time.
fn step_of(config: &BrokerConfig) -> ByteCount {
    config.log_cleaner_io_buffer_size.clamp(STEP_MIN, STEP_MAX)
}

/// Who looks at a log, and for how long it may.
#[derive(Clone, Copy)]
struct Looking<'a> {
    compactor: &'a Compactor,
    slot: &'a PartitionSlot,
    stop: &'a CancellationToken,
    progress: &'a AtomicU64,
}

impl Looking<'_> {
    /// Notes the keys of the dirty part: the map, and where what it knows ends.
    async fn note_all(
        self,
        partition: &Partition,
        mut map: OffsetMap,
        plan: &Plan,
        step: ByteCount,
    ) -> Result<(OffsetMap, Offset), Stopped> {
        let mut reading = Reading::new(partition.log(), plan.dirty_from, plan.upto, step);
        while let Some(bytes) = reading.step().await? {
            self.spend(bytes.len() as u64).await?;
            let from = plan.dirty_from;
            let noted;
            (map, noted) = blocking(move || {
                let noted = note(&bytes, from, &mut map);
                (map, noted)
            })
            .await?;
            if let Noted::Below(end) = noted? {
                return Ok((map, end));
            }
        }
        Ok((map, plan.upto))
    }

    /// Takes note of bytes that were read or written; waits when they were many. Fails when nobody
    /// wants the pass to go on.
    async fn spend(self, bytes: u64) -> Result<(), Stopped> {
        self.progress.fetch_add(bytes, Ordering::Relaxed);
        let environment = &*self.compactor.cleaner.parts.environment;
        let rate = self.compactor.config().log_cleaner_io_max_bytes_per_second;
        let paid = self.compactor.pace.spend(bytes, rate, environment.monotonic());
        let is_over = || self.stop.is_cancelled() || self.slot.is_deleted();
        pace::wait(environment, paid, is_over).await;
        // What waits for its turn on purpose gets on too.
        self.progress.fetch_add(1, Ordering::Relaxed);
        if self.stop.is_cancelled() {
            return Err(Stopped::Interrupted("the broker stops"));
        }
        if self.slot.is_deleted() {
            return Err(Stopped::Interrupted("its topic was deleted"));
        }
        Ok(())
    }
}

impl Pass<'_> {
    /// See [`Looking::spend`]. Ends too when the topic is not compacted any more.
    pub(super) async fn spend(&self, bytes: u64) -> Result<(), Stopped> {
        let Self { compactor, slot, stop, progress, .. } = *self;
        Looking { compactor, slot, stop, progress }.spend(bytes).await?;
        if self.topic.settings().compaction.compacts {
            Ok(())
        } else {
            Err(Stopped::Interrupted("its topic is not compacted any more"))
        }
    }

    /// Counts and logs what was done.
    fn tell(&self) {
        let Sums { read, written, removed, unreadable, .. } = self.sums;
        let metrics = &self.compactor.cleaner.parts.metrics;
        metrics.compaction_passes.add(1);
        metrics.compaction_read_bytes.add(read);
        metrics.compaction_written_bytes.add(written);
        metrics.compaction_removed_records.add(removed);
        let (topic, partition) = (self.topic.name(), self.slot.id().index.get());
        if unreadable > 0 {
            tracing::warn!(%topic, partition, batches = unreadable, "compaction keeps batches that can't be read");
        }
        let clean_end = self.known.noted_end;
        tracing::info!(
            %topic, partition, %clean_end, read_bytes = read, written_bytes = written,
            removed_records = removed, keys = self.known.map.len(), "log was compacted"
        );
    }
}

/// Notes the keys of some batches, whose checksums are checked here.
fn note(bytes: &Bytes, from: Offset, map: &mut OffsetMap) -> Result<Noted, StorageError> {
    let limit = Limits::production().batch_decompressed_bytes_max;
    for batch in batches(bytes) {
        let batch = sound(batch)?;
        // What can't be read supersedes nothing, and stays.
        if let Ok(Noted::Below(end)) = note_keys(&batch, from, map, limit) {
            return Ok(Noted::Below(end));
        }
    }
    Ok(Noted::All)
}

/// A batch whose checksum is right.
pub(super) fn sound(
    batch: Result<BatchView<'_>, strandline_records::BatchError>,
) -> Result<BatchView<'_>, StorageError> {
    batch.and_then(|batch| batch.check_crc().map(|()| batch)).map_err(|error| {
        StorageError::new(ErrorKind::Corrupt, "batch in the log is damaged").caused_by(error)
    })
}

/// Runs `work` on a thread that may take its time.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Stopped::Interrupted("the broker stops")),
        },
    }
}
