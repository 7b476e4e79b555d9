//! DeleteTopics: v1–v6. v5 error messages; v6 by id.

use std::sync::Arc;

use hashbrown::HashMap;
use strandline_model::TopicId;
use strandline_wire::delete_topics::{DeletableTopicResult, DeleteTopicState, Request, Response};
use strandline_wire::{ErrorCode, KafkaString, topic_id_from_wire, topic_id_to_wire};

use super::{NAMED_TWICE, UNKNOWN_TOPIC, text};
use crate::topic::{DeleteError, DeletedBy, Topic};
use crate::{Broker, error_code};

/// Kafka's words for an id that no topic has.
const UNKNOWN_TOPIC_ID: &str = "This server does not host this topic ID.";

/// Deletes each topic in a commit of its own; the names are free when the answer leaves.
pub(crate) async fn handle(
    broker: &Arc<Broker>,
    request: Request,
    version: i16,
    by: &DeletedBy,
) -> Response {
    let asked: Vec<DeleteTopicState> = if version >= 6 {
        request.topics
    } else {
        let by_name = |name| DeleteTopicState { name: Some(name), ..DeleteTopicState::default() };
        request.topic_names.into_iter().map(by_name).collect()
    };
    if !broker.settings().broker().delete_topic_enable {
        let code = disabled(version);
        let refused = |state| answer(state, None, code, Some("topic deletion is disabled"));
        return Response { responses: asked.iter().map(refused).collect(), ..Response::default() };
    }
    let mut times: HashMap<Named<'_>, Times> = HashMap::new();
    for state in &asked {
        let times = times.entry(named(broker, state)).or_default();
        if state.name.is_some() {
            times.by_name += 1;
        } else {
            times.by_id += 1;
        }
    }
    let mut responses = Vec::with_capacity(times.len());
    for state in &asked {
        // Answered once, however often it is named.
        let Some(times) = times.remove(&named(broker, state)) else { continue };
        responses.push(match find(broker, state) {
            found if times.by_name + times.by_id > 1 => {
                // As Kafka: name and id are told where both were used.
                let mixed = times.by_name > 0 && times.by_id > 0;
                let topic = found.ok().filter(|_| mixed);
                answer(state, topic.as_ref(), ErrorCode::INVALID_REQUEST, Some(NAMED_TWICE))
            }
            Ok(topic) => delete(broker, state, &topic, version, by).await,
            Err((code, message)) => answer(state, None, code, Some(message)),
        });
    }
    Response { responses, ..Response::default() }
}

/// How often a topic is named.
#[derive(Default)]
struct Times {
    by_name: usize,
    by_id: usize,
}

/// What an entry of the request is about: one topic, whether named by name or by id.
#[derive(PartialEq, Eq, Hash)]
enum Named<'a> {
    Topic(TopicId),
    Unknown(Option<&'a str>, TopicId),
}

fn named<'a>(broker: &Broker, state: &'a DeleteTopicState) -> Named<'a> {
    if let Ok(topic) = find(broker, state) {
        return Named::Topic(topic.id());
    }
    let name = state.name.as_ref().map(KafkaString::as_str);
    Named::Unknown(name, topic_id_from_wire(state.topic_id))
}

/// Versions 1 and 2 have no word for it (KIP-322).
const fn disabled(version: i16) -> ErrorCode {
    if version < 3 { ErrorCode::INVALID_REQUEST } else { ErrorCode::TOPIC_DELETION_DISABLED }
}

fn find(
    broker: &Broker,
    state: &DeleteTopicState,
) -> Result<Arc<Topic>, (ErrorCode, &'static str)> {
    let id = topic_id_from_wire(state.topic_id);
    match &state.name {
        Some(_) if id != TopicId::ZERO => {
            Err((ErrorCode::INVALID_REQUEST, "You may not specify both topic name and topic id."))
        }
        Some(name) => broker
            .registry()
            .by_name(name.as_str())
            .ok_or((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC)),
        None if id == TopicId::ZERO => {
            Err((ErrorCode::INVALID_REQUEST, "Neither topic name nor id were specified."))
        }
        None => broker.registry().by_id(id).ok_or((ErrorCode::UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_ID)),
    }
}

async fn delete(
    broker: &Arc<Broker>,
    state: &DeleteTopicState,
    topic: &Arc<Topic>,
    version: i16,
    by: &DeletedBy,
) -> DeletableTopicResult {
    match broker.delete_topic(topic, by.clone()).await {
        Ok(()) => answer(state, Some(topic), ErrorCode::NONE, None),
        // Switched off since the request was looked at.
        Err(DeleteError::Disabled) => answer(state, Some(topic), disabled(version), None),
        Err(error) => {
            if let DeleteError::Storage(error) = &error {
                tracing::warn!(topic = %topic.name(), %error, "topic was not deleted");
            }
            answer(state, Some(topic), error_code::delete(&error), Some(&error.to_string()))
        }
    }
}

fn answer(
    state: &DeleteTopicState,
    topic: Option<&Arc<Topic>>,
    code: ErrorCode,
    message: Option<&str>,
) -> DeletableTopicResult {
    let name: Option<KafkaString> = match topic {
        Some(topic) => Some(text(topic.name().as_str())),
        None => state.name.clone(),
    };
    DeletableTopicResult {
        name,
        topic_id: topic.map_or(state.topic_id, |topic| topic_id_to_wire(topic.id())),
        error_code: code.get(),
        error_message: message.map(text),
        ..DeletableTopicResult::default()
    }
}
