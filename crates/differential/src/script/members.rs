//! JoinGroup, SyncGroup, Heartbeat and LeaveGroup: members of groups, dynamic and static.

use bytes::Bytes;
use strandline_wire::{Api, ApiKey, KafkaString, heartbeat, join_group, leave_group, sync_group};

use super::{newest, settle_groups, text, versions};
use crate::broker::{Broker, PATIENCE};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    settle_groups(run)?;
    for api in versions(ApiKey::JoinGroup) {
        let group = format!("join-{}", api.version());
        refused_joins(run, api, &group);
        dynamic_member(run, api, &group);
        if api.version() >= 5 {
            static_member(run, api, &format!("static-{}", api.version()));
        }
    }
    for api in versions(ApiKey::SyncGroup) {
        syncs(run, api, &format!("sync-{}", api.version()));
    }
    for api in versions(ApiKey::Heartbeat) {
        heartbeats(run, api, &format!("heartbeat-{}", api.version()));
    }
    for api in versions(ApiKey::LeaveGroup) {
        leaves(run, api, &format!("leave-{}", api.version()));
    }
    Ok(())
}

/// What a consumer says under a protocol: that it reads topic `t`.
const SUBSCRIPTION: &[u8] = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\0";

fn protocols(names: &[&str]) -> Vec<join_group::JoinGroupRequestProtocol> {
    let protocol = |name: &&str| join_group::JoinGroupRequestProtocol {
        name: text(name),
        metadata: Bytes::from_static(SUBSCRIPTION),
        ..Default::default()
    };
    names.iter().map(protocol).collect()
}

/// A join of a consumer that speaks `range`.
fn join(group: &str, member: KafkaString) -> join_group::Request {
    join_group::Request {
        group_id: text(group),
        session_timeout_ms: 600_000,
        rebalance_timeout_ms: 30_000,
        member_id: member,
        protocol_type: text("consumer"),
        protocols: protocols(&["range", "roundrobin"]),
        ..Default::default()
    }
}

/// Joins, and calls the member by `name` from then on.
fn join_as(
    run: &mut Run,
    case: &str,
    api: Api,
    name: &str,
    request: impl Fn(&Broker) -> join_group::Request,
) {
    run.inspect(case, api, PATIENCE, request, |broker, response: &join_group::Response, _| {
        if !response.member_id.is_empty() {
            broker.call_member(&response.member_id, name);
        }
    });
}

/// Makes `group` stable with one member, called by `name`, in generation 1.
pub(super) fn stable(run: &mut Run, group: &str, name: &str) {
    let api = newest(ApiKey::JoinGroup);
    join_as(run, "a first join", api, name, |_| join(group, KafkaString::default()));
    join_as(run, "a join with the id", api, name, |broker| join(group, broker.member(name)));
    let api = newest(ApiKey::SyncGroup);
    run.case("a leader's sync", api, |broker| sync(group, broker.member(name), 1, b"share"));
}

fn sync(
    group: &str,
    member: KafkaString,
    generation: i32,
    share: &'static [u8],
) -> sync_group::Request {
    sync_group::Request {
        group_id: text(group),
        generation_id: generation,
        member_id: member.clone(),
        protocol_type: Some(text("consumer")),
        protocol_name: Some(text("range")),
        assignments: vec![sync_group::SyncGroupRequestAssignment {
            member_id: member,
            assignment: Bytes::from_static(share),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn refused_joins(run: &mut Run, api: Api, group: &str) {
    let none = KafkaString::default;
    run.case("no group", api, |_| join("", none()));
    run.case("an unknown member of no group", api, |_| join(group, text("nobody")));
    let timeout = |ms| join_group::Request { session_timeout_ms: ms, ..join(group, none()) };
    run.case("a session timeout too short", api, |_| timeout(5_999));
    run.case("a session timeout too long", api, |_| timeout(1_800_001));
    run.case("a session timeout of nothing", api, |_| timeout(0));
    run.case("no protocol", api, |_| join_group::Request {
        protocols: Vec::new(),
        ..join(group, none())
    });
    run.case("no protocol type", api, |_| join_group::Request {
        protocol_type: text(""),
        ..join(group, none())
    });
}

fn dynamic_member(run: &mut Run, api: Api, group: &str) {
    let none = KafkaString::default;
    join_as(run, "no id", api, "a", |_| join(group, none()));
    if api.version() >= 4 {
        join_as(run, "the id that was given", api, "a", |broker| join(group, broker.member("a")));
    }
    run.case("the same again while it completes", api, |broker| join(group, broker.member("a")));
    let newest_sync = newest(ApiKey::SyncGroup);
    run.case("a leader's sync", newest_sync, |broker| sync(group, broker.member("a"), 1, b"one"));
    run.case("a stranger", api, |_| join(group, text("stranger")));
    run.case("another type", api, |_| join_group::Request {
        protocol_type: text("connect"),
        ..join(group, none())
    });
    run.case("another protocol", api, |_| join_group::Request {
        protocols: protocols(&["sticky"]),
        ..join(group, none())
    });
    run.case("an unknown instance", api, |broker| join_group::Request {
        group_instance_id: (api.version() >= 5).then(|| text("unknown")),
        ..join(group, broker.member("a"))
    });
    join_as(run, "the leader again", api, "a", |broker| join(group, broker.member("a")));
    run.case("a leader's sync", newest_sync, |broker| sync(group, broker.member("a"), 2, b"two"));
    join_as(run, "fewer protocols", api, "a", |broker| join_group::Request {
        protocols: protocols(&["roundrobin"]),
        ..join(group, broker.member("a"))
    });
    let leave = newest(ApiKey::LeaveGroup);
    run.case("a leave", leave, |broker| leaving(leave, group, &[(broker.member("a"), None)]));
    run.case("a member of an empty group", api, |broker| join(group, broker.member("a")));
}

fn static_member(run: &mut Run, api: Api, group: &str) {
    let by_instance = |member: KafkaString| join_group::Request {
        group_instance_id: Some(text("i")),
        ..join(group, member)
    };
    let none = KafkaString::default;
    join_as(run, "an instance", api, "i1", |_| by_instance(none()));
    let sync_api = newest(ApiKey::SyncGroup);
    let synced = |member: KafkaString, generation| sync_group::Request {
        group_instance_id: Some(text("i")),
        ..sync(group, member, generation, b"share")
    };
    run.case("an instance's sync", sync_api, |broker| synced(broker.member("i1"), 1));
    join_as(run, "the instance again", api, "i2", |_| by_instance(none()));
    run.case("the share that it had", sync_api, |broker| synced(broker.member("i2"), 1));
    run.case("its former self", api, |broker| by_instance(broker.member("i1")));
    run.case("its former self's sync", sync_api, |broker| synced(broker.member("i1"), 1));
    run.case("its former self, unnamed", api, |broker| join(group, broker.member("i1")));
    join_as(run, "itself, as the leader", api, "i2", |broker| by_instance(broker.member("i2")));
    let leave = newest(ApiKey::LeaveGroup);
    let removed = [(none(), Some("i")), (none(), Some("i")), (none(), None)];
    run.case("a removal by instance", leave, |_| leaving(leave, group, &removed));
}

fn syncs(run: &mut Run, api: Api, group: &str) {
    run.case("no group", api, |_| sync("", text("m"), 1, b""));
    run.case("an unknown group", api, |_| sync("sync-none", text("m"), 1, b""));
    stable(run, group, "s");
    let ours = |broker: &Broker, generation| sync(group, broker.member("s"), generation, b"again");
    run.case("the share again", api, |broker| ours(broker, 1));
    run.case("an old generation", api, |broker| ours(broker, 0));
    run.case("a future generation", api, |broker| ours(broker, 2));
    run.case("a stranger", api, |_| sync(group, text("stranger"), 1, b""));
    run.case("another type", api, |broker| sync_group::Request {
        protocol_type: Some(text("connect")),
        ..ours(broker, 1)
    });
    run.case("another protocol", api, |broker| sync_group::Request {
        protocol_name: Some(text("sticky")),
        ..ours(broker, 1)
    });
    run.case("no protocol", api, |broker| sync_group::Request {
        protocol_type: None,
        protocol_name: None,
        ..ours(broker, 1)
    });
    let instance = (api.version() >= 3).then(|| text("none"));
    run.case("an unknown instance", api, |broker| sync_group::Request {
        group_instance_id: instance.clone(),
        ..ours(broker, 1)
    });
}

fn heartbeats(run: &mut Run, api: Api, group: &str) {
    let beat = |group: &str, member: KafkaString, generation_id| heartbeat::Request {
        group_id: text(group),
        generation_id,
        member_id: member,
        ..Default::default()
    };
    run.case("no group", api, |_| beat("", text("m"), 1));
    run.case("an unknown group", api, |_| beat("heartbeat-none", text("m"), 1));
    stable(run, group, "h");
    run.case("a member", api, |broker| beat(group, broker.member("h"), 1));
    run.case("an old generation", api, |broker| beat(group, broker.member("h"), 0));
    run.case("a future generation", api, |broker| beat(group, broker.member("h"), 2));
    run.case("a stranger", api, |_| beat(group, text("stranger"), 1));
    let instance = (api.version() >= 3).then(|| text("none"));
    run.case("an unknown instance", api, |broker| heartbeat::Request {
        group_instance_id: instance.clone(),
        ..beat(group, broker.member("h"), 1)
    });
    let join_api = newest(ApiKey::JoinGroup);
    join_as(run, "the leader again", join_api, "h", |broker| join(group, broker.member("h")));
    run.case("while it completes", api, |broker| beat(group, broker.member("h"), 2));
}

/// A LeaveGroup request of these members; the first only, in versions that have room for one.
fn leaving(api: Api, group: &str, members: &[(KafkaString, Option<&str>)]) -> leave_group::Request {
    let several = api.version() >= 3;
    let member = |(member, instance): &(KafkaString, Option<&str>)| leave_group::MemberIdentity {
        member_id: member.clone(),
        group_instance_id: instance.map(text),
        ..Default::default()
    };
    leave_group::Request {
        group_id: text(group),
        member_id: if several { KafkaString::default() } else { members[0].0.clone() },
        members: if several { members.iter().map(member).collect() } else { Vec::new() },
        ..Default::default()
    }
}

fn leaves(run: &mut Run, api: Api, group: &str) {
    let one = |member: KafkaString| [(member, None)];
    run.case("no group", api, |_| leaving(api, "", &one(text("m"))));
    run.case("an unknown group", api, |_| leaving(api, "leave-none", &one(text("m"))));
    stable(run, group, "l");
    run.case("a stranger", api, |_| leaving(api, group, &one(text("stranger"))));
    run.case("no id", api, |_| leaving(api, group, &one(KafkaString::default())));
    if api.version() >= 3 {
        run.case("nobody", api, |_| leaving(api, group, &[]));
        run.case("a stranger and a member", api, |broker| {
            leaving(api, group, &[(text("stranger"), Some("i")), (broker.member("l"), None)])
        });
    } else {
        run.case("a member", api, |broker| leaving(api, group, &one(broker.member("l"))));
    }
    run.case("the same again", api, |broker| leaving(api, group, &one(broker.member("l"))));
    let join_api = newest(ApiKey::JoinGroup);
    join_as(run, "an id", join_api, "p", |_| join(group, KafkaString::default()));
    run.case("an id that did not join", api, |broker| {
        leaving(api, group, &one(broker.member("p")))
    });
}
