//! DescribeGroups: v0–v6. v3 authorized operations; v4 instance ids; v6 error messages, and an error
//! for a group that does not exist (KIP-1043).

use hashbrown::HashSet;
use strandline_coordination::group::{DescribedMember, GroupDescription};
use strandline_wire::describe_groups::{DescribedGroup, DescribedGroupMember, Request, Response};
use strandline_wire::{ErrorCode, KafkaString};

use super::{OPERATIONS_NOT_ASKED, shared, text};
use crate::{Broker, error_code};

/// From this version on a group that does not exist is an error.
const MISSING_GROUP_FROM: i16 = 6;
/// From this version on what the client may do can be asked for.
const OPERATIONS_FROM: i16 = 3;
/// What Kafka calls the state of a group that does not exist.
const DEAD: &str = "Dead";
/// Read, delete, describe, describe configs, alter configs: everything that can be done with a
/// group, because nobody is refused anything.
pub(crate) const GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

/// Describes each group.
pub(crate) async fn handle(broker: &Broker, request: &Request, version: i16) -> Response {
    let mut groups = Vec::new();
    // A group that is named again is not described again: a small request would be answered with
    // gigabytes.
    let mut named = HashSet::new();
    for id in request.groups.iter().filter(|id| named.insert(id.as_str())) {
        let mut group = match broker.groups().describe(&shared(id)).await {
            Ok(Some(found)) => described(id, *found),
            Ok(None) => missing(id, version),
            Err(unavailable) => DescribedGroup {
                group_id: id.clone(),
                error_code: error_code::unavailable(unavailable).get(),
                authorized_operations: OPERATIONS_NOT_ASKED,
                ..DescribedGroup::default()
            },
        };
        let is_asked = version >= OPERATIONS_FROM && request.include_authorized_operations;
        if is_asked && group.error_code == ErrorCode::NONE.get() {
            group.authorized_operations = GROUP_OPERATIONS;
        }
        groups.push(group);
    }
    Response { groups, ..Response::default() }
}

fn described(id: &KafkaString, group: GroupDescription) -> DescribedGroup {
    DescribedGroup {
        group_id: id.clone(),
        group_state: text(group.state.name()),
        protocol_type: text(&*group.protocol_type),
        protocol_data: text(&*group.protocol),
        members: group.members.into_iter().map(member).collect(),
        authorized_operations: OPERATIONS_NOT_ASKED,
        ..DescribedGroup::default()
    }
}

fn member(member: DescribedMember) -> DescribedGroupMember {
    DescribedGroupMember {
        member_id: text(&*member.member),
        group_instance_id: member.instance.as_deref().map(text),
        client_id: text(&*member.client_id),
        client_host: text(&*member.client_host),
        member_metadata: member.metadata,
        member_assignment: member.assignment,
        ..DescribedGroupMember::default()
    }
}

fn missing(id: &KafkaString, version: i16) -> DescribedGroup {
    let dead = DescribedGroup {
        group_id: id.clone(),
        group_state: text(DEAD),
        authorized_operations: OPERATIONS_NOT_ASKED,
        ..DescribedGroup::default()
    };
    if version < MISSING_GROUP_FROM {
        return dead;
    }
    DescribedGroup {
        error_code: ErrorCode::GROUP_ID_NOT_FOUND.get(),
        error_message: Some(text(format!("Group {id} not found."))),
        ..dead
    }
}
