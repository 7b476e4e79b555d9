//! InitProducerId: v0–v5. Idempotent producers get an id (KIP-98, KIP-360); transactions are
//! refused until they are served.

use strandline_wire::ErrorCode;
use strandline_wire::init_producer_id::{Request, Response};

use crate::{Broker, error_code};

const NONE: i64 = -1;
const NONE_EPOCH: i16 = -1;

/// Gives a producer an id that nobody has, with epoch 0.
pub(crate) async fn handle(broker: &Broker, request: &Request) -> Response {
    match &request.transactional_id {
        // As Kafka: an empty transactional id is a mistake, not a missing one.
        Some(id) if id.is_empty() => return refused(ErrorCode::INVALID_REQUEST),
        Some(_) => {
            // Not retriable for any client, so that a producer fails at once and says why.
            return refused(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        }
        None => {}
    }
    // An id goes on with its epoch (KIP-360): one without the other is a mistake.
    if (request.producer_id == NONE) != (request.producer_epoch == NONE_EPOCH) {
        return refused(ErrorCode::INVALID_REQUEST);
    }
    match broker.producer_ids().allocate().await {
        Ok(id) => Response { producer_id: id.get(), producer_epoch: 0, ..Response::default() },
        Err(error) => {
            tracing::warn!(%error, "no producer id could be given out");
            refused(error_code::meta(&error))
        }
    }
}

fn refused(code: ErrorCode) -> Response {
    Response {
        error_code: code.get(),
        producer_id: NONE,
        producer_epoch: NONE_EPOCH,
        ..Response::default()
    }
}
