//! `ListOffsets` and `OffsetForLeaderEpoch`: offsets by time and by epoch.

use strandline_wire::list_offsets::{ListOffsetsPartition, ListOffsetsTopic, Request};
use strandline_wire::offset_for_leader_epoch::{
    self, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use strandline_wire::{Api, ApiKey};

use super::produce::{TIME, builder, one};
use super::{create, newest, text, topic, versions};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    create(run, "a topic with times", &[topic("timed", 2, &[]), topic("empty", 1, &[])])?;
    let produce = newest(ApiKey::Produce);
    for count in [3, 1, 2] {
        run.case("records with times", produce, |broker| {
            one(broker, produce, "timed", 0, Some(builder(count).build().freeze()))
        });
    }
    for api in versions(ApiKey::ListOffsets) {
        for at in [-1, -2, -3, -4, -5, -6, -7, i64::MIN] {
            ask(run, api, &format!("special timestamp {at}"), "timed", 0, at);
            ask(run, api, &format!("special timestamp {at} of nothing"), "empty", 0, at);
        }
        for after in [-1, 0, 1, 2, 3] {
            ask(run, api, &format!("{after} ms after the first"), "timed", 0, TIME + after);
        }
        ask(run, api, "the beginning of time", "timed", 0, 0);
        ask(run, api, "the end of time", "timed", 0, i64::MAX);
        ask(run, api, "a time in nothing", "empty", 0, TIME);
        ask(run, api, "an unknown topic", "never-timed", 0, -1);
        ask(run, api, "an impossible name", "two words", 0, -1);
        ask(run, api, "an unknown partition", "timed", 9, -1);
        ask(run, api, "a negative partition", "timed", -1, -1);
        whole_requests(run, api);
        epochs(run, api);
    }
    for api in versions(ApiKey::OffsetForLeaderEpoch) {
        epoch_ends(run, api);
    }
    Ok(())
}

fn request(name: &str, partitions: Vec<ListOffsetsPartition>) -> Request {
    Request {
        replica_id: -1,
        topics: vec![ListOffsetsTopic { name: text(name), partitions, ..Default::default() }],
        timeout_ms: 5000,
        ..Default::default()
    }
}

fn wanted(partition_index: i32, timestamp: i64) -> ListOffsetsPartition {
    ListOffsetsPartition { partition_index, timestamp, ..Default::default() }
}

fn ask(run: &mut Run, api: Api, case: &str, name: &str, partition: i32, at: i64) {
    run.case(case, api, |_| request(name, vec![wanted(partition, at)]));
}

fn whole_requests(run: &mut Run, api: Api) {
    run.case("a partition twice", api, |_| request("timed", vec![wanted(0, -1), wanted(0, -2)]));
    run.case("two partitions", api, |_| request("timed", vec![wanted(0, -1), wanted(1, -1)]));
    run.case("no topics", api, |_| Request { replica_id: -1, ..Default::default() });
    for replica_id in [-2, -3, 0, 1, 5] {
        run.case(&format!("as replica {replica_id}"), api, |_| Request {
            replica_id,
            ..request("timed", vec![wanted(0, -1)])
        });
    }
    if api.version() >= 2 {
        for isolation_level in [1, 2, -1] {
            run.case(&format!("isolation level {isolation_level}"), api, |_| Request {
                isolation_level,
                ..request("timed", vec![wanted(0, -1)])
            });
        }
    }
}

fn epochs(run: &mut Run, api: Api) {
    if api.version() < 4 {
        return;
    }
    for epoch in [-2, 0, 1, 99] {
        run.case(&format!("at leader epoch {epoch}"), api, |_| {
            let partition = ListOffsetsPartition { current_leader_epoch: epoch, ..wanted(0, -1) };
            request("timed", vec![partition])
        });
    }
}

fn epoch_ends(run: &mut Run, api: Api) {
    let mut ask = |case: &str, name: &str, partition: i32, current: i32, epoch: i32| {
        run.case(case, api, |_| offset_for_leader_epoch::Request {
            replica_id: -1,
            topics: vec![OffsetForLeaderTopic {
                topic: text(name),
                partitions: vec![OffsetForLeaderPartition {
                    partition,
                    current_leader_epoch: current,
                    leader_epoch: epoch,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        });
    };
    for epoch in [-2, -1, 0, 1, 99] {
        ask(&format!("the end of epoch {epoch}"), "timed", 0, -1, epoch);
        ask(&format!("the end of epoch {epoch} of nothing"), "empty", 0, -1, epoch);
        ask(&format!("at epoch {epoch}"), "timed", 0, epoch, 0);
    }
    ask("an unknown topic", "never-timed", 0, -1, 0);
    ask("an unknown partition", "timed", 9, -1, 0);
}
