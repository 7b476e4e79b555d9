//! Opening partitions on demand, and looking after those that are open.

use std::sync::Arc;
use std::time::Duration;

use strandline_model::Offset;
use strandline_storage::{ErrorKind, LogStore, StorageError};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::Broker;
use crate::engines::Engines;
use crate::environment::Environment;
use crate::fetch::ReadFailures;
use crate::partition::{OpenContext, Partition, PartitionSlot, SlotError};
use crate::tasks;
use crate::topic::{Registry, Topic};

/// How partitions are opened.
#[derive(Debug)]
pub(crate) struct Partitions {
    engines: Engines,
    environment: Arc<dyn Environment>,
    /// Where openings and saves run: they outlive the connection that caused them.
    runtime: Handle,
    read_failures: Arc<ReadFailures>,
}

impl Partitions {
    pub(crate) fn new(
        engines: Engines,
        environment: Arc<dyn Environment>,
        runtime: Handle,
    ) -> Self {
        Self { engines, environment, runtime, read_failures: Arc::default() }
    }

    /// The partition of `slot`, opened now if it was not.
    pub(crate) async fn open(
        &self,
        topic: &Topic,
        slot: &Arc<PartitionSlot>,
    ) -> Result<Arc<Partition>, SlotError> {
        slot.note_use();
        match slot.opened() {
            Some(partition) => Ok(partition),
            None => slot.open(&self.open_context(topic)?).await,
        }
    }

    /// The engine that keeps the logs of `topic`.
    pub(crate) fn store_of(&self, topic: &Topic) -> Result<Arc<dyn LogStore>, StorageError> {
        self.engines.store(topic.engine())
    }

    fn open_context(&self, topic: &Topic) -> Result<OpenContext, StorageError> {
        Ok(OpenContext {
            store: self.store_of(topic)?,
            settings: Arc::clone(topic.settings_handle()),
            now: self.environment.now(),
            runtime: self.runtime.clone(),
        })
    }

    /// What readers met that could not read.
    pub(crate) const fn read_failures(&self) -> &Arc<ReadFailures> {
        &self.read_failures
    }

    /// Somebody could not read a partition: the log tells of it, and who asks about the storage.
    pub(crate) fn note_read_failure(
        &self,
        topic: &Topic,
        slot: &PartitionSlot,
        from: Offset,
        error: &StorageError,
    ) {
        if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Missing | ErrorKind::Unavailable)
        {
            return;
        }
        let engine = self.store_of(topic).ok().and_then(|store| store.trouble());
        if engine.is_some() && error.kind() == ErrorKind::Unavailable {
            // The whole engine is cut off, which readiness tells of: nothing is wrong with the log.
            return;
        }
        let what =
            format!("records can't be read. offset=`{from}`, cause=`{}`", error.in_one_line());
        if self.read_failures.note(slot.id(), &what, self.environment.monotonic()) {
            let (topic, partition) = (topic.name(), slot.id());
            tracing::error!(%topic, %partition, what, "partition can't be read, or in part");
        }
    }

    /// The leader epoch to tell of a partition without opening it.
    pub(crate) fn leader_epoch(&self, topic: &Topic, slot: &PartitionSlot) -> i32 {
        if let Some(partition) = slot.opened() {
            return partition.leader_epoch().get();
        }
        let known = self.store_of(topic).ok().and_then(|store| store.epoch(slot.id()));
        // A client that is told a lower epoch than the log gets at its opening is sent back here
        // once, and told the right one then.
        known.map_or(0, strandline_model::LeaderEpoch::get)
    }

    /// Saves the state of `partition` in the background.
    pub(crate) fn save_state_soon(&self, partition: &Arc<Partition>) {
        let partition = Arc::clone(partition);
        tasks::spawn(&self.runtime, "save partition state", async move {
            if let Err(error) = partition.save_state_unless_saving().await {
                tracing::warn!(partition = %partition.id(), %error, "partition state was not saved");
            }
        });
    }
}

/// Every open partition of every topic.
pub(crate) fn open_partitions(registry: &Registry) -> impl Iterator<Item = Arc<Partition>> {
    registry.all().into_iter().flat_map(|topic| topic.partitions()).filter_map(|slot| slot.opened())
}

/// Every so often forgets producers that have been silent for too long, until `stop`.
pub(crate) async fn forget_silent_producers(broker: Arc<Broker>, stop: CancellationToken) {
    let interval = broker.config().producer_id_expiration_check_interval_ms;
    let interval = Duration::from_millis(interval);
    loop {
        tokio::select! {
            () = broker.environment().sleep(interval) => {}
            () = stop.cancelled() => return,
        }
        let now = broker.environment().now();
        let expiration_ms = broker.config().producer_id_expiration_ms;
        for partition in open_partitions(broker.registry()) {
            partition.expire_producers(now, expiration_ms);
        }
    }
}
