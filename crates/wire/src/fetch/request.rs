//! What a consumer asks for.

use bytes::BytesMut;
use kacrab_protocol::KafkaString;
use smallvec::SmallVec;
use strandline_model::TopicId;

use super::BY_ID_FROM;
use crate::reader::Reader;
use crate::{Api, DecodeError, TopicRef};

/// A Fetch request. Fields that its version does not have hold Kafka's defaults.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The cluster that a follower believes to be in. Version 12 on.
    pub cluster_id: Option<KafkaString>,
    /// Who asks: −1 for consumers.
    pub replica: ReplicaState,
    /// How long to wait for [`Request::min_bytes`], in milliseconds.
    pub max_wait_ms: i32,
    /// How many bytes to wait for.
    pub min_bytes: i32,
    /// How many bytes the response may hold in all; one batch is sent whatever its size.
    pub max_bytes: i32,
    /// 0: all records up to the high watermark; 1: only those of no transaction or a committed one.
    pub isolation_level: i8,
    /// The fetch session, 0 for none. Version 7 on.
    pub session_id: i32,
    /// Where the session stands: −1 no session, 0 a new one. Version 7 on.
    pub session_epoch: i32,
    /// The partitions that are added to the session or changed in it, or all of them without one.
    pub topics: SmallVec<[TopicRequest; 1]>,
    /// The partitions that leave the session. Version 7 on.
    pub forgotten_topics: Vec<ForgottenTopic>,
    /// The consumer's rack. Version 11 on.
    pub rack_id: KafkaString,
}

/// The follower that asks, or a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// The follower's id; −1 for consumers.
    pub id: i32,
    /// The follower's epoch. Version 15 on.
    pub epoch: i64,
}

/// The partitions of one topic.
#[derive(Debug, PartialEq, Eq)]
pub struct TopicRequest {
    /// Which topic.
    pub topic: TopicRef,
    /// By partition.
    pub partitions: SmallVec<[PartitionRequest; 1]>,
}

/// What is wanted of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRequest {
    /// Which partition; a peer may send a negative one.
    pub index: i32,
    /// The leader epoch that the consumer knows; −1 when it knows none. Version 9 on.
    pub current_leader_epoch: i32,
    /// The offset to read from.
    pub fetch_offset: i64,
    /// The epoch of the last record that it has; −1 when it does not say. Version 12 on.
    pub last_fetched_epoch: i32,
    /// A follower's log start offset. Version 5 on.
    pub log_start_offset: i64,
    /// How many bytes this partition may send; one batch is sent whatever its size.
    pub max_bytes: i32,
    /// A follower's log directory. Version 17 on.
    pub replica_directory_id: TopicId,
    /// The high watermark that a follower knows. Version 18 on.
    pub high_watermark: i64,
}

/// The partitions of one topic that leave the session.
#[derive(Debug, PartialEq, Eq)]
pub struct ForgottenTopic {
    /// Which topic.
    pub topic: TopicRef,
    /// Which of its partitions.
    pub partitions: Vec<i32>,
}

/// A larger first guess would be taken from a peer's word.
const CAPACITY_MAX: usize = 1024;

const CONSUMER: ReplicaState = ReplicaState { id: -1, epoch: -1 };

impl Request {
    /// Reads a request body. Bytes after the message are ignored, as Kafka does.
    pub fn decode(body: BytesMut, api: Api) -> Result<Self, DecodeError> {
        let version = api.version();
        let reader = &mut Reader::new(body, api.is_flexible());
        let replica =
            if version <= 14 { ReplicaState { id: reader.int32()?, ..CONSUMER } } else { CONSUMER };
        let mut request = Self {
            cluster_id: None,
            replica,
            max_wait_ms: reader.int32()?,
            min_bytes: reader.int32()?,
            max_bytes: reader.int32()?,
            isolation_level: reader.int8()?,
            session_id: if version >= 7 { reader.int32()? } else { 0 },
            session_epoch: if version >= 7 { reader.int32()? } else { -1 },
            topics: read_topics(reader, version)?,
            forgotten_topics: if version >= 7 {
                read_forgotten(reader, version)?
            } else {
                Vec::new()
            },
            rack_id: if version >= 11 { reader.text()? } else { KafkaString::default() },
        };
        reader.tagged_fields(|tag, field| {
            match tag {
                0 => request.cluster_id = field.nullable_text()?,
                1 if version >= 15 => {
                    request.replica = ReplicaState { id: field.int32()?, epoch: field.int64()? };
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(request)
    }
}

fn read_topics(
    reader: &mut Reader,
    version: i16,
) -> Result<SmallVec<[TopicRequest; 1]>, DecodeError> {
    let count = reader.array()?;
    let mut topics = SmallVec::with_capacity(count.min(CAPACITY_MAX));
    for _ in 0..count {
        let topic = TopicRef::read(reader, version >= BY_ID_FROM)?;
        let count = reader.array()?;
        let mut partitions = SmallVec::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            partitions.push(PartitionRequest::read(reader, version)?);
        }
        reader.skip_tagged_fields()?;
        topics.push(TopicRequest { topic, partitions });
    }
    Ok(topics)
}

fn read_forgotten(reader: &mut Reader, version: i16) -> Result<Vec<ForgottenTopic>, DecodeError> {
    let count = reader.array()?;
    let mut topics = Vec::with_capacity(count.min(CAPACITY_MAX));
    for _ in 0..count {
        let topic = TopicRef::read(reader, version >= BY_ID_FROM)?;
        let count = reader.array()?;
        let mut partitions = Vec::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            partitions.push(reader.int32()?);
        }
        reader.skip_tagged_fields()?;
        topics.push(ForgottenTopic { topic, partitions });
    }
    Ok(topics)
}

impl PartitionRequest {
    fn read(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        let mut partition = Self {
            index: reader.int32()?,
            current_leader_epoch: if version >= 9 { reader.int32()? } else { -1 },
            fetch_offset: reader.int64()?,
            last_fetched_epoch: if version >= 12 { reader.int32()? } else { -1 },
            log_start_offset: if version >= 5 { reader.int64()? } else { -1 },
            max_bytes: reader.int32()?,
            replica_directory_id: TopicId::ZERO,
            high_watermark: i64::MAX,
        };
        reader.tagged_fields(|tag, field| {
            match tag {
                0 if version >= 17 => partition.replica_directory_id = field.topic_id()?,
                1 if version >= 18 => partition.high_watermark = field.int64()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(partition)
    }
}
