//! Appends batches, one at a time.

use std::collections::BTreeMap;

use bytes::Bytes;
use strandline_model::{ProducerEpoch, ProducerId, Sequence};
use strandline_records::{BatchBuilder, Codec, NewRecord, ProducerStamp};
use strandline_wire::produce::message;
use strandline_wire::{ErrorCode, KafkaString, KafkaUuid, init_producer_id, topic_id_to_wire};
use tokio::time::sleep;

use crate::client::{LOOKUP_PAUSE, LOOKUPS_MAX, subject_of};
use crate::offsets::no_answer;
use crate::{Client, ClientError};

/// How batches are produced.
#[derive(Clone, Copy, Debug)]
pub struct ProducerSettings {
    /// What an append waits for.
    pub acks: Acks,
    /// Whether batches carry a producer id and sequence numbers, so that sending one again after a
    /// failure does not append it twice.
    pub idempotent: bool,
    /// What the records of a batch are compressed with.
    pub codec: Codec,
}

/// What an append waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// The leader.
    Leader,
    /// All in-sync replicas.
    All,
}

/// Where a batch was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The offset of its first record; −1 for a duplicate so old that the broker has forgotten it.
    pub base_offset: i64,
}

/// Appends batches, one at a time and in order.
#[derive(Debug)]
pub struct Producer<'a> {
    client: &'a mut Client,
    settings: ProducerSettings,
    identity: Option<(ProducerId, ProducerEpoch)>,
    /// The next sequence of each partition that was produced to.
    sequences: BTreeMap<(String, i32), Sequence>,
}

impl<'a> Producer<'a> {
    /// A producer; an idempotent one asks for its identity.
    pub async fn start(
        client: &'a mut Client,
        settings: ProducerSettings,
    ) -> Result<Self, ClientError> {
        let identity = if settings.idempotent { Some(identify(client).await?) } else { None };
        Ok(Self { client, settings, identity, sequences: BTreeMap::new() })
    }

    /// The cluster that it produces to.
    pub const fn client(&mut self) -> &mut Client {
        self.client
    }

    /// Appends `records` as one batch. An unknown topic is created, where the broker allows that.
    ///
    /// After an error of an idempotent producer the same records may be sent again: if they were
    /// appended, the answer is where.
    ///
    /// # Panics
    /// When there are no records.
    pub async fn send(
        &mut self,
        topic: &str,
        partition: i32,
        records: &[NewRecord<'_>],
    ) -> Result<Appended, ClientError> {
        let key = (topic.to_owned(), partition);
        let sequence = self.sequences.get(&key).copied().unwrap_or(Sequence::ZERO);
        let mut builder = BatchBuilder::new();
        if let Some((id, epoch)) = self.identity {
            builder = builder.producer(ProducerStamp { id, epoch, base_sequence: Some(sequence) });
        }
        for record in records {
            builder.push(*record);
        }
        let count = builder.records_count().unsigned_abs();
        let appended = self
            .append(topic, partition, builder.build_compressed(self.settings.codec).freeze())
            .await?;
        self.sequences.insert(key, sequence.advanced_by(count));
        Ok(appended)
    }

    async fn append(
        &mut self,
        topic: &str,
        partition: i32,
        records: Bytes,
    ) -> Result<Appended, ClientError> {
        let timeout_ms = self.client.timeout_ms();
        let acks = match self.settings.acks {
            Acks::Leader => 1,
            Acks::All => -1,
        };
        let name = KafkaString::from(topic.to_owned());
        self.client
            .call_leader(
                topic,
                partition,
                true,
                |api, leader| {
                    let by_id = api.version() >= 13;
                    message::Request {
                        acks,
                        timeout_ms,
                        topic_data: vec![message::TopicProduceData {
                            name: if by_id { KafkaString::default() } else { name.clone() },
                            topic_id: if by_id {
                                topic_id_to_wire(leader.topic_id)
                            } else {
                                KafkaUuid::ZERO
                            },
                            partition_data: vec![message::PartitionProduceData {
                                index: partition,
                                records: Some(records.clone()),
                                ..Default::default()
                            }],
                            ..Default::default()
                        }],
                        ..Default::default()
                    }
                },
                |response| appended(response, topic, partition),
            )
            .await
    }
}

fn appended(
    response: message::Response,
    topic: &str,
    partition: i32,
) -> Result<Appended, ClientError> {
    let outcomes = response.responses.first().map(|topic| topic.partition_responses.as_slice());
    let outcome = outcomes.and_then(<[_]>::first).ok_or_else(|| no_answer(topic, partition))?;
    let code = ErrorCode::from_wire(outcome.error_code);
    // The batch is in the log, which is what was asked for; only its offset is forgotten.
    if code != ErrorCode::DUPLICATE_SEQUENCE_NUMBER {
        let record_error = outcome
            .record_errors
            .iter()
            .find_map(|record| record.batch_index_error_message.as_ref().map(KafkaString::as_str));
        let message = outcome.error_message.as_ref().map(KafkaString::as_str).or(record_error);
        ClientError::check(outcome.error_code, || subject_of(topic, partition), message)?;
    }
    Ok(Appended { base_offset: outcome.base_offset })
}

async fn identify(client: &mut Client) -> Result<(ProducerId, ProducerEpoch), ClientError> {
    let request = init_producer_id::Request {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    let subject = || "InitProducerId".to_owned();
    let mut response = client.call(&request).await?;
    // A broker that has just started says so until it can give out ids.
    for _ in 1..LOOKUPS_MAX {
        if response.error_code != ErrorCode::COORDINATOR_LOAD_IN_PROGRESS.get() {
            break;
        }
        sleep(LOOKUP_PAUSE).await;
        response = client.call(&request).await?;
    }
    ClientError::check(response.error_code, subject, None)?;
    let id = ProducerId::from_wire(response.producer_id);
    let epoch = ProducerEpoch::from_wire(response.producer_epoch);
    id.zip(epoch).ok_or_else(|| ClientError::Broker {
        subject: subject(),
        code: ErrorCode::UNKNOWN_SERVER_ERROR,
        message: Some("the broker gave out a negative producer id".to_owned()),
    })
}
