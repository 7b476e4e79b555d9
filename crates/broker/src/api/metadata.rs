//! Metadata: v0–v13. v0 empty list means all; v1 null means all; v4 auto-creation switch; v7 leader
//! epoch; v8 authorized operations; v10 topic ids; v12 lookup by id.
//!
//! A topic that may be created on first use is created before the answer. From v10 on the answer calls
//! it unknown as Kafka's does: the client asks again and is told its leader. Before, the answer has its
//! leader: a group of kafka-go that is told "unknown" goes on without the topic, and sees no change when
//! it looks a moment later. The name of one that was deleted a moment ago is unknown for a while.

use std::sync::Arc;

use hashbrown::HashSet;
use strandline_model::{InvalidTopicName, TopicId, TopicName};
use strandline_wire::metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    Request, Response,
};
use strandline_wire::{ErrorCode, KafkaString, topic_id_from_wire, topic_id_to_wire};

use super::{OPERATIONS_NOT_ASKED, text};
use crate::group::feed::OFFSETS_TOPIC;
use crate::topic::{CreateError, NewTopic, Topic};
use crate::{Broker, Peer, error_code};

/// Topics that one request may create by naming them. Reached: the others are unknown for now, which
/// makes a client ask again.
const CREATED_PER_REQUEST_MAX: usize = 100;

/// The first version whose clients are told of a topic that they have created when they ask again:
/// they know topics by ids, and look out for such that appear.
const TOLD_LATER_SINCE: i16 = 10;

/// All operations on a topic, as bits: nobody is refused anything until there is an authorizer.
pub(crate) const TOPIC_OPERATIONS: i32 = 0b1101_1111_1000;
/// All operations on the cluster, as bits.
pub(crate) const CLUSTER_OPERATIONS: i32 = 0b1_1111_1010_0000;

/// Describes brokers and topics.
pub(crate) async fn handle(
    broker: &Arc<Broker>,
    peer: &Peer,
    request: Request,
    version: i16,
) -> Response {
    if let Some(error) = refusal(&request, version) {
        return refused(&request, error, version);
    }
    let endpoint = broker.endpoint_for(peer);
    let topics = match &request.topics {
        Some(topics) if !(version == 0 && topics.is_empty()) => {
            let mut answers = Vec::new();
            // A topic that is named again is not described again: a small request would be answered
            // with gigabytes.
            let mut named = HashSet::new();
            let mut may_create = CREATED_PER_REQUEST_MAX;
            for asked in topics {
                let name = asked.name.as_ref().map(KafkaString::as_bytes);
                if named.insert((topic_id_from_wire(asked.topic_id), name)) {
                    let answer = describe_asked(broker, asked, &request, version, &mut may_create);
                    answers.push(answer.await);
                }
            }
            answers
        }
        Some(_) | None => {
            broker.registry().all().iter().map(|t| describe(broker, t, &request)).collect()
        }
    };
    let node = broker.node_id().get();
    Response {
        brokers: vec![MetadataResponseBroker {
            node_id: node,
            host: text(endpoint.host),
            port: i32::from(endpoint.port),
            rack: broker.rack().map(text),
            ..MetadataResponseBroker::default()
        }],
        cluster_id: Some(text(broker.cluster_id())),
        controller_id: node,
        topics,
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            CLUSTER_OPERATIONS
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..Response::default()
    }
}

/// Why the request as a whole is refused: ids before v12, or a topic without a name or id.
fn refusal(request: &Request, version: i16) -> Option<ErrorCode> {
    let asked = request.topics.as_deref().unwrap_or_default();
    let has_id = |topic: &MetadataRequestTopic| topic_id_from_wire(topic.topic_id) != TopicId::ZERO;
    let lacks_name = asked.iter().any(|topic| topic.name.is_none());
    if version < 12 {
        (lacks_name || asked.iter().any(has_id)).then_some(ErrorCode::INVALID_REQUEST)
    } else {
        (lacks_name && !asked.iter().any(has_id)).then_some(ErrorCode::UNKNOWN_SERVER_ERROR)
    }
}

/// As Kafka: no brokers, and the error in each topic and, from v13 on, in the answer as a whole.
fn refused(request: &Request, error: ErrorCode, version: i16) -> Response {
    let topic = |asked: &MetadataRequestTopic| MetadataResponseTopic {
        error_code: error.get(),
        name: Some(asked.name.clone().unwrap_or_default()),
        topic_id: asked.topic_id,
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
        ..MetadataResponseTopic::default()
    };
    Response {
        topics: request.topics.iter().flatten().map(topic).collect(),
        error_code: if version >= 13 { error.get() } else { ErrorCode::NONE.get() },
        controller_id: -1,
        cluster_authorized_operations: OPERATIONS_NOT_ASKED,
        ..Response::default()
    }
}

async fn describe_asked(
    broker: &Arc<Broker>,
    asked: &MetadataRequestTopic,
    request: &Request,
    version: i16,
    may_create: &mut usize,
) -> MetadataResponseTopic {
    let id = topic_id_from_wire(asked.topic_id);
    if version >= 12 && id != TopicId::ZERO {
        return match broker.registry().by_id(id) {
            Some(topic) => describe(broker, &topic, request),
            None => MetadataResponseTopic {
                error_code: ErrorCode::UNKNOWN_TOPIC_ID.get(),
                name: None,
                topic_id: asked.topic_id,
                topic_authorized_operations: OPERATIONS_NOT_ASKED,
                ..MetadataResponseTopic::default()
            },
        };
    }
    let name = asked.name.as_ref().map_or("", |name| name.as_str());
    if let Some(topic) = broker.registry().by_name(name) {
        return describe(broker, &topic, request);
    }
    // Before v4 a client could not forbid it.
    let client_allows = version < 4 || request.allow_auto_topic_creation;
    let error = match create_on_first_use(broker, name, client_allows && *may_create > 0).await {
        Ok(topic) => {
            *may_create -= 1;
            if version < TOLD_LATER_SINCE {
                return describe(broker, &topic, request);
            }
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        }
        Err(error) => error,
    };
    MetadataResponseTopic {
        error_code: error.get(),
        name: Some(text(name)),
        is_internal: TopicName::new(name).is_ok_and(|name| name.is_internal()),
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
        ..MetadataResponseTopic::default()
    }
}

/// Creates a topic, durably: whoever asks next is told of it.
async fn create_on_first_use(
    broker: &Arc<Broker>,
    name: &str,
    client_allows: bool,
) -> Result<Arc<Topic>, ErrorCode> {
    let valid =
        TopicName::new(name).map_err(|_: InvalidTopicName| ErrorCode::INVALID_TOPIC_EXCEPTION)?;
    let allowed = client_allows && broker.settings().broker().auto_create_topics_enable;
    // Of the broker's own topics only that of positions has somebody who writes to it.
    let is_nobodys = valid.is_reserved() || (valid.is_internal() && name != OFFSETS_TOPIC);
    if !allowed || is_nobodys || broker.name_rests(name) {
        return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
    let new = if name == OFFSETS_TOPIC {
        broker.new_offsets_topic()
    } else {
        NewTopic {
            name: name.to_owned(),
            partition_count: -1,
            replication_factor: -1,
            assignments: Vec::new(),
            configs: Vec::new(),
        }
    };
    match broker.create_topic(&new).await {
        Ok(topic) => Ok(topic),
        // Somebody else used it for the first time at the same moment.
        Err(CreateError::Exists(_)) => {
            broker.registry().by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        }
        Err(error) => {
            tracing::debug!(topic = name, %error, "topic was not created on first use");
            Err(error_code::create(&error))
        }
    }
}

fn describe(broker: &Arc<Broker>, topic: &Arc<Topic>, request: &Request) -> MetadataResponseTopic {
    let node = broker.node_id().get();
    let partitions = topic.partitions().into_iter().map(|slot| MetadataResponsePartition {
        partition_index: slot.id().index.to_wire(),
        leader_id: node,
        leader_epoch: broker.partitions().leader_epoch(topic, &slot),
        replica_nodes: vec![node],
        isr_nodes: vec![node],
        ..MetadataResponsePartition::default()
    });
    MetadataResponseTopic {
        name: Some(text(topic.name().as_str())),
        topic_id: topic_id_to_wire(topic.id()),
        is_internal: topic.name().is_internal(),
        partitions: partitions.collect(),
        topic_authorized_operations: if request.include_topic_authorized_operations {
            TOPIC_OPERATIONS
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..MetadataResponseTopic::default()
    }
}
