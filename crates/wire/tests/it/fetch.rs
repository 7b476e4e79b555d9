//! Fetch: our codec against the generated one.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use strandline_wire::fetch::{
    self, AbortedTransaction, EpochEnd, PartitionResponse, Piece, TopicResponse, message,
};
use strandline_wire::{
    Api, ApiKey, ErrorCode, KafkaString, KafkaUuid, Message, NodeEndpoint, TopicRef,
    topic_id_to_wire, write_response,
};

use crate::strategy::{encoded, leader, node_endpoint, text, topic, uuid, versions};

fn since<T>(from: i16, api: Api, value: T, default: T) -> T {
    if api.version() >= from { value } else { default }
}

fn request_partition(api: Api) -> impl Strategy<Value = message::FetchPartition> {
    (any::<(i32, i32, i64, i32, i64, i32, i64)>(), uuid()).prop_map(move |(numbers, directory)| {
        let (partition, leader_epoch, fetch_offset, last_epoch, log_start, max_bytes, hw) = numbers;
        message::FetchPartition {
            partition,
            current_leader_epoch: since(9, api, leader_epoch, -1),
            fetch_offset,
            last_fetched_epoch: since(12, api, last_epoch, -1),
            log_start_offset: since(5, api, log_start, -1),
            partition_max_bytes: max_bytes,
            replica_directory_id: since(17, api, directory, KafkaUuid::ZERO),
            high_watermark: since(18, api, hw, i64::MAX),
            ..Default::default()
        }
    })
}

fn request(api: Api) -> impl Strategy<Value = message::Request> {
    let named = move || {
        (text(), uuid()).prop_map(move |(name, id)| {
            if api.version() >= 13 { (KafkaString::default(), id) } else { (name, KafkaUuid::ZERO) }
        })
    };
    let topic = (named(), prop::collection::vec(request_partition(api), 0..4)).prop_map(
        |((topic, topic_id), partitions)| message::FetchTopic {
            topic,
            topic_id,
            partitions,
            ..Default::default()
        },
    );
    let forgotten = (named(), prop::collection::vec(any::<i32>(), 0..4)).prop_map(
        |((topic, topic_id), partitions)| message::ForgottenTopic {
            topic,
            topic_id,
            partitions,
            ..Default::default()
        },
    );
    let numbers = any::<(i32, i64, i32, i32, i32, i8, i32, i32)>();
    let topics = (prop::collection::vec(topic, 0..4), prop::collection::vec(forgotten, 0..3));
    (numbers, prop::option::of(text()), topics, text()).prop_map(
        move |(numbers, cluster_id, (topics, forgotten), rack_id)| {
            let (
                replica_id,
                replica_epoch,
                max_wait_ms,
                min_bytes,
                max_bytes,
                isolation,
                id,
                epoch,
            ) = numbers;
            message::Request {
                cluster_id: since(12, api, cluster_id, None),
                replica_id: since(15, api, -1, replica_id),
                replica_state: message::ReplicaState {
                    replica_id: since(15, api, replica_id, -1),
                    replica_epoch: since(15, api, replica_epoch, -1),
                    ..Default::default()
                },
                max_wait_ms,
                min_bytes,
                max_bytes,
                isolation_level: isolation,
                session_id: since(7, api, id, 0),
                session_epoch: since(7, api, epoch, -1),
                topics,
                forgotten_topics_data: since(7, api, forgotten, Vec::new()),
                rack_id: since(11, api, rack_id, KafkaString::default()),
                ..Default::default()
            }
        },
    )
}

fn name_and_id(topic: &TopicRef) -> (KafkaString, KafkaUuid) {
    match topic {
        TopicRef::Name(name) => (name.clone(), KafkaUuid::ZERO),
        TopicRef::Id(id) => (KafkaString::default(), topic_id_to_wire(*id)),
    }
}

/// What the generated codec would have read.
pub(crate) fn generated(request: &fetch::Request, api: Api) -> message::Request {
    let partition = |partition: &fetch::PartitionRequest| message::FetchPartition {
        partition: partition.index,
        current_leader_epoch: partition.current_leader_epoch,
        fetch_offset: partition.fetch_offset,
        last_fetched_epoch: partition.last_fetched_epoch,
        log_start_offset: partition.log_start_offset,
        partition_max_bytes: partition.max_bytes,
        replica_directory_id: topic_id_to_wire(partition.replica_directory_id),
        high_watermark: partition.high_watermark,
        ..Default::default()
    };
    let topic = |topic: &fetch::TopicRequest| {
        let (name, topic_id) = name_and_id(&topic.topic);
        let partitions = topic.partitions.iter().map(partition).collect();
        message::FetchTopic { topic: name, topic_id, partitions, ..Default::default() }
    };
    let forgotten = |topic: &fetch::ForgottenTopic| {
        let (name, topic_id) = name_and_id(&topic.topic);
        let partitions = topic.partitions.clone();
        message::ForgottenTopic { topic: name, topic_id, partitions, ..Default::default() }
    };
    message::Request {
        cluster_id: request.cluster_id.clone(),
        replica_id: since(15, api, -1, request.replica.id),
        replica_state: message::ReplicaState {
            replica_id: since(15, api, request.replica.id, -1),
            replica_epoch: request.replica.epoch,
            ..Default::default()
        },
        max_wait_ms: request.max_wait_ms,
        min_bytes: request.min_bytes,
        max_bytes: request.max_bytes,
        isolation_level: request.isolation_level,
        session_id: request.session_id,
        session_epoch: request.session_epoch,
        topics: request.topics.iter().map(topic).collect(),
        forgotten_topics_data: request.forgotten_topics.iter().map(forgotten).collect(),
        rack_id: request.rack_id.clone(),
        ..Default::default()
    }
}

fn response_partition() -> impl Strategy<Value = (PartitionResponse, Bytes)> {
    let aborted = any::<(i64, i64)>()
        .prop_map(|(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset });
    let diverging =
        (0_i32.., any::<i64>()).prop_map(|(epoch, end_offset)| EpochEnd { epoch, end_offset });
    (
        any::<(i32, i16, i64, i64, i64, i32)>(),
        prop::option::of(diverging),
        prop::option::of(leader()),
        prop::option::of(prop::collection::vec(aborted, 0..3)),
        prop::collection::vec(any::<u8>(), 0..300),
    )
        .prop_map(
            |(numbers, diverging_epoch, current_leader, aborted_transactions, records)| {
                let (index, error, high_watermark, last_stable_offset, log_start_offset, replica) =
                    numbers;
                let partition = PartitionResponse {
                    index,
                    error: ErrorCode::from_wire(error),
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    diverging_epoch,
                    current_leader,
                    aborted_transactions,
                    preferred_read_replica: replica,
                    records_bytes: records.len(),
                };
                (partition, Bytes::from(records))
            },
        )
}

/// A response, and the records of all its partitions.
fn response(api: Api) -> impl Strategy<Value = (fetch::Response, Vec<Bytes>)> {
    let topic = (topic(api.version() >= 13), prop::collection::vec(response_partition(), 0..4));
    let endpoints = prop::collection::vec(node_endpoint(), 0..3);
    (any::<(i32, i16, i32)>(), prop::collection::vec(topic, 0..4), endpoints).prop_map(
        |((throttle_time_ms, error, session_id), parts, node_endpoints)| {
            let mut all_records = Vec::new();
            let mut topics = Vec::new();
            for (topic, partitions) in parts {
                let (partitions, records): (Vec<_>, Vec<_>) = partitions.into_iter().unzip();
                all_records.extend(records);
                topics.push(TopicResponse { topic, partitions: partitions.into() });
            }
            let error = ErrorCode::from_wire(error);
            let response =
                fetch::Response { throttle_time_ms, error, session_id, topics, node_endpoints };
            (response, all_records)
        },
    )
}

/// The same response for the generated codec, without what `api` can't carry.
fn generated_response(
    response: &fetch::Response,
    records: &[Bytes],
    api: Api,
) -> message::Response {
    let mut records = records.iter();
    let mut partition = |partition: &PartitionResponse| message::PartitionData {
        partition_index: partition.index,
        error_code: partition.error.get(),
        high_watermark: partition.high_watermark,
        last_stable_offset: partition.last_stable_offset,
        log_start_offset: partition.log_start_offset,
        diverging_epoch: partition.diverging_epoch.filter(|_| api.version() >= 12).map_or_else(
            message::EpochEndOffset::default,
            |end| message::EpochEndOffset {
                epoch: end.epoch,
                end_offset: end.end_offset,
                ..Default::default()
            },
        ),
        current_leader: partition.current_leader.filter(|_| api.version() >= 12).map_or_else(
            message::LeaderIdAndEpoch::default,
            |leader| message::LeaderIdAndEpoch {
                leader_id: leader.id,
                leader_epoch: leader.epoch,
                ..Default::default()
            },
        ),
        aborted_transactions: partition.aborted_transactions.as_ref().map(|transactions| {
            transactions
                .iter()
                .map(|transaction| message::AbortedTransaction {
                    producer_id: transaction.producer_id,
                    first_offset: transaction.first_offset,
                    ..Default::default()
                })
                .collect()
        }),
        preferred_read_replica: since(11, api, partition.preferred_read_replica, -1),
        records: records.next().cloned(),
        ..Default::default()
    };
    let mut topic = |topic: &TopicResponse| {
        let (name, topic_id) = name_and_id(&topic.topic);
        let partitions = topic.partitions.iter().map(&mut partition).collect();
        message::FetchableTopicResponse { topic: name, topic_id, partitions, ..Default::default() }
    };
    let endpoint = |endpoint: &NodeEndpoint| message::NodeEndpoint {
        node_id: endpoint.node_id,
        host: endpoint.host.clone(),
        port: endpoint.port,
        rack: endpoint.rack.clone(),
        ..Default::default()
    };
    message::Response {
        throttle_time_ms: response.throttle_time_ms,
        error_code: response.error.get(),
        session_id: since(7, api, response.session_id, 0),
        responses: response.topics.iter().map(&mut topic).collect(),
        node_endpoints: since(
            16,
            api,
            response.node_endpoints.iter().map(endpoint).collect(),
            Vec::new(),
        ),
        ..Default::default()
    }
}

/// Our response from what the generated codec read, and its records.
pub(crate) fn ours(response: message::Response) -> (fetch::Response, Vec<Bytes>) {
    let mut all_records = Vec::new();
    let mut topics = Vec::new();
    for topic in response.responses {
        let mut partitions = Vec::new();
        for partition in topic.partitions {
            let records = partition.records.unwrap_or_default();
            let aborted = partition.aborted_transactions;
            partitions.push(PartitionResponse {
                index: partition.partition_index,
                error: ErrorCode::from_wire(partition.error_code),
                high_watermark: partition.high_watermark,
                last_stable_offset: partition.last_stable_offset,
                log_start_offset: partition.log_start_offset,
                diverging_epoch: None,
                current_leader: None,
                aborted_transactions: aborted.map(|_| Vec::new()),
                preferred_read_replica: partition.preferred_read_replica,
                records_bytes: records.len(),
            });
            all_records.push(records);
        }
        let topic = match topic.topic {
            name if name.is_empty() => {
                TopicRef::Id(strandline_wire::topic_id_from_wire(topic.topic_id))
            }
            name => TopicRef::Name(name),
        };
        topics.push(TopicResponse { topic, partitions: partitions.into() });
    }
    let error = ErrorCode::from_wire(response.error_code);
    let (throttle_time_ms, session_id) = (response.throttle_time_ms, response.session_id);
    let node_endpoints = Vec::new();
    (fetch::Response { throttle_time_ms, error, session_id, topics, node_endpoints }, all_records)
}

/// The frame as it goes over the socket.
pub(crate) fn sent(
    response: &fetch::Response,
    records: &[Bytes],
    api: Api,
    correlation_id: i32,
) -> BytesMut {
    let segments = response.to_frame(api, correlation_id).expect("the response fits a frame");
    let frame_bytes = segments.frame_bytes();
    let mut frame = BytesMut::new();
    let gaps = records.iter().filter(|records| !records.is_empty());
    for piece in segments.fill(gaps) {
        match piece {
            Piece::Bytes(bytes) => frame.extend_from_slice(&bytes),
            Piece::Records(records) => frame.extend_from_slice(records),
        }
    }
    assert_eq!(frame.len(), frame_bytes);
    frame
}

#[test]
fn a_frame_that_its_length_field_cant_express_is_refused() {
    let api = ApiKey::Fetch.served().at(12).unwrap();
    let partition = |index| {
        let failed = PartitionResponse::failed(index, ErrorCode::NONE);
        PartitionResponse { records_bytes: 1 << 30, ..failed }
    };
    let response = fetch::Response {
        throttle_time_ms: 0,
        error: ErrorCode::NONE,
        session_id: 0,
        topics: vec![TopicResponse {
            topic: TopicRef::Name(KafkaString::from_static("orders")),
            partitions: (0..2).map(partition).collect(),
        }],
        node_endpoints: Vec::new(),
    };
    let error = response.to_frame(api, 1).unwrap_err().to_string();
    assert!(error.starts_with("frame is too large"), "{error}");
}

proptest! {
    #[test]
    fn requests_read_as_the_generated_codec_reads_them(
        (api, request) in versions(ApiKey::Fetch).prop_flat_map(|api| (Just(api), request(api))),
    ) {
        let body = encoded(&request, api);
        prop_assert_eq!(generated(&fetch::Request::decode(body, api).unwrap(), api), request);
    }

    #[test]
    fn responses_are_written_as_the_generated_codec_writes_them(
        (api, (response, records)) in
            versions(ApiKey::Fetch).prop_flat_map(|api| (Just(api), response(api))),
        correlation_id: i32,
    ) {
        let mut expected = BytesMut::new();
        let theirs = generated_response(&response, &records, api);
        write_response(&mut expected, api, correlation_id, &theirs).unwrap();
        prop_assert_eq!(sent(&response, &records, api, correlation_id), expected);
    }

    #[test]
    fn a_request_that_is_cut_anywhere_is_refused(
        (api, request) in versions(ApiKey::Fetch).prop_flat_map(|api| (Just(api), request(api))),
        cut: prop::sample::Index,
    ) {
        let mut body = encoded(&request, api);
        body.truncate(cut.index(body.len()));
        let theirs = message::Request::decode(body.clone().freeze(), api.version());
        prop_assert!(fetch::Request::decode(body, api).is_err() && theirs.is_err());
    }
}
