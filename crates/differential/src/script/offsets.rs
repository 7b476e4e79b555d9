//! OffsetCommit, OffsetFetch and OffsetDelete.

use strandline_wire::{
    Api, ApiKey, KafkaString, KafkaUuid, offset_commit, offset_delete, offset_fetch,
};

use super::members::stable;
use super::{create, newest, settle_groups, text, topic, versions};
use crate::broker::Broker;
use crate::run::Run;

/// Partition, offset, metadata.
type Position<'a> = (i32, i64, Option<&'a str>);

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    settle_groups(run)?;
    create(run, "topics to read", &[topic("t", 3, &[]), topic("u", 1, &[])])?;
    for api in versions(ApiKey::OffsetCommit) {
        commits(run, api, &format!("commit-{}", api.version()));
    }
    for api in versions(ApiKey::OffsetFetch) {
        fetches(run, api);
    }
    deletes(run);
    Ok(())
}

fn commit(
    api: Api,
    broker: &Broker,
    group: &str,
    topics: &[(&str, &[Position<'_>])],
) -> offset_commit::Request {
    let partition =
        |(index, offset, metadata): &Position<'_>| offset_commit::OffsetCommitRequestPartition {
            partition_index: *index,
            committed_offset: *offset,
            committed_leader_epoch: if api.version() >= 6 { 0 } else { -1 },
            committed_metadata: metadata.map(text),
            ..Default::default()
        };
    let by_id = api.version() >= 10;
    let topic =
        |(name, partitions): &(&str, &[Position<'_>])| offset_commit::OffsetCommitRequestTopic {
            name: if by_id { KafkaString::default() } else { text(name) },
            topic_id: if by_id { id_of(broker, name) } else { KafkaUuid::ZERO },
            partitions: partitions.iter().map(partition).collect(),
            ..Default::default()
        };
    offset_commit::Request {
        group_id: text(group),
        generation_id_or_member_epoch: -1,
        topics: topics.iter().map(topic).collect(),
        ..Default::default()
    }
}

/// A topic's id; one that nobody has for a topic that is not there.
fn id_of(broker: &Broker, name: &str) -> KafkaUuid {
    match broker.topic_id(name) {
        KafkaUuid::ZERO => KafkaUuid::from_parts(1, 2),
        id => id,
    }
}

fn as_member(
    request: offset_commit::Request,
    member: KafkaString,
    generation: i32,
) -> offset_commit::Request {
    offset_commit::Request {
        generation_id_or_member_epoch: generation,
        member_id: member,
        ..request
    }
}

fn commits(run: &mut Run, api: Api, group: &str) {
    let one: &[(&str, &[Position<'_>])] = &[("t", &[(0, 5, Some("note"))])];
    run.case("a member of no group", api, |broker| {
        as_member(commit(api, broker, group, one), text("m"), 1)
    });
    run.case("a simple group", api, |broker| commit(api, broker, group, one));
    run.case("no group", api, |broker| commit(api, broker, "", one));
    run.case("no topic", api, |broker| commit(api, broker, group, &[]));
    run.case("no partition", api, |broker| commit(api, broker, group, &[("t", &[])]));
    run.case("no metadata", api, |broker| commit(api, broker, group, &[("t", &[(1, 1, None)])]));
    run.case("odd offsets", api, |broker| {
        commit(api, broker, group, &[("t", &[(1, -5, None), (2, i64::MAX, Some(""))])])
    });
    let (fits, long) = ("é".repeat(4096), "é".repeat(4097));
    run.case("long metadata", api, |broker| {
        commit(api, broker, group, &[("t", &[(0, 6, Some(&long)), (1, 6, Some(&fits))])])
    });
    run.case("what is not there", api, |broker| {
        commit(
            api,
            broker,
            group,
            &[("none", &[(0, 1, None)]), ("t", &[(9, 1, None), (-1, 1, None)])],
        )
    });
    run.case("some of it is there", api, |broker| {
        let topics: &[(&str, &[Position<'_>])] = &[
            ("u", &[(0, 3, None)]),
            ("none", &[(0, 1, None)]),
            ("t", &[(0, 7, None), (9, 1, None)]),
        ];
        commit(api, broker, group, topics)
    });
    run.case("twice", api, |broker| {
        commit(api, broker, group, &[("t", &[(0, 8, None), (0, 9, None)]), ("t", &[(0, 10, None)])])
    });
    run.case("a generation of an empty group", api, |broker| {
        as_member(commit(api, broker, group, one), text("m"), 0)
    });
    run.case("a member id without generation", api, |broker| {
        as_member(commit(api, broker, group, one), text("m"), -1)
    });
    let fetch = newest(ApiKey::OffsetFetch);
    run.case("what was kept", fetch, |_| all(fetch, &[group]));

    commits_of_members(run, api, &format!("{group}-members"));
}

/// Only who is in the group commits to it.
fn commits_of_members(run: &mut Run, api: Api, group: &str) {
    let one: &[(&str, &[Position<'_>])] = &[("t", &[(0, 5, Some("note"))])];
    stable(run, group, "c");
    run.case("a member", api, |broker| {
        as_member(commit(api, broker, group, one), broker.member("c"), 1)
    });
    run.case("an old generation", api, |broker| {
        as_member(commit(api, broker, group, one), broker.member("c"), 0)
    });
    run.case("no generation", api, |broker| {
        as_member(commit(api, broker, group, one), broker.member("c"), -1)
    });
    run.case("a stranger", api, |broker| {
        as_member(commit(api, broker, group, one), text("stranger"), 1)
    });
    run.case("an administrator", api, |broker| commit(api, broker, group, one));
    let instance = (api.version() >= 7).then(|| text("none"));
    run.case("an unknown instance", api, |broker| offset_commit::Request {
        group_instance_id: instance.clone(),
        ..as_member(commit(api, broker, group, one), broker.member("c"), 1)
    });
}

/// What one asks for of each group: nothing for all topics.
type Asked<'a> = Option<&'a [(&'a str, &'a [i32])]>;

fn fetch(api: Api, broker: &Broker, groups: &[(&str, Asked<'_>)]) -> offset_fetch::Request {
    let by_id = api.version() >= 10;
    let topic = |(name, indexes): &(&str, &[i32])| offset_fetch::OffsetFetchRequestTopics {
        name: if by_id { KafkaString::default() } else { text(name) },
        topic_id: if by_id { id_of(broker, name) } else { KafkaUuid::ZERO },
        partition_indexes: indexes.to_vec(),
        ..Default::default()
    };
    if api.version() >= 8 {
        let group = |(group, asked): &(&str, Asked<'_>)| offset_fetch::OffsetFetchRequestGroup {
            group_id: text(group),
            topics: asked.map(|asked| asked.iter().map(topic).collect()),
            ..Default::default()
        };
        return offset_fetch::Request {
            groups: groups.iter().map(group).collect(),
            ..Default::default()
        };
    }
    let (group, asked) = groups[0];
    let topic = |(name, indexes): &(&str, &[i32])| offset_fetch::OffsetFetchRequestTopic {
        name: text(name),
        partition_indexes: indexes.to_vec(),
        ..Default::default()
    };
    offset_fetch::Request {
        group_id: text(group),
        topics: asked.map(|asked| asked.iter().map(topic).collect()),
        ..Default::default()
    }
}

/// All positions of these groups, in a version of several groups.
fn all(_: Api, groups: &[&str]) -> offset_fetch::Request {
    let group = |group: &&str| offset_fetch::OffsetFetchRequestGroup {
        group_id: text(group),
        topics: None,
        ..Default::default()
    };
    offset_fetch::Request { groups: groups.iter().map(group).collect(), ..Default::default() }
}

fn fetches(run: &mut Run, api: Api) {
    let some: &[(&str, &[i32])] = &[("t", &[0, 2, 9, -1]), ("u", &[0]), ("none", &[0])];
    run.case("some", api, |broker| fetch(api, broker, &[("commit-9", Some(some))]));
    run.case("an unknown group", api, |broker| fetch(api, broker, &[("unknown", Some(some))]));
    run.case("no group", api, |broker| fetch(api, broker, &[("", Some(some))]));
    run.case("a member's group", api, |broker| {
        fetch(api, broker, &[("commit-9-members", Some(some))])
    });
    run.case("nothing", api, |broker| fetch(api, broker, &[("commit-9", Some(&[]))]));
    run.case("a topic twice", api, |broker| {
        fetch(api, broker, &[("commit-9", Some(&[("t", &[0, 0]), ("t", &[0])]))])
    });
    if api.version() >= 2 {
        run.case("all", api, |broker| fetch(api, broker, &[("commit-9", None)]));
        run.case("all of an unknown group", api, |broker| fetch(api, broker, &[("unknown", None)]));
    }
    if api.version() >= 7 {
        run.case("stable ones", api, |broker| offset_fetch::Request {
            require_stable: true,
            ..fetch(api, broker, &[("commit-9", Some(some))])
        });
    }
    if api.version() >= 8 {
        let groups = [("commit-9", None), ("unknown", None), ("commit-8", Some(some))];
        run.case("several groups", api, |broker| fetch(api, broker, &groups));
        run.case("a group twice", api, |broker| {
            fetch(api, broker, &[("commit-9", None), ("commit-9", Some(some))])
        });
        run.case("no groups", api, |broker| fetch(api, broker, &[]));
    }
    if api.version() >= 9 {
        let asked = |broker: &Broker, group: &str, member: &str, member_epoch| {
            let mut request = fetch(api, broker, &[(group, Some(some))]);
            request.groups[0].member_id = Some(broker.member(member));
            request.groups[0].member_epoch = member_epoch;
            request
        };
        run.case("a member", api, |broker| asked(broker, "commit-9-members", "c", 1));
        run.case("a stranger", api, |broker| asked(broker, "commit-9-members", "stranger", 1));
        run.case("an epoch of an unknown group", api, |broker| asked(broker, "unknown", "m", 1));
    }
}

fn deletes(run: &mut Run) {
    let api = newest(ApiKey::OffsetDelete);
    let delete = |group: &str, topics: &[(&str, &[i32])]| {
        let partition = |index: &i32| offset_delete::OffsetDeleteRequestPartition {
            partition_index: *index,
            ..Default::default()
        };
        let topic = |(name, indexes): &(&str, &[i32])| offset_delete::OffsetDeleteRequestTopic {
            name: text(name),
            partitions: indexes.iter().map(partition).collect(),
            ..Default::default()
        };
        offset_delete::Request {
            group_id: text(group),
            topics: topics.iter().map(topic).collect(),
            ..Default::default()
        }
    };
    run.case("an unknown group", api, |_| delete("unknown", &[("t", &[0])]));
    run.case("no group", api, |_| delete("", &[("t", &[0])]));
    run.case("nothing", api, |_| delete("commit-7", &[]));
    run.case("some", api, |_| delete("commit-7", &[("t", &[0, 1, 9]), ("none", &[0])]));
    run.case("the same again", api, |_| delete("commit-7", &[("t", &[0, 1])]));
    run.case("what a member reads", api, |_| {
        delete("commit-7-members", &[("t", &[0]), ("u", &[0])])
    });
    run.case("what is not there, of an unknown group", api, |_| {
        delete("unknown", &[("none", &[0])])
    });
    let fetch = newest(ApiKey::OffsetFetch);
    run.case("what is left", fetch, |_| all(fetch, &["commit-7", "commit-7-members"]));
}
