//! Opening a partition: claim the log, then rebuild what is derived from it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_partition::PartitionState;
use strandline_records::batches;
use strandline_storage::{
    BatchBytes, CommitLog, ErrorKind, LogListener, LogStore, Minimum, OpenLog, ReadError,
    ReadLimit, StorageError,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::signals::Listener;
use super::{Core, Partition, Signals};
use crate::settings::TopicSettings;

/// Bytes read at a time while the tail of a log is replayed.
const REPLAY_STEP: ByteCount = ByteCount::mib(1);

/// What opening needs to know.
#[derive(Clone, Debug)]
pub(crate) struct OpenContext {
    /// The engine of the topic.
    pub(crate) store: Arc<dyn LogStore>,
    /// How the topic wants its logs kept; may change while the log is opened.
    pub(crate) settings: Arc<ArcSwap<TopicSettings>>,
    /// Where the opening runs, so that it outlives the connection that asked.
    pub(crate) runtime: Handle,
    /// When: producers that are found in the log count as seen now.
    pub(crate) now: Timestamp,
}

/// Why the state was not saved: the log failed.
pub(crate) type SaveStateError = StorageError;

impl Partition {
    /// Opens the log of `id` and rebuilds the state: from where it was saved last, or the log start.
    pub(super) async fn open(
        id: PartitionId,
        signals: Arc<Signals>,
        context: &OpenContext,
    ) -> Result<Self, StorageError> {
        let listener = Arc::new(Listener::new(id, signals));
        let request = OpenLog {
            id,
            at_least: LeaderEpoch::ZERO,
            settings: context.settings.load().log.clone(),
            listener: Arc::clone(&listener) as Arc<dyn LogListener>,
        };
        let opened = context.store.open(request).await?;
        let bounds = opened.log.bounds();
        let (from, mut state) = saved_state(opened.log.as_ref(), bounds.durable_end).await?;
        let replay = Replay {
            log: opened.log.as_ref(),
            now: context.now,
            state: &mut state,
            bytes: ByteCount::ZERO,
        };
        let replayed = replay.run(from.max(bounds.log_start), bounds.durable_end).await?;
        state.trim(bounds.log_start);
        Ok(Self {
            id,
            log: opened.log,
            leader_epoch: opened.epoch,
            core: Mutex::new(Core { state, next_offset: bounds.written_end, unsaved: replayed }),
            listener,
            saving: Semaphore::new(1),
        })
    }
}

/// The saved state and the offset that it is as of. One that can't be used is as good as none: the
/// whole log is replayed.
async fn saved_state(
    log: &dyn CommitLog,
    end: Offset,
) -> Result<(Offset, PartitionState), StorageError> {
    let Some((at, bytes)) = log.load_state().await? else {
        return Ok((Offset::ZERO, PartitionState::default()));
    };
    if at > end {
        tracing::warn!(%at, %end, "saved state lies above the log end, replaying the log");
        return Ok((Offset::ZERO, PartitionState::default()));
    }
    match PartitionState::decode(bytes) {
        Ok(state) => Ok((at, state)),
        Err(error) => {
            tracing::warn!(%error, "saved state is of no use, replaying the log");
            Ok((Offset::ZERO, PartitionState::default()))
        }
    }
}

/// Rebuilds a state from the batches of a log.
struct Replay<'a> {
    log: &'a dyn CommitLog,
    /// The log does not say when a batch was appended, and a client's timestamp may be wrong in
    /// either direction: a producer that is found counts as seen now, so it is kept too long rather
    /// than forgotten too early.
    now: Timestamp,
    state: &'a mut PartitionState,
    /// How much was replayed.
    bytes: ByteCount,
}

impl Replay<'_> {
    /// Says how many bytes were replayed.
    async fn run(mut self, from: Offset, end: Offset) -> Result<ByteCount, StorageError> {
        let limit = ReadLimit { bytes: REPLAY_STEP, minimum: Minimum::OneBatch };
        let mut next = from;
        while next < end {
            let read = self.log.read(next, end, limit).await.map_err(|error| match error {
                ReadError::Storage(error) => error,
                ReadError::OutOfRange(_) => {
                    let message = "log was trimmed while it was replayed";
                    StorageError::new(ErrorKind::Unavailable, message)
                }
            })?;
            let after = self.record_all(&into_memory(read).await?, from)?;
            if after <= next {
                let message = format!("log can't be replayed. offset=`{next}`");
                return Err(StorageError::new(ErrorKind::Corrupt, message));
            }
            next = after;
        }
        Ok(self.bytes)
    }

    /// Records the batches that lie at or after `from`; returns the offset after the last one.
    fn record_all(&mut self, bytes: &Bytes, from: Offset) -> Result<Offset, StorageError> {
        let mut after = Offset::ZERO;
        for batch in batches(bytes) {
            let batch = batch.map_err(|error| {
                StorageError::new(ErrorKind::Corrupt, "batch in the log is damaged")
                    .caused_by(error)
            })?;
            after = batch.next_offset().unwrap_or(after);
            if batch.base_offset().is_some_and(|base| base >= from) {
                self.state.record(&batch, self.now);
                self.bytes += ByteCount::of(batch.bytes());
            }
        }
        Ok(after)
    }
}

/// All bytes in memory, read off the runtime's thread when they come from a file.
pub(crate) async fn into_memory(read: BatchBytes) -> Result<Bytes, StorageError> {
    let on_disk =
        read.pieces().iter().any(|p| matches!(p, strandline_storage::BatchPiece::File(_)));
    let bytes = if on_disk {
        tokio::task::spawn_blocking(move || read.read_to_memory()).await.map_err(|_| {
            StorageError::new(ErrorKind::Unavailable, "reading was given up at shutdown")
        })?
    } else {
        read.read_to_memory()
    };
    bytes.map_err(|error| StorageError::io("read batches", error))
}
