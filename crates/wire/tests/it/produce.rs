//! Produce: our codec against the generated one.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use strandline_wire::produce::{self, PartitionResponse, RecordError, TopicResponse, message};
use strandline_wire::{
    Api, ApiKey, ErrorCode, KafkaString, KafkaUuid, Lookup, Message, TopicRef, lookup,
    topic_id_to_wire, write_response,
};

use crate::strategy::{encoded, leader, node_endpoint, text, topic, uuid, versions};

fn request(api: Api) -> impl Strategy<Value = message::Request> {
    let partition = (any::<i32>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..300)))
        .prop_map(|(index, records)| message::PartitionProduceData {
            index,
            records: records.map(Bytes::from),
            ..Default::default()
        });
    let by_id = api.version() >= 13;
    let topic = (text(), uuid(), prop::collection::vec(partition, 0..4)).prop_map(
        move |(name, topic_id, partition_data)| message::TopicProduceData {
            name: if by_id { KafkaString::default() } else { name },
            topic_id: if by_id { topic_id } else { KafkaUuid::ZERO },
            partition_data,
            ..Default::default()
        },
    );
    (prop::option::of(text()), any::<i16>(), any::<i32>(), prop::collection::vec(topic, 0..4))
        .prop_map(|(transactional_id, acks, timeout_ms, topic_data)| message::Request {
            transactional_id,
            acks,
            timeout_ms,
            topic_data,
            ..Default::default()
        })
}

/// What the generated codec would have read.
pub(crate) fn generated(request: produce::Request) -> message::Request {
    let partition = |partition: produce::PartitionRequest| message::PartitionProduceData {
        index: partition.index,
        records: partition.records.map(BytesMut::freeze),
        ..Default::default()
    };
    let topic = |topic: produce::TopicRequest| {
        let (name, topic_id) = name_and_id(topic.topic);
        message::TopicProduceData {
            name,
            topic_id,
            partition_data: topic.partitions.into_iter().map(partition).collect(),
            ..Default::default()
        }
    };
    message::Request {
        transactional_id: request.transactional_id,
        acks: request.acks,
        timeout_ms: request.timeout_ms,
        topic_data: request.topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

fn name_and_id(topic: TopicRef) -> (KafkaString, KafkaUuid) {
    match topic {
        TopicRef::Name(name) => (name, KafkaUuid::ZERO),
        TopicRef::Id(id) => (KafkaString::default(), topic_id_to_wire(id)),
    }
}

fn response(api: Api) -> impl Strategy<Value = produce::Response> {
    let record_error = (any::<i32>(), prop::option::of(text()))
        .prop_map(|(batch_index, message)| RecordError { batch_index, message });
    let partition = (
        any::<(i32, i16, i64, i64, i64)>(),
        prop::collection::vec(record_error, 0..3),
        prop::option::of(text()),
        prop::option::of(leader()),
    )
        .prop_map(|(numbers, record_errors, error_message, current_leader)| {
            let (index, error, base_offset, log_append_time_ms, log_start_offset) = numbers;
            PartitionResponse {
                index,
                error: ErrorCode::from_wire(error),
                base_offset,
                log_append_time_ms,
                log_start_offset,
                record_errors,
                error_message,
                current_leader,
            }
        });
    let topic = (topic(api.version() >= 13), prop::collection::vec(partition, 0..4))
        .prop_map(|(topic, partitions)| TopicResponse { topic, partitions: partitions.into() });
    let endpoints = prop::collection::vec(node_endpoint(), 0..3);
    (prop::collection::vec(topic, 0..4), any::<i32>(), endpoints).prop_map(
        |(topics, throttle_time_ms, node_endpoints)| produce::Response {
            topics: topics.into(),
            throttle_time_ms,
            node_endpoints,
        },
    )
}

/// The same response for the generated codec, without what `api` can't carry.
fn generated_response(response: &produce::Response, api: Api) -> message::Response {
    let leaders = api.version() >= 10;
    let partition = |partition: &PartitionResponse| message::PartitionProduceResponse {
        index: partition.index,
        error_code: partition.error.get(),
        base_offset: partition.base_offset,
        log_append_time_ms: partition.log_append_time_ms,
        log_start_offset: partition.log_start_offset,
        record_errors: partition
            .record_errors
            .iter()
            .map(|record| message::BatchIndexAndErrorMessage {
                batch_index: record.batch_index,
                batch_index_error_message: record.message.clone(),
                ..Default::default()
            })
            .collect(),
        error_message: partition.error_message.clone(),
        current_leader: match partition.current_leader {
            Some(leader) if leaders => message::LeaderIdAndEpoch {
                leader_id: leader.id,
                leader_epoch: leader.epoch,
                ..Default::default()
            },
            _ => message::LeaderIdAndEpoch::default(),
        },
        ..Default::default()
    };
    let topic = |topic: &TopicResponse| {
        let (name, topic_id) = name_and_id(topic.topic.clone());
        message::TopicProduceResponse {
            name,
            topic_id,
            partition_responses: topic.partitions.iter().map(partition).collect(),
            ..Default::default()
        }
    };
    let endpoint = |endpoint: &strandline_wire::NodeEndpoint| message::NodeEndpoint {
        node_id: endpoint.node_id,
        host: endpoint.host.clone(),
        port: endpoint.port,
        rack: endpoint.rack.clone(),
        ..Default::default()
    };
    message::Response {
        responses: response.topics.iter().map(topic).collect(),
        throttle_time_ms: response.throttle_time_ms,
        node_endpoints: if leaders {
            response.node_endpoints.iter().map(endpoint).collect()
        } else {
            Vec::new()
        },
        ..Default::default()
    }
}

/// Our response from what the generated codec read.
pub(crate) fn ours(response: message::Response) -> produce::Response {
    let partition = |partition: message::PartitionProduceResponse| PartitionResponse {
        index: partition.index,
        error: ErrorCode::from_wire(partition.error_code),
        base_offset: partition.base_offset,
        log_append_time_ms: partition.log_append_time_ms,
        log_start_offset: partition.log_start_offset,
        record_errors: partition
            .record_errors
            .into_iter()
            .map(|record| RecordError {
                batch_index: record.batch_index,
                message: record.batch_index_error_message,
            })
            .collect(),
        error_message: partition.error_message,
        current_leader: None,
    };
    let topic = |topic: message::TopicProduceResponse| TopicResponse {
        topic: match topic.name {
            name if name.is_empty() => {
                TopicRef::Id(strandline_wire::topic_id_from_wire(topic.topic_id))
            }
            name => TopicRef::Name(name),
        },
        partitions: topic.partition_responses.into_iter().map(partition).collect(),
    };
    produce::Response {
        topics: response.responses.into_iter().map(topic).collect(),
        throttle_time_ms: response.throttle_time_ms,
        node_endpoints: Vec::new(),
    }
}

#[test]
fn records_are_writable_and_lie_in_the_frame() {
    let Lookup::Served(api) = lookup(0, 9) else { panic!("served") };
    let request = message::Request {
        topic_data: vec![message::TopicProduceData {
            name: KafkaString::from_static("orders"),
            partition_data: vec![message::PartitionProduceData {
                records: Some(Bytes::from_static(b"a record batch")),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let body = encoded(&request, api);
    let frame = body.as_ptr_range();
    let mut request = produce::Request::decode(body, api).unwrap();
    let records = request.topics[0].partitions[0].records.as_mut().unwrap();
    assert!(frame.contains(&records.as_ptr()), "no copy");
    records[..8].copy_from_slice(&42_i64.to_be_bytes());
    assert_eq!(&records[8..], b" batch");
}

proptest! {
    #[test]
    fn requests_read_as_the_generated_codec_reads_them(
        (api, request) in versions(ApiKey::Produce).prop_flat_map(|api| (Just(api), request(api))),
    ) {
        let body = encoded(&request, api);
        prop_assert_eq!(generated(produce::Request::decode(body, api).unwrap()), request);
    }

    #[test]
    fn responses_are_written_as_the_generated_codec_writes_them(
        (api, response) in versions(ApiKey::Produce).prop_flat_map(|api| (Just(api), response(api))),
        correlation_id: i32,
    ) {
        let mut frame = BytesMut::from(&b"other frames"[..]);
        let mut expected = frame.clone();
        response.write_frame(&mut frame, api, correlation_id).unwrap();
        write_response(&mut expected, api, correlation_id, &generated_response(&response, api)).unwrap();
        prop_assert_eq!(frame, expected);
    }

    #[test]
    fn a_request_that_is_cut_anywhere_is_refused(
        (api, request) in versions(ApiKey::Produce).prop_flat_map(|api| (Just(api), request(api))),
        cut: prop::sample::Index,
    ) {
        let mut body = encoded(&request, api);
        body.truncate(cut.index(body.len()));
        let theirs = message::Request::decode(body.clone().freeze(), api.version());
        prop_assert!(produce::Request::decode(body, api).is_err() && theirs.is_err());
    }
}
