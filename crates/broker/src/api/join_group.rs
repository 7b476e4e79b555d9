//! JoinGroup: v0–v9. v1 rebalance timeout; v4 member id required (KIP-394); v5 static members
//! (KIP-345); v7 protocol type; v8 reason (KIP-800); v9 skip assignment (KIP-814).

use std::net::IpAddr;
use std::sync::Arc;

use strandline_coordination::group::{JoinRefused, JoinRequest, Joined, Offer};
use strandline_wire::ErrorCode;
use strandline_wire::join_group::{JoinGroupResponseMember, Request, Response};

use super::{Caller, shared, text};
use crate::environment::new_uuid;
use crate::{Broker, error_code};

/// Parks until the group's next generation begins, or answers at once.
pub(crate) async fn handle(
    broker: &Broker,
    caller: Caller<'_>,
    request: Request,
    version: i16,
) -> Response {
    let member = request.member_id.clone();
    let request = to_domain(broker, caller, request, version);
    let mut response = match broker.groups().join(request).await {
        Ok(Ok(joined)) => accepted(*joined),
        Ok(Err(JoinRefused { member, error })) => Response {
            error_code: error_code::group(error).get(),
            member_id: text(&*member),
            ..Response::default()
        },
        Err(unavailable) => Response {
            error_code: error_code::unavailable(unavailable).get(),
            member_id: member,
            ..Response::default()
        },
    };
    // As Kafka: no protocol is null from v7 on, and empty before.
    let none = (version < 7).then(|| text(""));
    response.protocol_name = response.protocol_name.filter(|name| !name.is_empty()).or(none);
    response
}

fn to_domain(broker: &Broker, caller: Caller<'_>, request: Request, version: i16) -> JoinRequest {
    let client_id = caller.client_id;
    let instance = request.group_instance_id.as_ref().map(shared);
    let name = instance.as_deref().unwrap_or(client_id);
    let protocols = request.protocols.iter();
    let offered: Vec<_> = protocols.map(|one| (one.name.as_str(), &*one.metadata)).collect();
    let new_member = format!("{name}-{}", new_uuid(broker.environment()));
    JoinRequest {
        group: shared(&request.group_id),
        member: shared(&request.member_id),
        new_member: Arc::from(new_member),
        client_id: Arc::from(client_id),
        client_host: Arc::from(java_address(caller.host)),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: if version == 0 {
            request.session_timeout_ms
        } else {
            request.rebalance_timeout_ms
        },
        protocol_type: shared(&request.protocol_type),
        // Copied: what is kept of a member must not keep the frame that it came in.
        offer: Offer::new(&offered),
        requires_member_id: version >= 4,
        may_skip_assignment: version >= 9,
        reason: request.reason.as_ref().map(shared).unwrap_or_default(),
        instance,
    }
}

fn accepted(joined: Joined) -> Response {
    Response {
        error_code: ErrorCode::NONE.get(),
        generation_id: joined.generation,
        protocol_type: joined.protocol_type.as_deref().map(text),
        protocol_name: joined.protocol.as_deref().map(text),
        leader: text(&*joined.leader),
        skip_assignment: joined.skip_assignment,
        member_id: text(&*joined.member),
        members: (joined.members.into_iter())
            .map(|member| JoinGroupResponseMember {
                member_id: text(&*member.member),
                group_instance_id: member.instance.as_deref().map(text),
                metadata: member.metadata,
                ..JoinGroupResponseMember::default()
            })
            .collect(),
        ..Response::default()
    }
}

/// An address as Java prints it: with a slash for the host name that was not looked up, and without
/// leaving out zeros.
fn java_address(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("/{address}"),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:x}"));
            format!("/{}", groups.join(":"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_printed_as_java_does() {
        let printed = |address: &str| java_address(address.parse().unwrap());
        assert_eq!(printed("127.0.0.1"), "/127.0.0.1");
        assert_eq!(printed("::1"), "/0:0:0:0:0:0:0:1");
        assert_eq!(printed("::ffff:10.0.0.1"), "/10.0.0.1");
    }
}
