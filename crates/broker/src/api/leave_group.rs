//! LeaveGroup: v0–v5. v3 several members, static ones too; v5 reason (KIP-800).

use std::sync::Arc;

use strandline_coordination::group::{LeaveRequest, LeavingMember};
use strandline_wire::ErrorCode;
use strandline_wire::leave_group::{MemberResponse, Request, Response};

use super::{shared, text};
use crate::{Broker, error_code};

/// From this version on there are several members.
const MEMBERS_FROM: i16 = 3;

/// Removes members; those that stay rebalance.
pub(crate) async fn handle(broker: &Broker, request: &Request, version: i16) -> Response {
    if request.group_id.is_empty() {
        return failed(ErrorCode::INVALID_GROUP_ID);
    }
    let members = if version >= MEMBERS_FROM {
        let members = request.members.iter();
        members
            .map(|member| LeavingMember {
                member: shared(&member.member_id),
                instance: member.group_instance_id.as_ref().map(shared),
                reason: member.reason.as_ref().map(shared).unwrap_or_default(),
            })
            .collect()
    } else {
        let member = shared(&request.member_id);
        vec![LeavingMember { member, instance: None, reason: Arc::default() }]
    };
    let leave = LeaveRequest { group: shared(&request.group_id), members };
    let outcomes = match broker.groups().leave(leave).await {
        Ok(outcomes) => outcomes,
        Err(unavailable) => return failed(error_code::unavailable(unavailable)),
    };
    let code = |outcome| match outcome {
        Ok(()) => ErrorCode::NONE,
        Err(error) => error_code::group(error),
    };
    if version < MEMBERS_FROM {
        let only = outcomes.into_iter().next().map(|(_, outcome)| code(outcome));
        return failed(only.unwrap_or(ErrorCode::NONE));
    }
    let members = outcomes.into_iter().map(|(member, outcome)| MemberResponse {
        member_id: text(&*member.member),
        group_instance_id: member.instance.as_deref().map(text),
        error_code: code(outcome).get(),
        ..MemberResponse::default()
    });
    Response { members: members.collect(), ..Response::default() }
}

fn failed(code: ErrorCode) -> Response {
    Response { error_code: code.get(), ..Response::default() }
}
