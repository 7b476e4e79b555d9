//! What both brokers are asked, part by part. Within a part later cases build on what earlier ones
//! left behind.

mod administration;
mod alter_configs;
mod cluster;
mod configs;
mod create_topics;
mod delete_topics;
mod features;
mod fetch;
mod groups;
mod hostile;
mod list_offsets;
mod members;
mod metadata;
mod offsets;
mod partitions;
mod produce;
mod quotas;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use strandline_wire::create_topics::{CreatableTopic, CreatableTopicConfig, Request};
use strandline_wire::list_offsets as wire_offsets;
use strandline_wire::{Api, ApiKey, KafkaString, find_coordinator, offset_fetch};

use crate::broker::{Broker, PATIENCE};
use crate::run::Run;

/// How long a topic may take to come or go.
const SETTLE: Duration = Duration::from_secs(20);

/// A part of the script, which needs nothing of the parts before it.
type Part = fn(&mut Run) -> anyhow::Result<()>;

const PARTS: &[(&str, Part)] = &[
    ("cluster", cluster::run),
    ("create_topics", create_topics::run),
    ("metadata", metadata::run),
    ("produce", produce::run),
    ("list_offsets", list_offsets::run),
    ("fetch", fetch::run),
    ("configs", configs::run),
    ("alter_configs", alter_configs::run),
    ("administration", administration::run),
    ("quotas", quotas::run),
    ("features", features::run),
    ("partitions", partitions::run),
    ("delete_topics", delete_topics::run),
    ("members", members::run),
    ("offsets", offsets::run),
    ("groups", groups::run),
    ("hostile", hostile::run),
];

/// Runs the parts that `only` names, or all.
pub(crate) fn run(run: &mut Run, only: Option<&str>) -> anyhow::Result<()> {
    let wanted = |name: &str| only.is_none_or(|only| only.split(',').any(|part| part == name));
    // Their cluster ids have to be known before an answer mentions them.
    settle(run, &[])?;
    for (_, part) in PARTS.iter().filter(|(name, _)| wanted(name)) {
        part(run)?;
    }
    anyhow::ensure!(run.cases > 0, "no part is called {}", only.unwrap_or_default());
    Ok(())
}

/// All served versions of an API.
fn versions(key: ApiKey) -> impl Iterator<Item = Api> {
    let row = key.served();
    (row.min_version..=row.max_version).map(|version| row.at(version).expect("it is in the range"))
}

fn newest(key: ApiKey) -> Api {
    let row = key.served();
    row.at(row.max_version).expect("it is in the range")
}

fn text(text: &str) -> KafkaString {
    KafkaString::from(text.to_owned())
}

/// A topic with one replica.
fn topic(name: &str, partitions: i32, configs: &[(&str, &str)]) -> CreatableTopic {
    let config = |(name, value): &(&str, &str)| CreatableTopicConfig {
        name: text(name),
        value: Some(text(value)),
        ..Default::default()
    };
    CreatableTopic {
        name: text(name),
        num_partitions: partitions,
        replication_factor: 1,
        configs: configs.iter().map(config).collect(),
        ..Default::default()
    }
}

/// Creates topics on both sides, as a case of its own, and waits for them.
fn create(run: &mut Run, case: &str, topics: &[CreatableTopic]) -> anyhow::Result<()> {
    let api = newest(ApiKey::CreateTopics);
    let request =
        |_: &Broker| Request { topics: topics.to_vec(), timeout_ms: 10_000, ..Default::default() };
    run.inspect(case, api, patience(), request, |broker, response, _| {
        for topic in &response.topics {
            broker.call_topic(topic.topic_id, topic.name.as_str());
        }
    });
    let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    settle(run, &names)
}

/// Waits until both sides have all of `names`, with leaders that know that they are.
fn settle(run: &mut Run, names: &[&str]) -> anyhow::Result<()> {
    for broker in [&mut run.kafka, &mut run.ours] {
        wait(broker, |broker| names.iter().all(|name| broker.has_topic(name)))?;
        let deadline = Instant::now() + SETTLE;
        while !names.iter().all(|name| leads(broker, name)) {
            if Instant::now() > deadline {
                bail!("{} does not lead its partitions", broker.address());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// Whether the broker answers for a topic's first partition: metadata names a leader before it has
/// opened the log.
fn leads(broker: &mut Broker, name: &str) -> bool {
    let api = newest(ApiKey::ListOffsets);
    let partition = wire_offsets::ListOffsetsPartition { timestamp: -1, ..Default::default() };
    let request = wire_offsets::Request {
        replica_id: -1,
        topics: vec![wire_offsets::ListOffsetsTopic {
            name: text(name),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut leads = false;
    broker.ask::<wire_offsets::Response>(api, &request, PATIENCE, |_, response, _| {
        leads = response.topics.iter().flat_map(|t| &t.partitions).all(|p| p.error_code == 0);
    });
    leads
}

/// Waits until `done`, as far as the broker's metadata tells.
fn wait(broker: &mut Broker, done: impl Fn(&Broker) -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + SETTLE;
    loop {
        broker.learn()?;
        if done(broker) {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{} does not settle", broker.address());
        }
        // Metadata spreads behind a reply; only asking again tells.
        thread::sleep(Duration::from_millis(20));
    }
}

/// The patience for answers that come.
const fn patience() -> Duration {
    PATIENCE
}

/// Waits until both sides coordinate groups: Kafka makes the topic that it keeps them in when it is
/// first asked who does.
fn settle_groups(run: &mut Run) -> anyhow::Result<()> {
    for broker in [&mut run.kafka, &mut run.ours] {
        let deadline = Instant::now() + SETTLE;
        while !coordinates(broker) {
            if Instant::now() > deadline {
                bail!("{} does not coordinate groups", broker.address());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

fn coordinates(broker: &mut Broker) -> bool {
    let keys = vec![text("warm")];
    let request = find_coordinator::Request { coordinator_keys: keys, ..Default::default() };
    let mut found = false;
    let api = newest(ApiKey::FindCoordinator);
    broker.ask::<find_coordinator::Response>(api, &request, PATIENCE, |_, response, _| {
        found = response.coordinators.iter().all(|one| one.error_code == 0);
    });
    let group = offset_fetch::OffsetFetchRequestGroup {
        group_id: text("warm"),
        topics: Some(Vec::new()),
        ..Default::default()
    };
    let request = offset_fetch::Request { groups: vec![group], ..Default::default() };
    let api = newest(ApiKey::OffsetFetch);
    broker.ask::<offset_fetch::Response>(api, &request, PATIENCE, |_, response, _| {
        found &= response.groups.iter().all(|one| one.error_code == 0);
    });
    found
}
