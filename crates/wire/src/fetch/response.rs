//! What the broker answers, encoded around records that lie elsewhere.

use bytes::BytesMut;
use smallvec::SmallVec;

use super::{BY_ID_FROM, Segments};
use crate::writer::Writer;
use crate::{Api, EncodeError, ErrorCode, Leader, NodeEndpoint, TopicRef};

/// A Fetch response without its records, of which it knows only how many bytes they are.
/// Fields that a version does not have are left out when it is written.
#[derive(Debug)]
pub struct Response {
    /// How long the client should wait before its next request, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error of the request as a whole. From version 7.
    pub error: ErrorCode,
    /// The fetch session, 0 for none. From version 7.
    pub session_id: i32,
    /// Partitions, by topic.
    pub topics: Vec<TopicResponse>,
    /// Where the leaders listen that partitions name. From version 16.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// The partitions of one topic.
#[derive(Debug)]
pub struct TopicResponse {
    /// The topic, as the request named it.
    pub topic: TopicRef,
    /// By partition.
    pub partitions: SmallVec<[PartitionResponse; 1]>,
}

/// What one partition sends.
#[derive(Debug)]
pub struct PartitionResponse {
    /// Which partition.
    pub index: i32,
    /// How it went.
    pub error: ErrorCode,
    /// The high watermark; −1 after an error.
    pub high_watermark: i64,
    /// The last stable offset; −1 after an error.
    pub last_stable_offset: i64,
    /// The log start offset; −1 when not known. From version 5.
    pub log_start_offset: i64,
    /// Where the consumer's history leaves ours. From version 12.
    pub diverging_epoch: Option<EpochEnd>,
    /// Who leads the partition, when this broker does not. From version 12.
    pub current_leader: Option<Leader>,
    /// Transactions whose records a reader of committed ones must drop; null for other readers.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// A replica that is nearer to the consumer; −1 for none. From version 11.
    pub preferred_read_replica: i32,
    /// How many bytes of records go here.
    pub records_bytes: usize,
}

/// The end of a leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The epoch.
    pub epoch: i32,
    /// The offset after its last record.
    pub end_offset: i64,
}

/// A transaction that was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Whose it was.
    pub producer_id: i64,
    /// The offset of its first record.
    pub first_offset: i64,
}

impl PartitionResponse {
    /// A failure: no offsets, no records, and no aborted transactions rather than null, as in Kafka.
    pub const fn failed(index: i32, error: ErrorCode) -> Self {
        Self {
            index,
            error,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            current_leader: None,
            aborted_transactions: Some(Vec::new()),
            preferred_read_replica: -1,
            records_bytes: 0,
        }
    }

    /// Writes all fields that stand before the records' bytes.
    fn write_head(&self, writer: &mut Writer<'_>, version: i16) {
        writer.int32(self.index);
        writer.int16(self.error.get());
        writer.int64(self.high_watermark);
        writer.int64(self.last_stable_offset);
        if version >= 5 {
            writer.int64(self.log_start_offset);
        }
        match &self.aborted_transactions {
            None => writer.null(),
            Some(transactions) => {
                writer.length(transactions.len());
                for transaction in transactions {
                    writer.int64(transaction.producer_id);
                    writer.int64(transaction.first_offset);
                    writer.no_tagged_fields();
                }
            }
        }
        if version >= 11 {
            writer.int32(self.preferred_read_replica);
        }
        writer.length(self.records_bytes);
    }

    /// Writes the fields that stand after the records' bytes.
    fn write_tail(&self, writer: &mut Writer<'_>, version: i16) {
        if version < 12 {
            return;
        }
        let set = [self.diverging_epoch.is_some(), self.current_leader.is_some()];
        writer.unsigned_varint(set.map(u32::from).iter().sum());
        if let Some(end) = self.diverging_epoch {
            writer.tag(0, EpochEnd::BYTES);
            writer.int32(end.epoch);
            writer.int64(end.end_offset);
            writer.no_tagged_fields();
        }
        if let Some(leader) = self.current_leader {
            leader.write_tagged(writer, 1);
        }
    }
}

impl EpochEnd {
    /// Epoch, offset, and no tagged fields.
    const BYTES: usize = 13;
}

impl Response {
    /// The frame without the records' bytes, and where they belong.
    pub fn to_frame(&self, api: Api, correlation_id: i32) -> Result<Segments, EncodeError> {
        let version = api.version();
        let mut buf = BytesMut::with_capacity(self.capacity());
        let mut cuts = SmallVec::new();
        let mut records_bytes = 0_usize;
        let mut writer = Writer::response(&mut buf, api, correlation_id);
        writer.int32(self.throttle_time_ms);
        if version >= 7 {
            writer.int16(self.error.get());
            writer.int32(self.session_id);
        }
        writer.length(self.topics.len());
        for topic in &self.topics {
            topic.topic.write(&mut writer, version >= BY_ID_FROM);
            writer.length(topic.partitions.len());
            for partition in &topic.partitions {
                partition.write_head(&mut writer, version);
                if partition.records_bytes > 0 {
                    cuts.push(writer.position());
                    records_bytes = records_bytes.saturating_add(partition.records_bytes);
                }
                partition.write_tail(&mut writer, version);
            }
            writer.no_tagged_fields();
        }
        let named = if version >= 16 { self.node_endpoints.as_slice() } else { &[] };
        NodeEndpoint::write_all(named, &mut writer);
        writer.finish(records_bytes)?;
        Ok(Segments::new(buf.freeze(), cuts, records_bytes))
    }

    /// About as many bytes as the frame will have: one allocation is enough nearly always.
    fn capacity(&self) -> usize {
        let partitions: usize = self.topics.iter().map(|topic| topic.partitions.len()).sum();
        64 + 64 * self.topics.len() + 64 * partitions
    }
}
