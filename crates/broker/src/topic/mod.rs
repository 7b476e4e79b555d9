//! Topics: what exists, how it is created, and how it goes.

mod adopt;
mod alter;
mod create;
mod delete;
mod deletion_row;
mod registry;
mod resting;
mod row;
mod undelete;

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use strandline_model::{PartitionId, PartitionIndex, TopicId, TopicName};

use crate::metrics::TopicMetrics;
use crate::partition::PartitionSlot;
use crate::settings::{SettingsSource, TopicSettings};

pub use adopt::{AdoptError, Adoption, adopt};
pub(crate) use alter::AlterTopicError;
pub(crate) use create::{
    CreateError, CreatePartitionsError, NewTopic, PARTITIONS_PER_REQUEST_MAX, PlannedTopic,
};
pub(crate) use delete::DeleteError;
pub(crate) use deletion_row::{DeletedBy, DeletionRow, deletion_key};
pub use registry::LoadError;
pub(crate) use registry::Registry;
pub(crate) use resting::RestingNames;
pub(crate) use row::{TopicRow, name_key, topic_key};
pub use undelete::UndeleteError;

/// A topic that exists, or did when the reference was taken.
#[derive(Debug)]
pub(crate) struct Topic {
    id: TopicId,
    name: TopicName,
    engine: String,
    /// Shared with openings of its logs, which take the settings that count when they end.
    settings: Arc<ArcSwap<TopicSettings>>,
    partitions: RwLock<Vec<Arc<PartitionSlot>>>,
    metrics: Arc<TopicMetrics>,
}

impl Topic {
    pub(crate) fn new(
        id: TopicId,
        name: TopicName,
        engine: String,
        partition_count: u32,
        settings: Arc<TopicSettings>,
    ) -> Self {
        let topic = Self {
            id,
            name,
            engine,
            settings: Arc::new(ArcSwap::new(settings)),
            partitions: RwLock::default(),
            metrics: Arc::default(),
        };
        topic.grow_to(partition_count);
        topic
    }

    pub(crate) const fn id(&self) -> TopicId {
        self.id
    }

    pub(crate) const fn name(&self) -> &TopicName {
        &self.name
    }

    /// The name of the engine that keeps the topic's logs.
    pub(crate) fn engine(&self) -> &str {
        &self.engine
    }

    pub(crate) fn settings(&self) -> Arc<TopicSettings> {
        self.settings.load_full()
    }

    pub(crate) const fn settings_handle(&self) -> &Arc<ArcSwap<TopicSettings>> {
        &self.settings
    }

    /// Puts other settings in effect, in open logs too. Changes come one at a time.
    pub(crate) fn configure(&self, settings: Arc<TopicSettings>) {
        self.settings.store(settings);
        self.configure_logs();
    }

    /// Resolves the settings anew if the broker's configuration changed since. May meet a change of
    /// the topic's own, which stays.
    pub(crate) fn refresh_settings(&self, source: &SettingsSource) {
        let before = self.settings.rcu(|settings| {
            if settings.generation == source.generation() {
                Arc::clone(settings)
            } else {
                source.shared_topic(settings.overrides.clone())
            }
        });
        if !Arc::ptr_eq(&before, &self.settings()) {
            self.configure_logs();
        }
    }

    fn configure_logs(&self) {
        for partition in self.partitions().iter().filter_map(|slot| slot.opened()) {
            partition.log().configure(self.settings().log.clone());
        }
    }

    pub(crate) fn partition_count(&self) -> u32 {
        u32::try_from(self.partitions.read().len()).expect("counts come from 32 bits")
    }

    /// Partition `index` as the wire names it; `None` when there is none.
    pub(crate) fn partition(&self, index: i32) -> Option<Arc<PartitionSlot>> {
        let index = usize::try_from(index).ok()?;
        self.partitions.read().get(index).map(Arc::clone)
    }

    pub(crate) fn partitions(&self) -> Vec<Arc<PartitionSlot>> {
        self.partitions.read().clone()
    }

    /// Adds partitions until there are `count`; never removes one.
    pub(crate) fn grow_to(&self, count: u32) {
        let mut partitions = self.partitions.write();
        let have = u32::try_from(partitions.len()).expect("counts come from 32 bits");
        partitions.extend((have..count).map(|index| {
            let id = PartitionId::new(self.id, PartitionIndex::new(index));
            Arc::new(PartitionSlot::new(id))
        }));
    }

    pub(crate) fn metrics(&self) -> &TopicMetrics {
        &self.metrics
    }

    pub(crate) fn metrics_handle(&self) -> Arc<TopicMetrics> {
        Arc::clone(&self.metrics)
    }

    /// Ends the topic for whoever still holds it: parked readers wake and learn that it is gone.
    pub(crate) fn delete(&self) {
        for partition in self.partitions() {
            partition.delete();
        }
    }
}
