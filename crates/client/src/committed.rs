//! Committed offsets of groups: read, set, deleted, by somebody who is no member.

use std::collections::BTreeMap;

use strandline_wire::{ApiKey, KafkaString, offset_commit, offset_delete, offset_fetch};

use crate::client::subject_of as partition_subject;
use crate::group::{no_answer, subject_of};
use crate::{Client, ClientError};

/// From this version on topics have ids instead of names. What this client is told by people are
/// names, so it stays below.
const BY_NAME_MAX: i16 = 9;

/// What a group committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The next offset that the group will read.
    pub offset: i64,
    /// What the committer noted beside it.
    pub metadata: String,
}

/// How it went with one partition of several.
#[derive(Debug)]
pub struct PartitionOutcome {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// How it went.
    pub result: Result<(), ClientError>,
}

impl Client {
    /// Everything that a group committed, by topic and partition. Nothing for a group that is not
    /// there.
    pub async fn committed(&mut self, group: &str) -> Result<Vec<CommittedOffset>, ClientError> {
        // Version 8 asks for several groups at once, all older ones for one.
        let in_list = self.version_of(ApiKey::OffsetFetch).await? >= 8;
        let id = KafkaString::from(group.to_owned());
        let request = || offset_fetch::Request {
            group_id: if in_list { KafkaString::default() } else { id.clone() },
            topics: None,
            groups: if in_list {
                vec![offset_fetch::OffsetFetchRequestGroup {
                    group_id: id.clone(),
                    member_epoch: -1,
                    topics: None,
                    ..Default::default()
                }]
            } else {
                Vec::new()
            },
            ..Default::default()
        };
        let answer = |response: offset_fetch::Response| {
            ClientError::check(response.error_code, || subject_of(group), None)?;
            if in_list { of_group(response, group) } else { of_topics(response.topics) }
        };
        let mut committed =
            self.call_coordinator(group, BY_NAME_MAX, |_| request(), answer).await?;
        committed.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        Ok(committed)
    }

    /// Commits offsets for a group that has no members; a group that is not there is made.
    pub async fn commit_offsets(
        &mut self,
        group: &str,
        offsets: &[(String, i32, i64)],
    ) -> Result<Vec<PartitionOutcome>, ClientError> {
        let mut topics: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (topic, partition, offset) in offsets {
            topics.entry(topic).or_default().push(offset_commit::OffsetCommitRequestPartition {
                partition_index: *partition,
                committed_offset: *offset,
                committed_leader_epoch: -1,
                committed_metadata: Some(KafkaString::default()),
                ..Default::default()
            });
        }
        let topic =
            |(name, partitions): (&&str, &Vec<_>)| offset_commit::OffsetCommitRequestTopic {
                name: KafkaString::from((*name).to_owned()),
                partitions: partitions.clone(),
                ..Default::default()
            };
        let request = || offset_commit::Request {
            group_id: KafkaString::from(group.to_owned()),
            generation_id_or_member_epoch: -1,
            retention_time_ms: -1,
            topics: topics.iter().map(topic).collect(),
            ..Default::default()
        };
        let answer = |response: offset_commit::Response| {
            let answers = response.topics.into_iter().flat_map(|topic| {
                let name = topic.name.to_string();
                let answers = topic.partitions.into_iter();
                answers.map(move |answer| (name.clone(), answer.partition_index, answer.error_code))
            });
            retry_or_outcomes(group, answers)
        };
        self.call_coordinator(group, BY_NAME_MAX, |_| request(), answer).await
    }

    /// Deletes what a group committed for some partitions.
    pub async fn delete_offsets(
        &mut self,
        group: &str,
        partitions: &[(String, i32)],
    ) -> Result<Vec<PartitionOutcome>, ClientError> {
        let mut topics: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (topic, partition) in partitions {
            topics.entry(topic).or_default().push(offset_delete::OffsetDeleteRequestPartition {
                partition_index: *partition,
                ..Default::default()
            });
        }
        let topic =
            |(name, partitions): (&&str, &Vec<_>)| offset_delete::OffsetDeleteRequestTopic {
                name: KafkaString::from((*name).to_owned()),
                partitions: partitions.clone(),
                ..Default::default()
            };
        let request = || offset_delete::Request {
            group_id: KafkaString::from(group.to_owned()),
            topics: topics.iter().map(topic).collect(),
            ..Default::default()
        };
        let answer = |response: offset_delete::Response| {
            ClientError::check(response.error_code, || subject_of(group), None)?;
            let answers = response.topics.into_iter().flat_map(|topic| {
                let name = topic.name.to_string();
                let answers = topic.partitions.into_iter();
                answers.map(move |answer| (name.clone(), answer.partition_index, answer.error_code))
            });
            retry_or_outcomes(group, answers)
        };
        self.call_coordinator(group, i16::MAX, |_| request(), answer).await
    }
}

/// A coordinator that is not ready says so in each partition: then nothing was done, and the call
/// as a whole is to be made again.
fn retry_or_outcomes(
    group: &str,
    answers: impl Iterator<Item = (String, i32, i16)>,
) -> Result<Vec<PartitionOutcome>, ClientError> {
    let mut outcomes = Vec::new();
    for (topic, partition, code) in answers {
        let whole = ClientError::check(code, || subject_of(group), None);
        if let Err(error) = whole
            && crate::coordinator::waits_for_coordinator(&error)
        {
            return Err(error);
        }
        let result = ClientError::check(code, || partition_subject(&topic, partition), None);
        outcomes.push(PartitionOutcome { topic, partition, result });
    }
    Ok(outcomes)
}

fn of_group(
    response: offset_fetch::Response,
    group: &str,
) -> Result<Vec<CommittedOffset>, ClientError> {
    let answer = response.groups.into_iter().next().ok_or_else(|| no_answer(group))?;
    ClientError::check(answer.error_code, || subject_of(group), None)?;
    let topics = answer.topics.into_iter().map(|topic| offset_fetch::OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| offset_fetch::OffsetFetchResponsePartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata,
                error_code: partition.error_code,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    of_topics(topics.collect())
}

fn of_topics(
    topics: Vec<offset_fetch::OffsetFetchResponseTopic>,
) -> Result<Vec<CommittedOffset>, ClientError> {
    let mut committed = Vec::new();
    for topic in topics {
        let name = topic.name.to_string();
        for partition in topic.partitions {
            let index = partition.partition_index;
            ClientError::check(partition.error_code, || partition_subject(&name, index), None)?;
            if partition.committed_offset < 0 {
                continue;
            }
            committed.push(CommittedOffset {
                topic: name.clone(),
                partition: index,
                offset: partition.committed_offset,
                metadata: partition.metadata.map(|text| text.to_string()).unwrap_or_default(),
            });
        }
    }
    Ok(committed)
}
