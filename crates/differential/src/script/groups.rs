//! FindCoordinator, ListGroups, DescribeGroups and DeleteGroups.

use strandline_wire::{
    Api, ApiKey, KafkaString, delete_groups, describe_groups, find_coordinator, list_groups,
    offset_commit,
};

use super::members::stable;
use super::{create, newest, settle_groups, text, topic, versions};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    settle_groups(run)?;
    create(run, "a topic of simple groups", &[topic("simple", 1, &[])])?;
    for api in versions(ApiKey::FindCoordinator) {
        find(run, api);
    }
    stable(run, "described", "d");
    for api in versions(ApiKey::DescribeGroups) {
        describe(run, api);
    }
    for api in versions(ApiKey::ListGroups) {
        list(run, api);
    }
    for api in versions(ApiKey::DeleteGroups) {
        delete(run, api);
    }
    Ok(())
}

fn find(run: &mut Run, api: Api) {
    let ask = |key_type, keys: &[&str]| {
        let several = api.version() >= 4;
        find_coordinator::Request {
            key: if several { KafkaString::default() } else { text(keys[0]) },
            key_type,
            coordinator_keys: if several {
                keys.iter().map(|key| text(key)).collect()
            } else {
                Vec::new()
            },
            ..Default::default()
        }
    };
    run.case("a group", api, |_| ask(0, &["g"]));
    run.case("no group", api, |_| ask(0, &[""]));
    if api.version() >= 1 {
        run.case("an unknown kind", api, |_| ask(9, &["g"]));
        run.case("a negative kind", api, |_| ask(-1, &["g"]));
    }
    if (1..6).contains(&api.version()) {
        run.case("a share group before there were any", api, |_| ask(2, &["g"]));
    }
    if api.version() >= 4 {
        run.case("several groups", api, |_| ask(0, &["g", "h", "g"]));
        run.case("no groups", api, |_| ask(0, &[]));
    }
}

fn describe(run: &mut Run, api: Api) {
    let ask = |groups: &[&str]| describe_groups::Request {
        groups: groups.iter().map(|group| text(group)).collect(),
        ..Default::default()
    };
    run.case("a stable group", api, |_| ask(&["described"]));
    run.case("a simple group", api, |_| ask(&["commit-9"]));
    run.case("an empty group", api, |_| ask(&["join-9"]));
    run.case("an unknown group", api, |_| ask(&["unknown"]));
    run.case("no group", api, |_| ask(&[""]));
    run.case("no groups", api, |_| ask(&[]));
    run.case("a group twice", api, |_| ask(&["described", "unknown", "described"]));
    if api.version() >= 3 {
        run.case("with operations", api, |_| describe_groups::Request {
            include_authorized_operations: true,
            ..ask(&["described", "unknown"])
        });
    }
}

fn list(run: &mut Run, api: Api) {
    let ask = |states: &[&str], types: &[&str]| list_groups::Request {
        states_filter: states.iter().map(|state| text(state)).collect(),
        types_filter: types.iter().map(|kind| text(kind)).collect(),
        ..Default::default()
    };
    run.case("all", api, |_| ask(&[], &[]));
    if api.version() >= 4 {
        run.case("stable ones", api, |_| ask(&["Stable"], &[]));
        run.case("any case", api, |_| ask(&[" sTABLE ", "empty"], &[]));
        run.case("an unknown state", api, |_| ask(&["Sleeping"], &[]));
    }
    if api.version() >= 5 {
        run.case("classic ones", api, |_| ask(&[], &["Classic"]));
        run.case("consumer groups", api, |_| ask(&[], &["consumer"]));
        run.case("an unknown kind", api, |_| ask(&[], &["choir"]));
        run.case("a kind and a state", api, |_| ask(&["Stable"], &["classic", "consumer"]));
    }
}

fn delete(run: &mut Run, api: Api) {
    let ask = |groups: &[&str]| delete_groups::Request {
        groups_names: groups.iter().map(|group| text(group)).collect(),
        ..Default::default()
    };
    let commit = newest(ApiKey::OffsetCommit);
    run.case("a simple group", commit, |broker| offset_commit::Request {
        group_id: text("to-delete"),
        topics: vec![offset_commit::OffsetCommitRequestTopic {
            topic_id: broker.topic_id("simple"),
            partitions: vec![offset_commit::OffsetCommitRequestPartition::default()],
            ..Default::default()
        }],
        ..Default::default()
    });
    run.case("it goes", api, |_| ask(&["to-delete"]));
    run.case("it is gone", api, |_| ask(&["to-delete"]));
    run.case("a stable group", api, |_| ask(&["described"]));
    run.case("several", api, |_| ask(&["unknown", "described", "unknown"]));
    run.case("no group", api, |_| ask(&[""]));
    run.case("no groups", api, |_| ask(&[]));
    let describe = newest(ApiKey::DescribeGroups);
    let groups = vec![text("to-delete")];
    run.case("what is left", describe, |_| describe_groups::Request {
        groups: groups.clone(),
        ..Default::default()
    });
}
