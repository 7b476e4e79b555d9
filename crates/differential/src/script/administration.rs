//! DeleteRecords, DescribeLogDirs, DescribeProducers, ElectLeaders, reassignments: what tools ask.

use strandline_wire::{
    ApiKey, alter_partition_reassignments as reassign, alter_replica_log_dirs as move_dirs,
    delete_records, describe_producers, elect_leaders, list_partition_reassignments as moving,
};

use super::{create, text, topic, versions};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    let compacted = [("cleanup.policy", "compact")];
    create(
        run,
        "topics to administer",
        &[topic("administered", 2, &[]), topic("compacted-only", 1, &compacted)],
    )?;
    deletions(run);
    producers(run);
    elections(run);
    reassignments(run);
    folders(run);
    Ok(())
}

fn deletions(run: &mut Run) {
    for api in versions(ApiKey::DeleteRecords) {
        for (name, index, offsets) in [
            ("administered", 0, &[0][..]),
            ("administered", 0, &[-1]),
            ("administered", 0, &[-2]),
            ("administered", 0, &[1]),
            ("administered", 0, &[i64::MAX]),
            ("administered", 0, &[9, 0]),
            ("administered", 7, &[0]),
            ("administered", -1, &[0]),
            ("compacted-only", 0, &[0]),
            ("compacted-only", 0, &[-1]),
            ("never-made", 0, &[0]),
            ("two words", 0, &[0]),
            ("administered", 0, &[]),
        ] {
            let partition = |&offset: &i64| delete_records::DeleteRecordsPartition {
                partition_index: index,
                offset,
                ..Default::default()
            };
            run.case(&format!("{name}-{index} before {offsets:?}"), api, |_| {
                delete_records::Request {
                    topics: vec![delete_records::DeleteRecordsTopic {
                        name: text(name),
                        partitions: offsets.iter().map(partition).collect(),
                        ..Default::default()
                    }],
                    timeout_ms: 5_000,
                    ..Default::default()
                }
            });
        }
        run.case("no topics", api, |_| delete_records::Request::default());
    }
}

fn producers(run: &mut Run) {
    for api in versions(ApiKey::DescribeProducers) {
        for (name, indexes) in [
            ("administered", &[0, 1][..]),
            ("administered", &[7]),
            ("never-made", &[0]),
            ("administered", &[]),
        ] {
            run.case(&format!("producers of {name} {indexes:?}"), api, |_| {
                describe_producers::Request {
                    topics: vec![describe_producers::TopicRequest {
                        name: text(name),
                        partition_indexes: indexes.to_vec(),
                        ..Default::default()
                    }],
                    ..Default::default()
                }
            });
        }
    }
}

fn elections(run: &mut Run) {
    for api in versions(ApiKey::ElectLeaders) {
        for election_type in if api.version() == 0 { 0..1 } else { 0..2 } {
            for named in [
                None,
                Some(&[][..]),
                Some(&[("administered", 0)]),
                Some(&[("administered", 7)]),
                Some(&[("never-made", 0)]),
            ] {
                let partitions = |&(name, index): &(&str, i32)| elect_leaders::TopicPartitions {
                    topic: text(name),
                    partitions: vec![index],
                    ..Default::default()
                };
                run.case(&format!("an election of {named:?}, type {election_type}"), api, |_| {
                    elect_leaders::Request {
                        election_type,
                        topic_partitions: named.map(|named| named.iter().map(partitions).collect()),
                        timeout_ms: 5_000,
                        ..Default::default()
                    }
                });
            }
        }
    }
}

fn reassignments(run: &mut Run) {
    for api in versions(ApiKey::AlterPartitionReassignments) {
        for (name, index, replicas) in [
            ("administered", 0, Some(&[1][..])),
            ("administered", 0, Some(&[2])),
            ("administered", 0, Some(&[1, 2])),
            ("administered", 0, Some(&[1, 1])),
            ("administered", 0, Some(&[])),
            ("administered", 0, None),
            ("administered", 7, Some(&[1])),
            ("administered", 7, None),
            ("never-made", 0, Some(&[1])),
        ] {
            run.case(&format!("{name}-{index} to {replicas:?}"), api, |_| reassign::Request {
                timeout_ms: 5_000,
                topics: vec![reassign::ReassignableTopic {
                    name: text(name),
                    partitions: vec![reassign::ReassignablePartition {
                        partition_index: index,
                        replicas: replicas.map(<[i32]>::to_vec),
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            });
        }
        run.case("nothing to move", api, |_| reassign::Request::default());
    }
    for api in versions(ApiKey::ListPartitionReassignments) {
        for named in [None, Some("administered"), Some("never-made")] {
            run.case(&format!("what moves of {named:?}"), api, |_| moving::Request {
                timeout_ms: 5_000,
                topics: named.map(|name| {
                    vec![moving::ListPartitionReassignmentsTopics {
                        name: text(name),
                        partition_indexes: vec![0],
                        ..Default::default()
                    }]
                }),
                ..Default::default()
            });
        }
    }
}

fn folders(run: &mut Run) {
    for api in versions(ApiKey::AlterReplicaLogDirs) {
        for name in ["administered", "never-made"] {
            run.case(&format!("{name} to a folder that there is not"), api, |_| {
                move_dirs::Request {
                    dirs: vec![move_dirs::AlterReplicaLogDir {
                        path: text("/nowhere"),
                        topics: vec![move_dirs::AlterReplicaLogDirTopic {
                            name: text(name),
                            partitions: vec![0],
                            ..Default::default()
                        }],
                        ..Default::default()
                    }],
                    ..Default::default()
                }
            });
        }
    }
}
