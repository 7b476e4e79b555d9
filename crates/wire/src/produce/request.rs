//! What a producer sends.

use bytes::BytesMut;
use kacrab_protocol::KafkaString;
use smallvec::SmallVec;

use super::BY_ID_FROM;
use crate::reader::Reader;
use crate::{Api, DecodeError, TopicRef};

/// A Produce request whose records still lie in its frame.
#[derive(Debug)]
pub struct Request {
    /// The producer's transactional id, when it has one.
    pub transactional_id: Option<KafkaString>,
    /// What the producer waits for: −1 (all in-sync replicas), 0 (nothing, not even a response),
    /// 1 (the leader). Anything else is the producer's mistake.
    pub acks: i16,
    /// How long it waits, in milliseconds.
    pub timeout_ms: i32,
    /// What goes where. Most requests have one topic with one partition, which costs no allocation.
    pub topics: SmallVec<[TopicRequest; 1]>,
}

/// The batches for one topic.
#[derive(Debug)]
pub struct TopicRequest {
    /// Which topic.
    pub topic: TopicRef,
    /// By partition; a peer may name one twice.
    pub partitions: SmallVec<[PartitionRequest; 1]>,
}

/// The batches for one partition.
#[derive(Debug)]
pub struct PartitionRequest {
    /// Which partition; a peer may send a negative one.
    pub index: i32,
    /// Bytes that should be record batches: a writable part of the frame, not a copy. Null and empty
    /// are different on the wire; neither holds a record.
    pub records: Option<BytesMut>,
}

/// A larger first guess would be taken from a peer's word.
const CAPACITY_MAX: usize = 1024;

impl Request {
    /// Reads a request body. Bytes after the message are ignored, as Kafka does.
    pub fn decode(body: BytesMut, api: Api) -> Result<Self, DecodeError> {
        let by_id = api.version() >= BY_ID_FROM;
        let mut reader = Reader::new(body, api.is_flexible());
        let transactional_id = reader.nullable_text()?;
        let acks = reader.int16()?;
        let timeout_ms = reader.int32()?;
        let count = reader.array()?;
        let mut topics = SmallVec::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            topics.push(TopicRequest::read(&mut reader, by_id)?);
        }
        reader.skip_tagged_fields()?;
        Ok(Self { transactional_id, acks, timeout_ms, topics })
    }
}

impl TopicRequest {
    fn read(reader: &mut Reader, by_id: bool) -> Result<Self, DecodeError> {
        let topic = TopicRef::read(reader, by_id)?;
        let count = reader.array()?;
        let mut partitions = SmallVec::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            let index = reader.int32()?;
            let records = reader.records()?;
            reader.skip_tagged_fields()?;
            partitions.push(PartitionRequest { index, records });
        }
        reader.skip_tagged_fields()?;
        Ok(Self { topic, partitions })
    }
}
