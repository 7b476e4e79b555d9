//! The positions of a group: how far it has read each partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_model::{Timestamp, TopicId};

use super::command::GroupId;
use super::row::{GroupRow, OffsetKey};

/// A position that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the record before it; −1 when unknown.
    pub leader_epoch: i32,
    /// A note of the client.
    pub metadata: Arc<str>,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// When it expires, if the client said so (OffsetCommit v2 to v4).
    pub expires_at: Option<Timestamp>,
}

/// The positions of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets {
    topics: BTreeMap<TopicId, TopicOffsets>,
}

/// The positions in one topic.
#[derive(Clone, Debug, Default)]
pub(super) struct TopicOffsets {
    /// The topic's name, for matching with what members read; `None` when the topic is gone.
    pub(super) name: Option<Arc<str>>,
    pub(super) partitions: BTreeMap<i32, CommittedOffset>,
}

impl Offsets {
    pub(super) fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// How many positions there are. Walks the topics.
    pub(super) fn count(&self) -> usize {
        self.topics.values().map(|topic| topic.partitions.len()).sum()
    }

    pub(super) fn topics(&self) -> impl Iterator<Item = (TopicId, &TopicOffsets)> {
        self.topics.iter().map(|(id, topic)| (*id, topic))
    }

    pub(super) fn topic(&self, id: TopicId) -> Option<&TopicOffsets> {
        self.topics.get(&id)
    }

    pub(super) fn put(
        &mut self,
        topic_id: TopicId,
        name: Option<Arc<str>>,
        partition: i32,
        offset: CommittedOffset,
    ) {
        let topic = self.topics.entry(topic_id).or_default();
        topic.name = name;
        topic.partitions.insert(partition, offset);
    }

    /// Forgets a position; says so with a row if there was one.
    pub(super) fn remove(
        &mut self,
        group: &GroupId,
        topic_id: TopicId,
        partition: i32,
    ) -> Option<GroupRow> {
        let topic = self.topics.get_mut(&topic_id)?;
        topic.partitions.remove(&partition)?;
        if topic.partitions.is_empty() {
            self.topics.remove(&topic_id);
        }
        Some(removal(group, topic_id, partition))
    }

    /// Forgets the positions in a topic.
    pub(super) fn remove_topic(
        &mut self,
        group: &GroupId,
        topic_id: TopicId,
    ) -> impl Iterator<Item = GroupRow> {
        let removed = self.topics.remove(&topic_id).unwrap_or_default();
        let group = Arc::clone(group);
        removed.partitions.into_keys().map(move |partition| removal(&group, topic_id, partition))
    }

    /// The topic is called so from now on.
    pub(super) fn name_topic(&mut self, topic_id: TopicId, name: &Arc<str>) {
        if let Some(topic) = self.topics.get_mut(&topic_id) {
            topic.name = Some(Arc::clone(name));
        }
    }

    /// Forgets every position.
    pub(super) fn remove_all(&mut self, group: &GroupId) -> Vec<GroupRow> {
        let ids: Vec<TopicId> = self.topics.keys().copied().collect();
        ids.into_iter().flat_map(|id| self.remove_topic(group, id).collect::<Vec<_>>()).collect()
    }
}

fn removal(group: &GroupId, topic_id: TopicId, partition: i32) -> GroupRow {
    GroupRow::Offset(OffsetKey { group: Arc::clone(group), topic_id, partition }, None)
}
