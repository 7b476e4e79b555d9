//! Reads records from partitions.

use bytes::Bytes;
use strandline_model::ByteCount;
use strandline_records::{BatchError, BatchView, Header, batches, records};
use strandline_wire::fetch::message;
use strandline_wire::{Api, ApiKey, KafkaString, KafkaUuid, topic_id_to_wire};

use crate::client::{Leader, loses_connection, subject_of, version_for};
use crate::offsets::no_answer;
use crate::{Client, ClientError, Sent};

/// What one batch may decompress to. Reached: its records can't be read.
const BATCH_MAX: ByteCount = ByteCount::mib(128);

/// How much a fetch waits for and returns.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimits {
    /// How long the broker waits for `min`, in milliseconds.
    pub max_wait_ms: i32,
    /// How many bytes it waits for.
    pub min: ByteCount,
    /// How many bytes it sends in all; one batch is sent whatever its size.
    pub max: ByteCount,
    /// How many bytes it sends of one partition.
    pub partition_max: ByteCount,
}

impl SizeLimits {
    /// The defaults of Kafka's consumers: any byte within half a second, at most 50 MiB, 1 MiB of
    /// a partition.
    pub const fn new() -> Self {
        Self {
            max_wait_ms: 500,
            min: ByteCount::new(1),
            max: ByteCount::mib(50),
            partition_max: ByteCount::mib(1),
        }
    }
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self::new()
    }
}

/// What a partition sent.
#[derive(Clone, Debug)]
pub struct FetchedBatches {
    /// The offset that was asked for.
    pub from: i64,
    /// The high watermark.
    pub high_watermark: i64,
    /// The log start offset.
    pub log_start_offset: i64,
    /// Record batches; the first may begin before `from`, the last may be cut short.
    pub bytes: Bytes,
}

/// What one of several partitions sent.
#[derive(Debug)]
pub struct Fetched {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// How it went.
    pub result: Result<FetchedBatches, ClientError>,
}

/// A record as a consumer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumedRecord {
    /// Its offset.
    pub offset: i64,
    /// Its time in milliseconds since the Unix epoch; −1 for none.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers, in order.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl FetchedBatches {
    /// The records from the offset that was asked for on, without control records, and the offset
    /// to ask for next.
    pub fn records(&self) -> Result<(Vec<ConsumedRecord>, i64), ClientError> {
        let mut found = Vec::new();
        let mut next = self.from;
        for batch in batches(&self.bytes) {
            let batch = match batch {
                Ok(batch) => batch,
                // The last batch is what did not fit into the limits any more; the first is whole.
                Err(BatchError::CutShort { .. }) if next > self.from => break,
                Err(error) => return Err(self.unreadable(&error.to_string())),
            };
            let end =
                batch.next_offset().ok_or_else(|| self.unreadable("offsets make no range"))?;
            if end.get() <= self.from {
                continue;
            }
            batch.check_crc().map_err(|error| self.unreadable(&error.to_string()))?;
            if !batch.attributes().is_control() {
                self.read_batch(&batch, &mut found)?;
            }
            next = end.get();
        }
        Ok((found, next))
    }

    fn read_batch(
        &self,
        batch: &BatchView<'_>,
        found: &mut Vec<ConsumedRecord>,
    ) -> Result<(), ClientError> {
        let block =
            batch.decompressed(BATCH_MAX).map_err(|error| self.unreadable(&error.to_string()))?;
        for record in records(&block, batch.records_count()) {
            let record = record.map_err(|error| self.unreadable(&error.to_string()))?;
            let offset = batch.offset_of(&record).map_or(-1, strandline_model::Offset::get);
            if offset < self.from {
                continue;
            }
            let header =
                |header: Header<'_>| (header.key.to_vec(), header.value.map(<[u8]>::to_vec));
            found.push(ConsumedRecord {
                offset,
                timestamp: batch
                    .timestamp_of(&record)
                    .map_or(-1, strandline_model::Timestamp::as_millis),
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                headers: record.headers.iter().map(header).collect(),
            });
        }
        Ok(())
    }

    fn unreadable(&self, reason: &str) -> ClientError {
        let subject = format!("records at offset {}", self.from);
        ClientError::Records { subject, reason: reason.to_owned() }
    }
}

impl Client {
    /// Reads one partition from an offset on.
    pub async fn fetch(
        &mut self,
        topic: &str,
        partition: i32,
        from: i64,
        limits: SizeLimits,
    ) -> Result<FetchedBatches, ClientError> {
        self.call_leader(
            topic,
            partition,
            false,
            |api, leader| request(limits, asked(api, topic, leader, &[(partition, from)])),
            |response| {
                ClientError::check(response.error_code, || subject_of(topic, partition), None)?;
                let answers = response.responses.into_iter().next();
                let answer = answers.and_then(|answer| answer.partitions.into_iter().next());
                fetched(answer.ok_or_else(|| no_answer(topic, partition))?, topic, from)
            },
        )
        .await
    }

    /// Reads several partitions of one topic, each from its offset on: one request to each leader,
    /// all under way at once. The outcome of a partition that has moved says so: ask again.
    pub async fn fetch_partitions(
        &mut self,
        topic: &str,
        positions: &[(i32, i64)],
        limits: SizeLimits,
    ) -> Result<Vec<Fetched>, ClientError> {
        let mut by_leader: Vec<(Leader, Vec<(i32, i64)>)> = Vec::new();
        for &(partition, from) in positions {
            let leader = self.leader(topic, partition, false).await?;
            match by_leader.iter_mut().find(|(other, _)| other.node_id == leader.node_id) {
                Some((_, wanted)) => wanted.push((partition, from)),
                None => by_leader.push((leader, vec![(partition, from)])),
            }
        }
        let mut sent: Vec<(i32, Sent)> = Vec::new();
        for (leader, wanted) in &by_leader {
            let connection = self.broker(leader.node_id).await?;
            let api = version_for(connection, ApiKey::Fetch, leader.topic_id)?;
            let request = request(limits, asked(api, topic, *leader, wanted));
            sent.push((leader.node_id, connection.send(api, &request).await?));
        }
        let mut outcomes = Vec::new();
        for (node_id, sent) in sent {
            let response = self.receive_fetch(node_id, sent).await?;
            ClientError::check(response.error_code, || format!("topic {topic}"), None)?;
            for answer in response.responses.into_iter().flat_map(|answer| answer.partitions) {
                let partition = answer.partition_index;
                let position = positions.iter().find(|(index, _)| *index == partition);
                let from = position.map_or(-1, |(_, from)| *from);
                let result = fetched(answer, topic, from);
                if result.as_ref().is_err_and(|error| crate::client::asks_for_lookup(error, false))
                {
                    self.forget(topic);
                }
                outcomes.push(Fetched { topic: topic.to_owned(), partition, result });
            }
        }
        Ok(outcomes)
    }

    async fn receive_fetch(
        &mut self,
        node_id: i32,
        sent: Sent,
    ) -> Result<message::Response, ClientError> {
        let after = self.config().request_timeout;
        let connection = self.broker(node_id).await?;
        let address = connection.address().clone();
        let received = tokio::time::timeout(after, connection.receive(sent)).await;
        let result = received
            .unwrap_or_else(|_| Err(ClientError::Timeout { address, doing: ApiKey::Fetch, after }));
        if result.as_ref().is_err_and(loses_connection) {
            self.lose(node_id);
        }
        result
    }
}

fn request(limits: SizeLimits, mut topic: message::FetchTopic) -> message::Request {
    let bytes = |count: ByteCount| i32::try_from(count.get()).unwrap_or(i32::MAX);
    for partition in &mut topic.partitions {
        partition.partition_max_bytes = bytes(limits.partition_max);
    }
    // No session: each request stands for itself.
    message::Request {
        max_wait_ms: limits.max_wait_ms,
        min_bytes: bytes(limits.min),
        max_bytes: bytes(limits.max),
        topics: vec![topic],
        ..Default::default()
    }
}

fn asked(api: Api, topic: &str, leader: Leader, positions: &[(i32, i64)]) -> message::FetchTopic {
    let by_id = api.version() >= 13;
    let name = if by_id { KafkaString::default() } else { KafkaString::from(topic.to_owned()) };
    let topic_id = if by_id { topic_id_to_wire(leader.topic_id) } else { KafkaUuid::ZERO };
    let partition = |&(partition, from): &(i32, i64)| message::FetchPartition {
        partition,
        fetch_offset: from,
        // The leader's epoch is not sent: partitions of one request may have different ones, and
        // the broker's own answer is what counts.
        ..Default::default()
    };
    let partitions = positions.iter().map(partition).collect();
    message::FetchTopic { topic: name, topic_id, partitions, ..Default::default() }
}

fn fetched(
    answer: message::PartitionData,
    topic: &str,
    from: i64,
) -> Result<FetchedBatches, ClientError> {
    let subject = || subject_of(topic, answer.partition_index);
    ClientError::check(answer.error_code, subject, None)?;
    Ok(FetchedBatches {
        from,
        high_watermark: answer.high_watermark,
        log_start_offset: answer.log_start_offset,
        bytes: answer.records.unwrap_or_default(),
    })
}
