//! `UnregisterBroker`: v0 (KIP-631). There is one broker, and who asks has reached it.

use strandline_wire::ErrorCode;
use strandline_wire::unregister_broker::{Request, Response};

use super::text;
use crate::Broker;

/// Refuses in Kafka's words to forget a broker that nobody knows, and in words of its own to forget
/// itself. Kafka would: it leaves a broker that runs without a partition until its next start.
pub(crate) fn handle(broker: &Broker, request: &Request) -> Response {
    let id = request.broker_id;
    let (code, message) = if id == broker.node_id().get() {
        let message = format!(
            "Broker ID {id} is this broker, which runs and keeps every partition: stop it instead"
        );
        (ErrorCode::INVALID_REQUEST, message)
    } else {
        let message = format!("Broker ID {id} is not currently registered");
        (ErrorCode::BROKER_ID_NOT_REGISTERED, message)
    };
    Response { error_code: code.get(), error_message: Some(text(message)), ..Response::default() }
}
