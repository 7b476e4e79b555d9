//! What the broker tells of itself to metrics, health checks and people.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_coordination::group::Rebalance;
use strandline_model::{ByteCount, Offset, PartitionIndex, Timestamp, TopicId};
use strandline_storage::{Figure, Space, Trouble};

use crate::Broker;
use crate::cleaner::Remains;
use crate::metrics::TopicMetrics;
use crate::reconciler::EngineReconciliation;
use crate::topic::Topic;

/// A topic at one moment.
#[derive(Clone, Debug)]
pub struct TopicStatus {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub id: TopicId,
    /// How many partitions it has.
    pub partition_count: u32,
    /// What was counted of it since the broker started.
    pub metrics: Arc<TopicMetrics>,
    /// Those of its partitions that store something, or did, or are open.
    pub partitions: Vec<PartitionStatus>,
}

/// A partition at one moment.
#[derive(Clone, Copy, Debug)]
pub struct PartitionStatus {
    /// Which one.
    pub index: PartitionIndex,
    /// Whether its log is open: it was used a moment ago.
    pub is_open: bool,
    /// Its first readable offset.
    pub log_start_offset: Offset,
    /// The offset after its last record.
    pub log_end_offset: Offset,
    /// The offset after its last durable record.
    pub high_watermark: Offset,
    /// Bytes that it stores.
    pub size: ByteCount,
    /// Segments that it consists of.
    pub segment_count: usize,
    /// Bytes that are beyond a limit and go with the next pass of retention.
    pub overdue: ByteCount,
}

/// A group at one moment.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// Kafka's name of its state.
    pub state: &'static str,
    /// Its generation, or the last one that it had.
    pub generation: i32,
    /// Why it left its last generation; nothing when it never did.
    pub rebalance: Option<Rebalance>,
}

impl Broker {
    /// A group; `None` when there is none of that name, an error in words when its coordinator can't
    /// say now.
    pub async fn group(&self, name: &str) -> Result<Option<GroupStatus>, String> {
        let found = self.groups().describe(&Arc::from(name)).await;
        let found = found.map_err(|_| "the coordinator is not available".to_owned())?;
        Ok(found.map(|group| GroupStatus {
            state: group.state.name(),
            generation: group.generation,
            rebalance: group.rebalance,
        }))
    }

    /// Every topic, by name.
    pub fn topics(&self) -> Vec<TopicStatus> {
        let topics = self.registry().all().into_iter().map(|topic| TopicStatus {
            name: topic.name().to_string(),
            id: topic.id(),
            partition_count: topic.partition_count(),
            metrics: topic.metrics_handle(),
            partitions: self.partitions_of(&topic),
        });
        topics.collect()
    }

    fn partitions_of(&self, topic: &Topic) -> Vec<PartitionStatus> {
        let policy = topic.settings().retention;
        let statuses = topic.partitions().into_iter().filter_map(|slot| {
            let is_open = slot.opened().is_some();
            let remains = self.cleaner().remains(topic, &slot, &policy)?;
            Some(partition_status(slot.id().index, is_open, &remains))
        });
        statuses.collect()
    }

    /// When retention last came to the end of a pass; `None` before the first.
    pub fn last_retention_pass(&self) -> Option<Timestamp> {
        self.cleaner().last_pass()
    }

    /// What reconciliation found last of each engine; empty before its first look.
    pub fn reconciliation(&self) -> Vec<EngineReconciliation> {
        self.reconciler().found()
    }

    /// How many topics there are.
    pub fn topic_count(&self) -> usize {
        self.registry().len()
    }

    /// What keeps engines from their work, by name; none while all is well.
    pub fn troubles(&self) -> Vec<(String, Trouble)> {
        let troubles = self.engines().iter();
        troubles.filter_map(|(name, store)| Some((name.to_owned(), store.trouble()?))).collect()
    }

    /// Engines that topics are kept in and that this broker does not have: how many topics, and the name of
    /// one. They are unavailable, and nothing of them is removed.
    pub fn missing_engines(&self) -> BTreeMap<String, (usize, String)> {
        let mut missing = BTreeMap::new();
        for topic in self.registry().all() {
            if self.engines().store(topic.engine()).is_err() {
                let first = || (0, topic.name().to_string());
                missing.entry(topic.engine().to_owned()).or_insert_with(first).0 += 1;
            }
        }
        missing
    }

    /// What each engine counts and measures.
    pub fn figures(&self) -> Vec<(String, Vec<Figure>)> {
        self.engines().iter().map(|(name, store)| (name.to_owned(), store.figures())).collect()
    }

    /// How much each engine holds.
    pub fn space(&self) -> Vec<(String, Space)> {
        self.engines().iter().map(|(name, store)| (name.to_owned(), store.space())).collect()
    }
}

fn partition_status(index: PartitionIndex, is_open: bool, remains: &Remains) -> PartitionStatus {
    let bounds = remains.bounds;
    PartitionStatus {
        index,
        is_open,
        log_start_offset: bounds.log_start,
        log_end_offset: bounds.written_end,
        high_watermark: bounds.durable_end,
        size: remains.segments.iter().map(|segment| segment.chunk.bytes).sum(),
        segment_count: remains.segments.len(),
        overdue: remains.due_bytes(),
    }
}
