//! FindCoordinator: v0–v6. v1 kinds of keys; v4 several keys; v6 share groups (KIP-932).

use std::sync::Arc;

use strandline_wire::find_coordinator::{Coordinator, Request, Response};
use strandline_wire::{ErrorCode, KafkaString};

use super::text;
use crate::Broker;
use crate::advertise::Endpoint;
use crate::connection::Peer;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

/// From this version on there are several keys.
const KEYS_FROM: i16 = 4;
/// From this version on share groups are a kind of their own.
const SHARE_FROM: i16 = 6;
/// "No node" on the wire.
const NO_NODE: i32 = -1;

/// This broker coordinates every group.
pub(crate) async fn handle(
    broker: &Arc<Broker>,
    peer: &Peer,
    request: Request,
    version: i16,
) -> Response {
    let error = match request.key_type {
        GROUP => {
            broker.ensure_offsets_topic().await;
            ErrorCode::NONE
        }
        // Transactions are not served. Not retriable for any client, so that a producer fails at
        // once and says why; see InitProducerId.
        TRANSACTION => ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        // Share groups (2), as a Kafka broker without a coordinator for them; an unknown kind too.
        _ => ErrorCode::INVALID_REQUEST,
    };
    let endpoint = (error == ErrorCode::NONE).then(|| broker.endpoint_for(peer));
    // In Kafka's words, but for what Kafka would do and we don't; it has none for success, nor for share groups before there were any.
    let is_early = request.key_type == SHARE && version < SHARE_FROM;
    let words = if error == ErrorCode::NONE || is_early { "" } else { message(error) };
    let answer = |key: KafkaString| coordinator(broker, endpoint.as_ref(), (error, words), key);
    if version >= KEYS_FROM {
        let coordinators = request.coordinator_keys.into_iter().map(answer).collect();
        return Response { coordinators, ..Response::default() };
    }
    let Coordinator { node_id, host, port, error_code, .. } = answer(request.key);
    Response {
        error_code,
        error_message: Some(text(message(error))),
        node_id,
        host,
        port,
        ..Response::default()
    }
}

fn coordinator(
    broker: &Broker,
    endpoint: Option<&Endpoint>,
    (error, words): (ErrorCode, &str),
    key: KafkaString,
) -> Coordinator {
    let found = Coordinator {
        key,
        error_code: error.get(),
        error_message: Some(text(words)),
        ..Coordinator::default()
    };
    match endpoint {
        Some(endpoint) => Coordinator {
            node_id: broker.node_id().get(),
            host: text(&endpoint.host),
            port: i32::from(endpoint.port),
            ..found
        },
        None => Coordinator { node_id: NO_NODE, port: NO_NODE, ..found },
    }
}

/// What people read: up to v3 there is always a message.
fn message(error: ErrorCode) -> &'static str {
    match error {
        ErrorCode::NONE => "NONE",
        ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED => {
            "transactions are not served yet: a producer without transactional.id works"
        }
        _ => {
            "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. See the broker logs for more details."
        }
    }
}
