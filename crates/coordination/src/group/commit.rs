//! OffsetCommit, OffsetFetch and OffsetDelete of one group.

use std::sync::Arc;

use strandline_model::TopicId;

use super::command::{CommitPartition, CommitRequest, DeleteOffsetsRequest, MemberRequest};
use super::error::GroupError;
use super::group::Group;
use super::offsets::CommittedOffset;
use super::reply::{CommitOutcome, DeleteOutcome, FetchedTopic};
use super::row::{GroupRow, OffsetKey};
use super::state::GroupState;
use super::turn::Turn;

impl Group {
    pub(super) fn commit(
        &mut self,
        request: &CommitRequest,
        turn: &mut Turn<'_>,
    ) -> Result<Vec<Vec<CommitOutcome>>, GroupError> {
        self.check_commit(&request.who)?;
        // Of a member in these states a commit says that it is alive.
        if matches!(self.classic.state, GroupState::Stable | GroupState::PreparingRebalance)
            && let Some(member) = self.classic.members.get(&request.who.member)
        {
            self.classic.keep_alive(member, turn);
        }
        let now = turn.now.time;
        let mut outcomes = Vec::with_capacity(request.topics.len());
        for topic in &request.topics {
            let mut of_topic = Vec::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                if is_too_long(partition, turn.config.offset_metadata_max) {
                    of_topic.push(CommitOutcome::MetadataTooLarge);
                    continue;
                }
                let offset = CommittedOffset {
                    offset: partition.offset,
                    leader_epoch: partition.leader_epoch,
                    metadata: Arc::clone(&partition.metadata),
                    committed_at: now,
                    expires_at: request.retention_ms.map(|keep_ms| now.plus_millis(keep_ms)),
                };
                let key = OffsetKey {
                    group: Arc::clone(&self.classic.id),
                    topic_id: topic.topic_id,
                    partition: partition.index,
                };
                turn.out.rows.push(GroupRow::Offset(key, Some(offset.clone())));
                let name = Some(Arc::clone(&topic.name));
                self.offsets.put(topic.topic_id, name, partition.index, offset);
                of_topic.push(CommitOutcome::Committed);
            }
            outcomes.push(of_topic);
        }
        Ok(outcomes)
    }

    fn check_commit(&self, who: &MemberRequest) -> Result<(), GroupError> {
        let group = &self.classic;
        if who.generation < 0 && group.is_empty() {
            // An administrator, or a consumer that assigns its partitions itself.
            return Ok(());
        }
        if who.generation < 0 && who.member.is_empty() && who.instance.is_none() {
            // Members would overwrite what an administrator commits under them.
            return Err(GroupError::UnknownMember);
        }
        group.check_generation(who)?;
        if group.state == GroupState::CompletingRebalance {
            return Err(GroupError::RebalanceInProgress);
        }
        Ok(())
    }

    pub(super) fn fetch(&self, asked: Option<&[(TopicId, Vec<i32>)]>) -> Vec<FetchedTopic> {
        let Some(asked) = asked else {
            let all = self.offsets.topics().map(|(topic_id, topic)| FetchedTopic {
                topic_id,
                partitions: (topic.partitions.iter())
                    .map(|(index, offset)| (*index, Some(offset.clone())))
                    .collect(),
            });
            return all.collect();
        };
        let found = asked.iter().map(|(topic_id, partitions)| {
            let topic = self.offsets.topic(*topic_id);
            let offset_of = |index| topic.and_then(|topic| topic.partitions.get(index)).cloned();
            FetchedTopic {
                topic_id: *topic_id,
                partitions: partitions.iter().map(|index| (*index, offset_of(index))).collect(),
            }
        });
        found.collect()
    }

    pub(super) fn delete_offsets(
        &mut self,
        request: &DeleteOffsetsRequest,
        turn: &mut Turn<'_>,
    ) -> Result<Vec<DeleteOutcome>, GroupError> {
        if !self.classic.is_empty() && !self.classic.uses_consumer_protocol() {
            // What the members read is not known.
            return Err(GroupError::NonEmptyGroup);
        }
        let mut outcomes = Vec::with_capacity(request.topics.len());
        for topic in &request.topics {
            if self.classic.is_subscribed_to(&topic.name) {
                outcomes.push(DeleteOutcome::Subscribed);
                continue;
            }
            for partition in &topic.partitions {
                let removed = self.offsets.remove(&self.classic.id, topic.topic_id, *partition);
                turn.out.rows.extend(removed);
            }
            outcomes.push(DeleteOutcome::Deleted);
        }
        Ok(outcomes)
    }
}

/// Kafka counts as Java does, in UTF-16 units.
fn is_too_long(partition: &CommitPartition, max: usize) -> bool {
    partition.metadata.len() > max && partition.metadata.encode_utf16().count() > max
}
