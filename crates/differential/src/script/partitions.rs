//! `CreatePartitions`: growing a topic.

use strandline_wire::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsTopic, Request,
};
use strandline_wire::{Api, ApiKey};

use super::{create, text, topic, versions};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    for api in versions(ApiKey::CreatePartitions) {
        let name = format!("grows-{}", api.version());
        create(run, "a topic that grows", &[topic(&name, 2, &[])])?;
        for count in [-1, 0, 1, 2] {
            one(run, api, &format!("to {count}"), &name, count, None);
        }
        one(run, api, "an unknown topic", "never-grown", 3, None);
        one(run, api, "an impossible name", "two words", 3, None);
        one(run, api, "an empty name", "", 3, None);
        one(run, api, "to an unknown broker", &name, 3, Some(&[&[99]]));
        one(run, api, "to nobody", &name, 3, Some(&[&[]]));
        one(run, api, "to a broker twice", &name, 3, Some(&[&[1, 1]]));
        one(run, api, "too few assignments", &name, 4, Some(&[&[1]]));
        one(run, api, "too many assignments", &name, 3, Some(&[&[1], &[1]]));
        one(run, api, "no assignments", &name, 3, Some(&[]));
        one(run, api, "to three", &name, 3, None);
        one(run, api, "to four by hand", &name, 4, Some(&[&[1]]));
        run.case("twice in one request", api, |_| Request {
            topics: vec![growth(&name, 5, None), growth(&name, 6, None)],
            timeout_ms: 10_000,
            ..Default::default()
        });
        run.case("nothing", api, |_| Request { timeout_ms: 10_000, ..Default::default() });
    }
    Ok(())
}

fn growth(name: &str, count: i32, brokers: Option<&[&[i32]]>) -> CreatePartitionsTopic {
    let assignment = |brokers: &&[i32]| CreatePartitionsAssignment {
        broker_ids: brokers.to_vec(),
        ..Default::default()
    };
    CreatePartitionsTopic {
        name: text(name),
        count,
        assignments: brokers.map(|rows| rows.iter().map(assignment).collect()),
        ..Default::default()
    }
}

fn one(run: &mut Run, api: Api, case: &str, name: &str, count: i32, brokers: Option<&[&[i32]]>) {
    for validate_only in [true, false] {
        run.case(&format!("{case}, validate only: {validate_only}"), api, |_| Request {
            topics: vec![growth(name, count, brokers)],
            timeout_ms: 10_000,
            validate_only,
            ..Default::default()
        });
    }
}
