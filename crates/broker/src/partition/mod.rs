//! A partition at work: the rules of `strandline_partition` beside an open log.
//!
//! # Invariants
//! - Admission, sealing and submitting happen under one short lock, so offsets are assigned in the
//!   order in which the engine gets them. The lock is never held across an `.await`.
//! - The high watermark is the log's durable end: nothing that a crash can take back is seen.
//! - After the log died the partition is dropped; its slot opens it anew.

mod open;
mod signals;
mod slot;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::{
    ByteCount, LeaderEpoch, Limits, Offset, PartitionId, ProducerEpoch, ProducerId, Sequence,
    Timestamp,
};
use strandline_partition::{
    Admission, CachedBatch, EpochEnd, PartitionState, ProducerEntry, Rejected, admit,
};
use strandline_records::ValidBatch;
use strandline_storage::{AppendError, CommitLog, ErrorKind, LogBounds, StorageError, Ticket};
use tokio::sync::Semaphore;

pub(crate) use open::{OpenContext, SaveStateError, into_memory};
use signals::Listener;
pub(crate) use signals::Signals;
pub(crate) use slot::{PartitionSlot, SlotError};

/// Bytes appended since the last save of the state after which it is saved again: what opening has
/// to replay at most.
const STATE_SAVE_BYTES: ByteCount = ByteCount::mib(64);

/// What an opening may have to replay because nothing was saved when the partition was closed.
const REPLAY_BYTES_MAX: ByteCount = ByteCount::kib(64);

/// An open partition.
#[derive(Debug)]
pub(crate) struct Partition {
    id: PartitionId,
    log: Arc<dyn CommitLog>,
    leader_epoch: LeaderEpoch,
    core: Mutex<Core>,
    /// What the log tells of itself.
    listener: Arc<Listener>,
    /// One saves the state at a time.
    saving: Semaphore,
}

#[derive(Debug)]
struct Core {
    /// Derived from everything before `next_offset`.
    state: PartitionState,
    /// The log's written end.
    next_offset: Offset,
    /// Bytes appended since the state was saved.
    unsaved: ByteCount,
}

impl Core {
    /// Whether an opening finds the state as it is, without much reading.
    fn is_kept(&self) -> bool {
        let is_short = self.unsaved <= REPLAY_BYTES_MAX && self.state.producers.is_empty();
        self.unsaved == ByteCount::ZERO || is_short
    }
}

/// A producer that a partition remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownProducer {
    pub(crate) id: ProducerId,
    pub(crate) epoch: ProducerEpoch,
    /// Of its last batch; `None` when none is remembered.
    pub(crate) last_sequence: Option<Sequence>,
    /// When it appended last, by the broker's clock.
    pub(crate) last_seen: Timestamp,
}

/// An append that was taken.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The offset of the batch's first record.
    pub(crate) base_offset: Offset,
    /// The broker's time of the (first) append.
    pub(crate) at: Timestamp,
    /// The newest time in the batch, when this is a retry of one that was appended before.
    pub(crate) duplicate_of: Option<Timestamp>,
    /// Resolves when the answer may be given: it reveals nothing that is not durable.
    pub(crate) ticket: Ticket,
    /// Whether enough was appended that the state should be saved.
    pub(crate) should_save_state: bool,
}

/// Why a batch was not appended.
#[derive(Debug)]
pub(crate) enum AppendFailure {
    /// The rules refuse it.
    Rejected(Rejected),
    /// The engine has no room for the moment; the batch comes back for another try.
    Busy(ValidBatch),
    /// The engine failed.
    Storage(StorageError),
}

impl Partition {
    pub(crate) const fn id(&self) -> PartitionId {
        self.id
    }

    pub(crate) const fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    pub(crate) fn log(&self) -> &dyn CommitLog {
        self.log.as_ref()
    }

    /// Whether the log has failed: the slot opens the partition anew.
    pub(crate) fn is_dead(&self) -> bool {
        self.listener.is_dead()
    }

    pub(crate) fn bounds(&self) -> LogBounds {
        self.log.bounds()
    }

    /// Admits, seals and submits one batch.
    pub(crate) fn append(
        &self,
        batch: ValidBatch,
        now: Timestamp,
    ) -> Result<Appended, AppendFailure> {
        let mut core = self.core.lock();
        match admit(&batch.view(), &core.state.producers).map_err(AppendFailure::Rejected)? {
            Admission::Append => self.submit(&mut core, batch, now),
            Admission::Duplicate { base_offset, next_offset, appended_at } => {
                drop(core);
                let duplicate_of = batch.view().max_timestamp();
                // A retry of a batch that is not durable yet waits for it.
                let ticket = self.log.durable(next_offset);
                Ok(Appended {
                    base_offset,
                    at: appended_at,
                    duplicate_of,
                    ticket,
                    should_save_state: false,
                })
            }
        }
    }

    fn submit(
        &self,
        core: &mut Core,
        batch: ValidBatch,
        now: Timestamp,
    ) -> Result<Appended, AppendFailure> {
        let base_offset = core.next_offset;
        let sealed = batch.seal(base_offset, self.leader_epoch, now);
        let ticket = match self.log.submit(base_offset, sealed.clone()) {
            Ok(ticket) => ticket,
            Err(AppendError::Busy) => return Err(AppendFailure::Busy(ValidBatch::unseal(sealed))),
            Err(AppendError::Refused(error)) => return Err(AppendFailure::Storage(error)),
            Err(AppendError::Moved { written_end }) => {
                // One opener at a time appends, under this lock: the ends can only differ by a bug.
                panic!("log of {} ends at {written_end}, not at {base_offset}", self.id)
            }
        };
        for batch in sealed.iter() {
            core.state.record(&batch, now);
        }
        if core.state.producers.len() > Limits::production().producers_per_partition_max {
            core.state.producers.evict_oldest();
        }
        core.next_offset = sealed.next_offset();
        core.unsaved += sealed.size();
        let should_save_state = core.unsaved >= STATE_SAVE_BYTES;
        Ok(Appended { base_offset, at: now, duplicate_of: None, ticket, should_save_state })
    }

    /// Where `epoch` ended, as far as readers may know.
    pub(crate) fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<EpochEnd> {
        let durable_end = self.bounds().durable_end;
        self.core.lock().state.epochs.end_of(epoch, self.leader_epoch, durable_end)
    }

    /// The epoch of the last record below `offset`, for a lookup's answer.
    pub(crate) fn latest_epoch(&self) -> LeaderEpoch {
        self.core.lock().state.epochs.latest().unwrap_or(self.leader_epoch)
    }

    /// The epoch of the first record, for a lookup's answer.
    pub(crate) fn earliest_epoch(&self) -> LeaderEpoch {
        let core = self.core.lock();
        core.state.epochs.iter().next().map_or(self.leader_epoch, |(epoch, _)| epoch)
    }

    /// Deletes the records below `upto`, which must not lie past the durable end: the log start
    /// afterwards. Who waits for records learns of it.
    ///
    /// What is derived from them is saved first: producers outlive their records. On a full disk making
    /// room comes before that.
    pub(crate) async fn delete_records_before(&self, upto: Offset) -> Result<Offset, StorageError> {
        if upto > self.bounds().log_start {
            match self.save_state().await {
                Err(error) if error.kind() == ErrorKind::Full => {
                    tracing::warn!(partition = %self.id, %error, "partition state was not saved");
                }
                saved => saved?,
            }
        }
        let log_start = self.log.trim(upto).await?.log_start;
        self.core.lock().state.trim(log_start);
        self.listener.wake();
        Ok(log_start)
    }

    /// Where the last batch of each producer ends that is remembered.
    pub(crate) fn last_batches(&self) -> BTreeMap<ProducerId, Offset> {
        let core = self.core.lock();
        let last = |(id, entry): (ProducerId, &ProducerEntry)| {
            entry.batches().last().map(|batch| (id, batch.next_offset()))
        };
        core.state.producers.iter().filter_map(last).collect()
    }

    /// The producers that are remembered, by id.
    pub(crate) fn producers(&self) -> Vec<KnownProducer> {
        let core = self.core.lock();
        let known = core.state.producers.iter().map(|(id, entry)| KnownProducer {
            id,
            epoch: entry.epoch(),
            last_sequence: entry.batches().last().map(CachedBatch::last_sequence),
            last_seen: entry.last_seen(),
        });
        known.collect()
    }

    /// Forgets producers that were silent for `expiration_ms`.
    pub(crate) fn expire_producers(&self, now: Timestamp, expiration_ms: i64) {
        self.core.lock().state.producers.expire(now, expiration_ms);
    }

    /// Saves the derived state beside the log, as of what is written now, once that is durable.
    /// Waits for somebody else who is at it; does nothing when nothing was appended since.
    pub(crate) async fn save_state(&self) -> Result<(), SaveStateError> {
        let permit = self.saving.acquire().await.expect("the semaphore is never closed");
        let saved = self.save_state_now().await;
        drop(permit);
        saved
    }

    /// As [`save_state`](Self::save_state), unless somebody else is at it.
    pub(crate) async fn save_state_unless_saving(&self) -> Result<(), SaveStateError> {
        match self.saving.try_acquire() {
            Ok(_permit) => self.save_state_now().await,
            Err(_) => Ok(()),
        }
    }

    /// Saves the state, unless opening the partition anew finds all of it in a short stretch of the log.
    /// When a producer was seen the log does not tell: that is saved.
    pub(crate) async fn save_state_to_close(&self) -> Result<(), SaveStateError> {
        if self.core.lock().is_kept() { Ok(()) } else { self.save_state().await }
    }

    /// Whether nothing is lost when the partition is closed now: what was appended is durable, and what
    /// is derived from it is saved or quickly found again.
    pub(super) fn is_at_rest(&self) -> bool {
        let core = self.core.lock();
        let bounds = self.bounds();
        !self.is_dead() && bounds.durable_end == bounds.written_end && core.is_kept()
    }

    async fn save_state_now(&self) -> Result<(), SaveStateError> {
        let (at, state, unsaved) = {
            let core = self.core.lock();
            if core.unsaved == ByteCount::ZERO {
                return Ok(());
            }
            (core.next_offset, core.state.encode(), core.unsaved)
        };
        self.log.durable(at).await?;
        self.log.save_state(at, state).await?;
        self.core.lock().unsaved -= unsaved;
        Ok(())
    }
}
