//! Heartbeat: v0–v4. v3 static members.

use strandline_coordination::group::MemberRequest;
use strandline_wire::ErrorCode;
use strandline_wire::heartbeat::{Request, Response};

use super::shared;
use crate::{Broker, error_code};

/// Keeps a member alive, and tells it when it must join again.
pub(crate) async fn handle(broker: &Broker, request: &Request) -> Response {
    let who = MemberRequest {
        group: shared(&request.group_id),
        member: shared(&request.member_id),
        instance: request.group_instance_id.as_ref().map(shared),
        generation: request.generation_id,
    };
    let code = match broker.groups().heartbeat(who).await {
        Ok(Ok(())) => ErrorCode::NONE,
        Ok(Err(error)) => error_code::group(error),
        Err(unavailable) => error_code::unavailable(unavailable),
    };
    Response { error_code: code.get(), ..Response::default() }
}
