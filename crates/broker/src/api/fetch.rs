//! Fetch: v4–v18. v7 incremental sessions; v9 leader epochs; v12 diverging epochs; v13 topic ids.

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::smallvec;
use strandline_coordination::{
    FetchPartition, Fetched, SessionContext, SessionKey, SessionRequest, TopicKey,
};
use strandline_storage::{BatchBytes, BatchPiece};
use strandline_wire::fetch::{
    AbortedTransaction, EpochEnd, PartitionResponse, Piece, Request, Response, TopicRequest,
    TopicResponse,
};
use strandline_wire::{Api, EncodeError, ErrorCode, KafkaString, Leader, TopicRef};

use super::is_isolation_level;
use crate::codes::Codes;
use crate::fetch::{Asked, FetchLimits, Found, Looker, fetch};
use crate::metrics::Metrics;
use crate::{Broker, Reply, error_code};

/// The first version in which Kafka names the leader to a client that is behind (KIP-951).
const LEADER_FROM: i16 = 16;
/// The isolation level of readers that skip what no committed transaction wrote.
const READ_COMMITTED: i8 = 1;
/// The first version that names topics by id.
const BY_ID_FROM: i16 = 13;

/// Reads what the client asks for, waiting for it as long as it wishes.
pub(crate) async fn handle(
    broker: &Broker,
    request: Request,
    api: Api,
    correlation_id: i32,
) -> Result<Reply, EncodeError> {
    let limits = limits(broker, &request);
    let uses_ids = api.version() >= BY_ID_FROM;
    let session = to_session_request(&request, uses_ids);
    let now = broker.environment().now();
    let context = match broker.sessions().lock().begin(now, session) {
        Ok(context) => context,
        Err(error) => {
            return failed(broker, error_code::session(error), api, correlation_id);
        }
    };
    let (SessionContext::Sessionless(partitions)
    | SessionContext::Full(partitions)
    | SessionContext::Incremental { partitions, .. }) = &context;
    // As Kafka: a negative limit of the request is one of each partition.
    let of_request = if request.max_bytes < 0 { request.max_bytes } else { i32::MAX };
    let limited = |wants: FetchPartition| FetchPartition {
        max_bytes: wants.max_bytes.min(of_request),
        ..wants
    };
    let asked: Vec<Asked> =
        partitions.iter().map(|(key, wants)| ask(broker, key, limited(*wants))).collect();
    if !is_isolation_level(request.isolation_level) && asked.iter().any(|asked| asked.found.is_ok())
    {
        let response = failed_all(&request, ErrorCode::UNKNOWN_SERVER_ERROR, api);
        return without_records(broker, &response, api, correlation_id);
    }
    let looker = Looker { partitions: broker.partitions(), limits };
    let found = fetch(looker, broker.environment(), broker.stop(), &asked).await;
    Metrics::fetched(&asked, &found);
    let (session_id, told) = match settle(broker, context, uses_ids, &asked, &found) {
        Ok(settled) => settled,
        Err(error) => return failed(broker, error, api, correlation_id),
    };
    let answers = asked.into_iter().zip(found).zip(told).filter(|(_, told)| *told);
    let answers = answers.map(|((asked, found), _)| {
        let response = to_response(broker, &asked, &found, &request, api.version());
        (asked.key.topic, response, found.records)
    });
    let (response, records) = to_frame(session_id, answers);
    write(broker, &response, records, api, correlation_id)
}

fn limits(broker: &Broker, request: &Request) -> FetchLimits {
    let broker_max_bytes = broker.settings().broker().fetch_max_bytes.get();
    let max_bytes = u64::try_from(request.max_bytes).unwrap_or(0).min(broker_max_bytes);
    FetchLimits {
        max_bytes,
        min_bytes: u64::try_from(request.min_bytes).unwrap_or(0).min(max_bytes),
        max_wait_ms: u64::try_from(request.max_wait_ms).unwrap_or(0),
    }
}

fn to_session_request(request: &Request, uses_ids: bool) -> SessionRequest {
    let mut partitions: Vec<(SessionKey, FetchPartition)> = Vec::new();
    let mut place_of: HashMap<SessionKey, usize> = HashMap::new();
    let asked_count: usize = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    for topic in &request.topics {
        let named = to_key(&topic.topic);
        for asked in &topic.partitions {
            let wants = FetchPartition {
                fetch_offset: asked.fetch_offset,
                max_bytes: asked.max_bytes,
                current_leader_epoch: asked.current_leader_epoch,
                last_fetched_epoch: asked.last_fetched_epoch,
            };
            let key = SessionKey { topic: named.clone(), index: asked.index };
            // As Kafka: of several wishes for one partition the last counts, in the place of the first.
            if asked_count > 1 {
                match place_of.entry(key.clone()) {
                    Entry::Occupied(place) => {
                        partitions[*place.get()].1 = wants;
                        continue;
                    }
                    Entry::Vacant(place) => {
                        place.insert(partitions.len());
                    }
                }
            }
            partitions.push((key, wants));
        }
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics {
        let named = to_key(&topic.topic);
        let key = |&index: &i32| SessionKey { topic: named.clone(), index };
        forgotten.extend(topic.partitions.iter().map(key));
    }
    SessionRequest {
        id: request.session_id,
        epoch: request.session_epoch,
        uses_ids,
        partitions,
        forgotten,
    }
}

fn to_key(topic: &TopicRef) -> TopicKey {
    match topic {
        TopicRef::Name(name) => TopicKey::Name(Arc::from(name.as_str())),
        TopicRef::Id(id) => TopicKey::Id(*id),
    }
}

fn to_ref(topic: &TopicKey) -> TopicRef {
    match topic {
        TopicKey::Name(name) => TopicRef::Name(KafkaString::from(name.to_string())),
        TopicKey::Id(id) => TopicRef::Id(*id),
    }
}

fn ask(broker: &Broker, key: &SessionKey, wants: FetchPartition) -> Asked {
    let topic = match &key.topic {
        TopicKey::Name(name) => broker.registry().by_name(name),
        TopicKey::Id(id) => broker.registry().by_id(*id),
    };
    let found =
        topic.ok_or_else(|| error_code::unknown_session_topic(&key.topic)).and_then(|topic| {
            let slot = topic.partition(key.index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
            Ok((topic, slot))
        });
    Asked { key: key.clone(), wants, found }
}

/// Closes the books of the session: its id, and which partitions the client is told of.
fn settle(
    broker: &Broker,
    context: SessionContext,
    uses_ids: bool,
    asked: &[Asked],
    found: &[Found],
) -> Result<(i32, Vec<bool>), ErrorCode> {
    let everything = vec![true; asked.len()];
    let fetched = || -> Vec<(SessionKey, Fetched)> {
        asked
            .iter()
            .zip(found)
            .map(|(asked, found)| (asked.key.clone(), to_fetched(found)))
            .collect()
    };
    match context {
        SessionContext::Sessionless(_) => Ok((0, everything)),
        SessionContext::Full(partitions) => {
            let now = broker.environment().now();
            let candidate = broker.new_session_id();
            let mut sessions = broker.sessions().lock();
            let opened = sessions.open(now, candidate, uses_ids, partitions, &fetched());
            Ok((opened.unwrap_or(0), everything))
        }
        SessionContext::Incremental { id, next_epoch, .. } => {
            let told = broker.sessions().lock().tell(id, next_epoch, &fetched());
            told.map(|told| (id, told)).map_err(error_code::session)
        }
    }
}

fn to_fetched(found: &Found) -> Fetched {
    Fetched {
        high_watermark: found.high_watermark,
        log_start_offset: found.log_start_offset,
        has_records: !found.records.is_empty(),
        must_tell: found.is_urgent(),
    }
}

/// What stands around the records, and these. Neighbours of the same topic share one entry.
fn to_frame(
    session_id: i32,
    answers: impl Iterator<Item = (TopicKey, PartitionResponse, BatchBytes)>,
) -> (Response, Vec<BatchBytes>) {
    let mut topics: Vec<TopicResponse> = Vec::new();
    let mut last_topic: Option<TopicKey> = None;
    let mut records = Vec::new();
    for (key, partition, read) in answers {
        if !read.is_empty() {
            records.push(read);
        }
        match topics.last_mut() {
            Some(topic) if last_topic.as_ref() == Some(&key) => {
                topic.partitions.push(partition);
            }
            Some(_) | None => {
                let topic = to_ref(&key);
                topics.push(TopicResponse { topic, partitions: smallvec![partition] });
                last_topic = Some(key);
            }
        }
    }
    let response = Response {
        throttle_time_ms: 0,
        error: ErrorCode::NONE,
        session_id,
        topics,
        node_endpoints: Vec::new(),
    };
    (response, records)
}

/// Counts the answer, and writes it.
fn write(
    broker: &Broker,
    response: &Response,
    records: Vec<BatchBytes>,
    api: Api,
    correlation_id: i32,
) -> Result<Reply, EncodeError> {
    broker.metrics().answer(api.key(), response.codes());
    let mut reply = Reply::default();
    for piece in response.to_frame(api, correlation_id)?.fill(records) {
        match piece {
            Piece::Bytes(bytes) => reply.push(BatchPiece::Memory(bytes)),
            Piece::Records(records) => {
                records.into_pieces().into_iter().for_each(|piece| reply.push(piece));
            }
        }
    }
    Ok(reply)
}

fn to_response(
    broker: &Broker,
    asked: &Asked,
    found: &Found,
    request: &Request,
    version: i16,
) -> PartitionResponse {
    PartitionResponse {
        high_watermark: found.high_watermark,
        // No transactions yet: nothing is unstable below the high watermark.
        last_stable_offset: found.high_watermark,
        log_start_offset: found.log_start_offset,
        aborted_transactions: aborted_transactions(asked, found, request.isolation_level),
        diverging_epoch: found
            .diverging
            .map(|end| EpochEnd { epoch: end.epoch, end_offset: end.end_offset }),
        current_leader: found
            .leader_epoch
            .filter(|_| version >= LEADER_FROM)
            .map(|epoch| Leader { id: broker.node_id().get(), epoch }),
        records_bytes: usize::try_from(found.records.size().get()).unwrap_or(usize::MAX),
        ..PartitionResponse::failed(asked.key.index, found.error)
    }
}

/// As Kafka: a list for who reads committed records only, null for others and where reading failed,
/// and an empty list where there is nothing to read from.
fn aborted_transactions(
    asked: &Asked,
    found: &Found,
    isolation_level: i8,
) -> Option<Vec<AbortedTransaction>> {
    let was_read = found.error == ErrorCode::NONE && found.diverging.is_none();
    (asked.found.is_err() || was_read && isolation_level == READ_COMMITTED).then(Vec::new)
}

/// The session can't go on: the client is told of none.
fn failed(
    broker: &Broker,
    error: ErrorCode,
    api: Api,
    correlation_id: i32,
) -> Result<Reply, EncodeError> {
    let response = Response {
        throttle_time_ms: 0,
        error,
        session_id: 0,
        topics: Vec::new(),
        node_endpoints: Vec::new(),
    };
    without_records(broker, &response, api, correlation_id)
}

/// The request as a whole is wrong. Up to v12 each of its partitions says so, too.
fn failed_all(request: &Request, error: ErrorCode, api: Api) -> Response {
    let asked = if api.version() < BY_ID_FROM { request.topics.as_slice() } else { &[] };
    let topic = |asked: &TopicRequest| TopicResponse {
        topic: asked.topic.clone(),
        partitions: asked
            .partitions
            .iter()
            .map(|asked| PartitionResponse::failed(asked.index, error))
            .collect(),
    };
    Response {
        throttle_time_ms: 0,
        error,
        session_id: request.session_id,
        topics: asked.iter().map(topic).collect(),
        node_endpoints: Vec::new(),
    }
}

fn without_records(
    broker: &Broker,
    response: &Response,
    api: Api,
    correlation_id: i32,
) -> Result<Reply, EncodeError> {
    write(broker, response, Vec::new(), api, correlation_id)
}
