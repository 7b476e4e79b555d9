//! `CreateTopics`: names, counts, assignments, configuration, and what contradicts itself.

use strandline_wire::ApiKey;
use strandline_wire::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, Request,
};

use super::{patience, settle, text, topic, versions};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    for api in versions(ApiKey::CreateTopics) {
        let version = api.version();
        let mut cases = names(version);
        cases.extend(counts(version));
        cases.extend(assignments(version));
        cases.extend(configurations(version));
        for (case, topics) in cases {
            for validate_only in [true, false] {
                let request = || Request {
                    topics: topics.clone(),
                    timeout_ms: 10_000,
                    validate_only,
                    ..Default::default()
                };
                let case = format!("{case}, validate only: {validate_only}");
                run.inspect(
                    &case,
                    api,
                    patience(),
                    |_| request(),
                    |broker, response, _| {
                        // An id that is only made up for the answer is one all the same.
                        for topic in &response.topics {
                            broker.call_topic(topic.topic_id, topic.name.as_str());
                        }
                    },
                );
            }
        }
        let made = format!("made-{version}");
        settle(run, &[&made])?;
        run.case("the same again", api, |_| Request {
            topics: vec![topic(&made, 1, &[])],
            timeout_ms: 10_000,
            ..Default::default()
        });
        run.case("no topics", api, |_| Request { timeout_ms: 10_000, ..Default::default() });
    }
    Ok(())
}

type Cases = Vec<(&'static str, Vec<CreatableTopic>)>;

fn names(version: i16) -> Cases {
    let one = |name: &str| vec![topic(name, 1, &[])];
    vec![
        ("a topic", one(&format!("made-{version}"))),
        ("an empty name", one("")),
        ("one dot", one(".")),
        ("two dots", one("..")),
        (
            "a name of 249 characters",
            one(&format!("{version}{}", "n".repeat(249 - version.to_string().len()))),
        ),
        ("a name of 250 characters", one(&"n".repeat(250))),
        ("a space in the name", one("two words")),
        ("a slash in the name", one("a/b")),
        ("a letter beyond ascii", one("größe")),
        ("an internal name", one("__consumer_offsets")),
        ("a name with a dot", one(&format!("dot.ted-{version}"))),
        ("a name that collides with the one before", one(&format!("dot_ted-{version}"))),
        (
            "a name twice",
            vec![
                topic(&format!("twice-{version}"), 1, &[]),
                topic(&format!("twice-{version}"), 2, &[]),
            ],
        ),
        (
            "a good and a bad one",
            vec![topic(&format!("good-{version}"), 1, &[]), topic("bad name", 1, &[])],
        ),
    ]
}

fn counts(version: i16) -> Cases {
    let one = |tag: &str, partitions: i32, replication_factor: i16| {
        let name = format!("{tag}-{version}");
        vec![CreatableTopic { replication_factor, ..topic(&name, partitions, &[]) }]
    };
    vec![
        ("no partitions", one("no-partitions", 0, 1)),
        ("minus two partitions", one("minus-two", -2, 1)),
        ("default partitions", one("default-partitions", -1, 1)),
        ("no replicas", one("no-replicas", 1, 0)),
        ("two replicas", one("two-replicas", 1, 2)),
        ("minus two replicas", one("minus-two-replicas", 1, -2)),
        ("default replicas", one("default-replicas", 1, -1)),
        ("all defaults", one("all-defaults", -1, -1)),
    ]
}

fn assignments(version: i16) -> Cases {
    let one = |tag: &str, rows: &[(i32, &[i32])]| {
        let assignment = |(partition_index, brokers): &(i32, &[i32])| CreatableReplicaAssignment {
            partition_index: *partition_index,
            broker_ids: brokers.to_vec(),
            ..Default::default()
        };
        vec![CreatableTopic {
            num_partitions: -1,
            replication_factor: -1,
            assignments: rows.iter().map(assignment).collect(),
            ..topic(&format!("{tag}-{version}"), 1, &[])
        }]
    };
    let mut with_count = one("assigned-and-counted", &[(0, &[1])]);
    for topic in &mut with_count {
        topic.num_partitions = 1;
    }
    let mut with_replicas = one("assigned-and-replicated", &[(0, &[1])]);
    for topic in &mut with_replicas {
        topic.replication_factor = 1;
    }
    vec![
        ("assigned by hand", one("assigned", &[(0, &[1]), (1, &[1])])),
        ("assigned out of order", one("assigned-reversed", &[(1, &[1]), (0, &[1])])),
        ("assigned to an unknown broker", one("assigned-unknown", &[(0, &[99])])),
        ("assigned twice to a broker", one("assigned-twice", &[(0, &[1, 1])])),
        ("assigned to nobody", one("assigned-nobody", &[(0, &[])])),
        ("assigned with a hole", one("assigned-hole", &[(0, &[1]), (2, &[1])])),
        ("assigned from one", one("assigned-from-one", &[(1, &[1])])),
        ("assigned below zero", one("assigned-negative", &[(-1, &[1])])),
        ("the same partition twice", one("assigned-same", &[(0, &[1]), (0, &[1])])),
        ("assigned and counted", with_count),
        ("assigned and replicated", with_replicas),
    ]
}

fn configurations(version: i16) -> Cases {
    let one =
        |tag: &str, configs: &[(&str, &str)]| vec![topic(&format!("{tag}-{version}"), 1, configs)];
    let mut null = one("config-null", &[]);
    for topic in &mut null {
        let name = text("retention.ms");
        topic.configs = vec![CreatableTopicConfig { name, value: None, ..Default::default() }];
    }
    vec![
        ("configured", one("config", &[("retention.ms", "60000"), ("cleanup.policy", "delete")])),
        ("an unknown key", one("config-unknown", &[("no.such.key", "1")])),
        ("a value that is no number", one("config-text", &[("retention.ms", "soon")])),
        ("a value below its range", one("config-range", &[("segment.bytes", "0")])),
        ("a value outside its list", one("config-list", &[("cleanup.policy", "shred")])),
        ("two policies", one("config-both", &[("cleanup.policy", "compact,delete")])),
        ("spaces around a value", one("config-spaces", &[("retention.ms", " 60000 ")])),
        ("a boolean in capitals", one("config-bool", &[("preallocate", "TRUE")])),
        ("a key twice", one("config-twice", &[("retention.ms", "1000"), ("retention.ms", "2000")])),
        ("an empty key", one("config-empty", &[("", "1")])),
        ("a null value", null),
        ("a floating number", one("config-ratio", &[("min.cleanable.dirty.ratio", "0.25")])),
        ("a ratio above one", one("config-ratio-2", &[("min.cleanable.dirty.ratio", "1.5")])),
        ("an unknown codec", one("config-codec", &[("compression.type", "rar")])),
    ]
}
