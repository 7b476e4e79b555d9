//! What the broker answers.

use bytes::BytesMut;
use kacrab_protocol::KafkaString;
use smallvec::SmallVec;

use super::BY_ID_FROM;
use crate::writer::Writer;
use crate::{Api, EncodeError, ErrorCode, Leader, NodeEndpoint, TopicRef};

/// A Produce response. Fields that a version does not have are left out when it is written.
#[derive(Debug, Default)]
pub struct Response {
    /// Outcomes, in the order of the request.
    pub topics: SmallVec<[TopicResponse; 1]>,
    /// How long the client should wait before its next request, in milliseconds.
    pub throttle_time_ms: i32,
    /// Where the leaders listen that partitions name.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// The outcomes of one topic.
#[derive(Debug)]
pub struct TopicResponse {
    /// The topic, as the request named it.
    pub topic: TopicRef,
    /// By partition.
    pub partitions: SmallVec<[PartitionResponse; 1]>,
}

/// The outcome of one partition.
#[derive(Debug)]
pub struct PartitionResponse {
    /// Which partition.
    pub index: i32,
    /// How it went.
    pub error: ErrorCode,
    /// The offset of the first record; −1 after an error.
    pub base_offset: i64,
    /// The broker's time of the append, when the topic keeps that; −1 otherwise.
    pub log_append_time_ms: i64,
    /// The log start offset; −1 when not known. From version 5.
    pub log_start_offset: i64,
    /// The records that are to blame. From version 8.
    pub record_errors: Vec<RecordError>,
    /// What went wrong, for people. From version 8.
    pub error_message: Option<KafkaString>,
    /// Who leads the partition, when this broker does not. From version 10.
    pub current_leader: Option<Leader>,
}

/// A record that made its batch be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Its position in the batch, from 0.
    pub batch_index: i32,
    /// What is wrong with it, for people.
    pub message: Option<KafkaString>,
}

impl PartitionResponse {
    /// A failure: no offsets, no message.
    pub const fn failed(index: i32, error: ErrorCode) -> Self {
        Self {
            index,
            error,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: None,
        }
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) {
        writer.int32(self.index);
        writer.int16(self.error.get());
        writer.int64(self.base_offset);
        writer.int64(self.log_append_time_ms);
        if version >= 5 {
            writer.int64(self.log_start_offset);
        }
        if version >= 8 {
            writer.length(self.record_errors.len());
            for record in &self.record_errors {
                writer.int32(record.batch_index);
                writer.nullable_text(record.message.as_ref());
                writer.no_tagged_fields();
            }
            writer.nullable_text(self.error_message.as_ref());
        }
        match self.current_leader {
            Some(leader) if version >= 10 => {
                writer.unsigned_varint(1);
                leader.write_tagged(writer, 0);
            }
            _ => writer.no_tagged_fields(),
        }
    }
}

impl Response {
    /// Appends the whole frame to `buf`. On an error `buf` is as it was.
    pub fn write_frame(
        &self,
        buf: &mut BytesMut,
        api: Api,
        correlation_id: i32,
    ) -> Result<(), EncodeError> {
        let start = buf.len();
        let mut writer = Writer::response(buf, api, correlation_id);
        self.write(&mut writer, api.version());
        let result = writer.finish(0);
        if result.is_err() {
            buf.truncate(start);
        }
        result
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) {
        writer.length(self.topics.len());
        for topic in &self.topics {
            topic.topic.write(writer, version >= BY_ID_FROM);
            writer.length(topic.partitions.len());
            for partition in &topic.partitions {
                partition.write(writer, version);
            }
            writer.no_tagged_fields();
        }
        writer.int32(self.throttle_time_ms);
        let named = if version >= 10 { self.node_endpoints.as_slice() } else { &[] };
        NodeEndpoint::write_all(named, writer);
    }
}
