//! SyncGroup: v0–v5. v3 static members; v5 protocol type and name.

use bytes::Bytes;
use strandline_coordination::group::{MemberRequest, SyncRequest};
use strandline_wire::ErrorCode;
use strandline_wire::sync_group::{Request, Response};

use super::{shared, text};
use crate::{Broker, error_code};

/// From this version on the protocol's type and name must be given.
const PROTOCOL_FROM: i16 = 5;

/// Parks until the leader has assigned, or answers at once.
pub(crate) async fn handle(broker: &Broker, request: &Request, version: i16) -> Response {
    let has_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    if version >= PROTOCOL_FROM && !has_protocol {
        return refused(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    }
    let assignments = request.assignments.iter();
    let sync = SyncRequest {
        who: MemberRequest {
            group: shared(&request.group_id),
            member: shared(&request.member_id),
            instance: request.group_instance_id.as_ref().map(shared),
            generation: request.generation_id,
        },
        protocol_type: request.protocol_type.as_ref().map(shared),
        protocol: request.protocol_name.as_ref().map(shared),
        // Copied: what is kept of a member must not keep the frame that it came in.
        assignments: assignments
            .map(|one| (shared(&one.member_id), Bytes::copy_from_slice(&one.assignment)))
            .collect(),
    };
    match broker.groups().sync(sync).await {
        Ok(Ok(synced)) => Response {
            protocol_type: synced.protocol_type.as_deref().map(text),
            protocol_name: synced.protocol.as_deref().map(text),
            assignment: synced.assignment,
            ..Response::default()
        },
        Ok(Err(error)) => refused(error_code::group(error)),
        Err(unavailable) => refused(error_code::unavailable(unavailable)),
    }
}

fn refused(code: ErrorCode) -> Response {
    Response { error_code: code.get(), ..Response::default() }
}
