//! A client that speaks frames with a broker, and panics at what it does not expect.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use strandline_broker::{Broker, Connection, Peer, Started};
use strandline_model::{Timestamp, TopicId};
use strandline_records::{BatchBuilder, NewRecord, batches, records};
use strandline_storage::BatchPiece;
use strandline_wire::{
    Api, KafkaString, Message, Request, RequestHeader, create_topics, delete_records,
    delete_topics, fetch, incremental_alter_configs, list_offsets, metadata, offset_commit,
    offset_fetch, produce, read_response, topic_id_from_wire,
};

use crate::promises::Found;

const CORRELATION_ID: i32 = 7;
const EARLIEST: i64 = -2;
const OFFSET_OUT_OF_RANGE: i16 = 1;
const LATEST: i64 = -1;

/// A few records a segment; compaction, when a step asks for it, is never too early.
const TOPIC_CONFIGS: [(&str, &str); 3] = [
    ("internal.segment.bytes", "700"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("delete.retention.ms", "1000"),
];

/// Wide enough for every log of these tests.
const FETCH_BYTES: i32 = 1 << 20;

pub(crate) struct Client(Connection);

fn text(text: &str) -> KafkaString {
    KafkaString::from(text.to_owned())
}

fn api<M: Message>(version: i16) -> Api {
    M::KEY.served().at(version).expect("the version is served")
}

impl Client {
    pub(crate) fn connect(broker: &Arc<Broker>) -> Self {
        let address = "127.0.0.1:9092".parse().unwrap();
        Self(Connection::open(broker, Peer { remote: address, local: address }))
    }

    async fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let mut body = BytesMut::new();
        request.encode(&mut body, version).unwrap();
        let api = api::<R>(version);
        let header = RequestHeader { api, correlation_id: CORRELATION_ID, client_id: None };
        let reply = match self.0.start(&header, body).await.unwrap() {
            Started::Reply(reply) => reply,
            Started::Waiting(pending) => pending.finish().await.unwrap(),
            Started::Silent => panic!("no reply to {request:?}"),
        };
        let mut frame = BytesMut::new();
        for piece in reply.into_pieces() {
            match piece {
                BatchPiece::Memory(bytes) => frame.extend_from_slice(&bytes),
                BatchPiece::File(_) => panic!("a disk in memory has no files"),
            }
        }
        let (id, response) = read_response(frame.split_off(4).freeze(), api).unwrap();
        assert_eq!(id, CORRELATION_ID);
        response
    }

    /// Creates a topic: its id.
    pub(crate) async fn create(&mut self, name: &str, partitions: u32) -> TopicId {
        let config = |(key, value)| create_topics::CreatableTopicConfig {
            name: text(key),
            value: Some(text(value)),
            ..Default::default()
        };
        let topic = create_topics::CreatableTopic {
            name: text(name),
            num_partitions: i32::try_from(partitions).unwrap(),
            replication_factor: 1,
            configs: TOPIC_CONFIGS.map(config).into(),
            ..Default::default()
        };
        let request = create_topics::Request { topics: vec![topic], ..Default::default() };
        let response = self.ask(7, &request).await;
        assert_eq!(response.topics[0].error_code, 0, "{response:?}");
        topic_id_from_wire(response.topics[0].topic_id)
    }

    pub(crate) async fn delete(&mut self, name: &str) {
        let state =
            delete_topics::DeleteTopicState { name: Some(text(name)), ..Default::default() };
        let request = delete_topics::Request { topics: vec![state], ..Default::default() };
        let response = self.ask(6, &request).await;
        assert_eq!(response.responses[0].error_code, 0, "{response:?}");
    }

    /// The id of a topic, if there is one of that name.
    pub(crate) async fn topic_id(&mut self, name: &str) -> Option<TopicId> {
        let asked = metadata::MetadataRequestTopic { name: Some(text(name)), ..Default::default() };
        let request = metadata::Request {
            topics: Some(vec![asked]),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        let topic = self.ask(12, &request).await.topics.remove(0);
        (topic.error_code == 0).then(|| topic_id_from_wire(topic.topic_id))
    }

    /// Produces one record: its offset, or the error code.
    pub(crate) async fn produce(
        &mut self,
        name: &str,
        partition: u32,
        (key, value): (&str, Option<&str>),
        now: Timestamp,
    ) -> Result<i64, i16> {
        let mut builder = BatchBuilder::new();
        builder.push(NewRecord {
            timestamp: Some(now),
            key: Some(key.as_bytes()),
            value: value.map(str::as_bytes),
            ..NewRecord::default()
        });
        let data = produce::message::PartitionProduceData {
            index: i32::try_from(partition).unwrap(),
            records: Some(builder.build().freeze()),
            ..Default::default()
        };
        let request = produce::message::Request {
            acks: -1,
            timeout_ms: 1_000,
            topic_data: vec![produce::message::TopicProduceData {
                name: text(name),
                partition_data: vec![data],
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = self.ask(9, &request).await;
        let answer = &response.responses[0].partition_responses[0];
        if answer.error_code == 0 { Ok(answer.base_offset) } else { Err(answer.error_code) }
    }

    /// The log start and the end.
    pub(crate) async fn bounds(&mut self, name: &str, partition: u32) -> (i64, i64) {
        (self.offset(name, partition, EARLIEST).await, self.offset(name, partition, LATEST).await)
    }

    async fn offset(&mut self, name: &str, partition: u32, timestamp: i64) -> i64 {
        let asked = list_offsets::ListOffsetsPartition {
            partition_index: i32::try_from(partition).unwrap(),
            timestamp,
            ..Default::default()
        };
        let topic = list_offsets::ListOffsetsTopic {
            name: text(name),
            partitions: vec![asked],
            ..Default::default()
        };
        let request = list_offsets::Request { topics: vec![topic], ..Default::default() };
        let response = self.ask(7, &request).await;
        let answer = &response.topics[0].partitions[0];
        assert_eq!(answer.error_code, 0, "{name}-{partition}");
        answer.offset
    }

    /// Every record from `from` to the end.
    pub(crate) async fn read(
        &mut self,
        name: &str,
        partition: u32,
        from: i64,
        end: i64,
    ) -> Vec<Found> {
        let found = self.read_unless_trimmed(name, partition, from, end).await;
        found.unwrap_or_else(|| panic!("{name}-{partition} does not begin at {from}"))
    }

    /// The same; `None` when retention removes some of it meanwhile.
    pub(crate) async fn read_unless_trimmed(
        &mut self,
        name: &str,
        partition: u32,
        from: i64,
        end: i64,
    ) -> Option<Vec<Found>> {
        let utf_8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut found: Vec<Found> = Vec::new();
        let mut next = from;
        while next < end {
            let bytes = self.fetch(name, partition, next).await?;
            assert!(!bytes.is_empty(), "{name}-{partition}: nothing at {next}, before {end}");
            for batch in batches(&bytes).map(|batch| batch.expect("whole batches")) {
                batch.check_crc().expect("sound batches");
                let base = batch.base_offset().unwrap().get();
                for record in records(batch.records_bytes(), batch.records_count()) {
                    let record = record.expect("sound records");
                    let offset = base + i64::from(record.offset_delta);
                    if offset >= from {
                        let key = record.key.map(utf_8).unwrap_or_default();
                        found.push((offset, key, record.value.map(utf_8)));
                    }
                }
                next = batch.next_offset().unwrap().get();
            }
        }
        Some(found)
    }

    /// `None`: the log begins above the offset.
    async fn fetch(&mut self, name: &str, partition: u32, offset: i64) -> Option<Bytes> {
        let asked = fetch::message::FetchPartition {
            partition: i32::try_from(partition).unwrap(),
            fetch_offset: offset,
            partition_max_bytes: FETCH_BYTES,
            ..Default::default()
        };
        let request = fetch::message::Request {
            min_bytes: 1,
            max_bytes: FETCH_BYTES,
            topics: vec![fetch::message::FetchTopic {
                topic: text(name),
                partitions: vec![asked],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask(12, &request).await.responses.remove(0).partitions.remove(0);
        if answer.error_code == OFFSET_OUT_OF_RANGE {
            return None;
        }
        assert_eq!(answer.error_code, 0, "{name}-{partition} at {offset}");
        Some(answer.records.unwrap_or_default())
    }

    pub(crate) async fn delete_records(&mut self, name: &str, partition: u32, before: i64) {
        let asked = delete_records::DeleteRecordsPartition {
            partition_index: i32::try_from(partition).unwrap(),
            offset: before,
            ..Default::default()
        };
        let topic = delete_records::DeleteRecordsTopic {
            name: text(name),
            partitions: vec![asked],
            ..Default::default()
        };
        let request = delete_records::Request { topics: vec![topic], ..Default::default() };
        let response = self.ask(2, &request).await;
        assert_eq!(response.topics[0].partitions[0].error_code, 0, "{response:?}");
    }

    /// Sets a topic's setting.
    pub(crate) async fn configure(&mut self, name: &str, key: &str, value: &str) {
        const TOPIC: i8 = 2;
        const SET: i8 = 0;
        let config = incremental_alter_configs::AlterableConfig {
            name: text(key),
            config_operation: SET,
            value: Some(text(value)),
            ..Default::default()
        };
        let resource = incremental_alter_configs::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: text(name),
            configs: vec![config],
            ..Default::default()
        };
        let request =
            incremental_alter_configs::Request { resources: vec![resource], ..Default::default() };
        let response = self.ask(1, &request).await;
        assert_eq!(response.responses[0].error_code, 0, "{response:?}");
    }

    /// Commits a position of a group without members.
    pub(crate) async fn commit(&mut self, group: &str, name: &str, partition: u32, offset: i64) {
        let committed = offset_commit::OffsetCommitRequestPartition {
            partition_index: i32::try_from(partition).unwrap(),
            committed_offset: offset,
            ..Default::default()
        };
        let topic = offset_commit::OffsetCommitRequestTopic {
            name: text(name),
            partitions: vec![committed],
            ..Default::default()
        };
        let request = offset_commit::Request {
            group_id: text(group),
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        let response = self.ask(9, &request).await;
        assert_eq!(response.topics[0].partitions[0].error_code, 0, "{response:?}");
    }

    /// A group's position; −1 when it has none.
    pub(crate) async fn position(&mut self, group: &str, name: &str, partition: u32) -> i64 {
        let asked = offset_fetch::OffsetFetchRequestTopics {
            name: text(name),
            partition_indexes: vec![i32::try_from(partition).unwrap()],
            ..Default::default()
        };
        let group = offset_fetch::OffsetFetchRequestGroup {
            group_id: text(group),
            topics: Some(vec![asked]),
            ..Default::default()
        };
        let request = offset_fetch::Request { groups: vec![group], ..Default::default() };
        let response = self.ask(8, &request).await;
        assert_eq!(response.groups[0].error_code, 0);
        response.groups[0].topics[0].partitions[0].committed_offset
    }
}
