//! Offsets by time.

use std::collections::BTreeMap;

use strandline_model::Timestamp;
use strandline_wire::{ApiKey, KafkaString, list_offsets};

use crate::client::{Leader, asks_for_lookup, loses_connection, subject_of};
use crate::{Client, ClientError, Sent};

/// Which offset of a partition is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetAt {
    /// The log start offset.
    Earliest,
    /// The high watermark: the next record that consumers will see.
    Latest,
    /// The record with the newest timestamp.
    MaxTimestamp,
    /// The first record at or after that time.
    Time(Timestamp),
}

/// An offset, and the time of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset; −1 when no record fits.
    pub offset: i64,
    /// The time of its record; −1 when there is none, as for the earliest and the latest.
    pub timestamp: i64,
}

impl OffsetAt {
    const fn to_wire(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            Self::Time(time) => time.as_millis(),
        }
    }
}

/// A partition, and which of its offsets is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetQuestion {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Which offset.
    pub at: OffsetAt,
}

impl Client {
    /// Finds offsets of many partitions, in the order of the questions: one request to each leader,
    /// all under way at once. No partition may be named twice.
    pub async fn offsets(
        &mut self,
        questions: &[OffsetQuestion],
    ) -> Vec<Result<FoundOffset, ClientError>> {
        let mut answers: Vec<Option<Result<FoundOffset, ClientError>>> = Vec::new();
        let mut by_leader: Vec<(i32, Vec<(usize, Leader)>)> = Vec::new();
        for (index, question) in questions.iter().enumerate() {
            match self.leader(&question.topic, question.partition, false).await {
                Ok(leader) => {
                    answers.push(None);
                    match by_leader.iter_mut().find(|(node_id, _)| *node_id == leader.node_id) {
                        Some((_, wanted)) => wanted.push((index, leader)),
                        None => by_leader.push((leader.node_id, vec![(index, leader)])),
                    }
                }
                Err(error) => answers.push(Some(Err(error))),
            }
        }
        let mut under_way = Vec::new();
        for (node_id, wanted) in &by_leader {
            // What can't be sent is asked for once more below, one by one, with its error.
            if let Ok(sent) = self.send_questions(*node_id, questions, wanted).await {
                under_way.push((*node_id, sent));
            }
        }
        let mut places = BTreeMap::new();
        for (index, question) in questions.iter().enumerate() {
            places.insert((question.topic.as_str(), question.partition), index);
        }
        for (node_id, sent) in under_way {
            let Ok(response) = self.receive_offsets(node_id, sent).await else { continue };
            for topic in response.topics {
                for found in topic.partitions {
                    let place = (topic.name.as_str(), found.partition_index);
                    let Some(&index) = places.get(&place) else { continue };
                    let subject = || subject_of(topic.name.as_str(), found.partition_index);
                    let result = ClientError::check(found.error_code, subject, None)
                        .map(|()| FoundOffset { offset: found.offset, timestamp: found.timestamp });
                    answers[index] = Some(result);
                }
            }
        }
        let mut all = Vec::new();
        for (answer, question) in answers.into_iter().zip(questions) {
            all.push(match answer {
                Some(Err(error)) if asks_for_lookup(&error, false) => {
                    self.forget(&question.topic);
                    self.offset(&question.topic, question.partition, question.at).await
                }
                Some(answer) => answer,
                None => self.offset(&question.topic, question.partition, question.at).await,
            });
        }
        all
    }

    async fn send_questions(
        &mut self,
        node_id: i32,
        questions: &[OffsetQuestion],
        wanted: &[(usize, Leader)],
    ) -> Result<Sent, ClientError> {
        let mut topics: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (index, leader) in wanted {
            let question = &questions[*index];
            topics.entry(&question.topic).or_default().push(list_offsets::ListOffsetsPartition {
                partition_index: question.partition,
                current_leader_epoch: leader.epoch,
                timestamp: question.at.to_wire(),
                ..Default::default()
            });
        }
        let topic = |(name, partitions): (&str, Vec<_>)| list_offsets::ListOffsetsTopic {
            name: KafkaString::from(name.to_owned()),
            partitions,
            ..Default::default()
        };
        let request = list_offsets::Request {
            replica_id: -1,
            topics: topics.into_iter().map(topic).collect(),
            ..Default::default()
        };
        let connection = self.broker(node_id).await?;
        let api = connection.version(ApiKey::ListOffsets, i16::MAX)?;
        connection.send(api, &request).await
    }

    async fn receive_offsets(
        &mut self,
        node_id: i32,
        sent: Sent,
    ) -> Result<list_offsets::Response, ClientError> {
        let after = self.config().request_timeout;
        let connection = self.broker(node_id).await?;
        let address = connection.address().clone();
        let received = tokio::time::timeout(after, connection.receive(sent)).await;
        let result = received.unwrap_or_else(|_| {
            Err(ClientError::Timeout { address, doing: ApiKey::ListOffsets, after })
        });
        if result.as_ref().is_err_and(loses_connection) {
            self.lose(node_id);
        }
        result
    }

    /// Finds an offset of one partition.
    pub async fn offset(
        &mut self,
        topic: &str,
        partition: i32,
        at: OffsetAt,
    ) -> Result<FoundOffset, ClientError> {
        let name = KafkaString::from(topic.to_owned());
        self.call_leader(
            topic,
            partition,
            false,
            |_, leader| list_offsets::Request {
                replica_id: -1,
                topics: vec![list_offsets::ListOffsetsTopic {
                    name: name.clone(),
                    partitions: vec![list_offsets::ListOffsetsPartition {
                        partition_index: partition,
                        current_leader_epoch: leader.epoch,
                        timestamp: at.to_wire(),
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            },
            |response| {
                let partitions = response.topics.first().map(|topic| topic.partitions.as_slice());
                let found =
                    partitions.and_then(<[_]>::first).ok_or_else(|| no_answer(topic, partition))?;
                ClientError::check(found.error_code, || subject_of(topic, partition), None)?;
                Ok(FoundOffset { offset: found.offset, timestamp: found.timestamp })
            },
        )
        .await
    }
}

/// The response says nothing about the partition that it was asked about.
pub(crate) fn no_answer(topic: &str, partition: i32) -> ClientError {
    ClientError::Broker {
        subject: subject_of(topic, partition),
        code: strandline_wire::ErrorCode::UNKNOWN_SERVER_ERROR,
        message: Some("the response does not mention the partition".to_owned()),
    }
}
