//! Metadata and `DescribeTopicPartitions`: topics by name and by id, known and unknown.

use strandline_wire::describe_topic_partitions::{self, RequestCursor, TopicRequest};
use strandline_wire::metadata::{MetadataRequestTopic, Request};
use strandline_wire::{ApiKey, KafkaUuid};

use super::{create, settle, text, topic, versions};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    create(run, "topics to describe", &[topic("seen", 3, &[]), topic("also-seen", 1, &[])])?;
    for api in versions(ApiKey::Metadata) {
        let version = api.version();
        let names = |names: &[&str], create: bool| {
            let topic =
                |name: &&str| MetadataRequestTopic { name: Some(text(name)), ..Default::default() };
            Request {
                topics: Some(names.iter().map(topic).collect()),
                // Older versions always create.
                allow_auto_topic_creation: create || version < 4,
                ..Default::default()
            }
        };
        run.case("a topic", api, |_| names(&["seen"], false));
        run.case("two topics", api, |_| names(&["also-seen", "seen"], false));
        run.case("a topic twice", api, |_| names(&["seen", "seen"], false));
        run.case("all topics", api, |_| {
            let topics = if version == 0 { Some(Vec::new()) } else { None };
            Request { topics, ..Default::default() }
        });
        if version >= 1 {
            run.case("no topics", api, |_| names(&[], false));
        }
        if version >= 4 {
            run.case("an unknown topic", api, |_| names(&["never-seen"], false));
        }
        for name in ["", ".", "two words", "n/a"] {
            run.case(&format!("the impossible name {name:?}"), api, |_| names(&[name], true));
        }
        let created = format!("created-by-metadata-{version}");
        run.case("an unknown topic that is created", api, |_| names(&[&created], true));
        settle(run, &[&created])?;
        run.case("what was created", api, |_| names(&[&created], false));
        authorized_operations(run, api);
        by_id(run, api);
    }
    describe(run);
    Ok(())
}

fn authorized_operations(run: &mut Run, api: strandline_wire::Api) {
    if api.version() < 8 {
        return;
    }
    run.case("with authorized operations", api, |_| Request {
        topics: Some(vec![MetadataRequestTopic { name: Some(text("seen")), ..Default::default() }]),
        include_topic_authorized_operations: true,
        include_cluster_authorized_operations: api.version() <= 10,
        ..Default::default()
    });
}

fn by_id(run: &mut Run, api: strandline_wire::Api) {
    if api.version() < 10 {
        return;
    }
    let one = |topic_id: KafkaUuid, name: Option<&str>| Request {
        topics: Some(vec![MetadataRequestTopic {
            topic_id,
            name: name.map(text),
            ..Default::default()
        }]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    run.case("a topic by its id", api, |broker| one(broker.topic_id("seen"), None));
    run.case("an unknown id", api, |_| one(KafkaUuid::from_parts(1, 2), None));
    run.case("the id of nothing", api, |_| one(KafkaUuid::ZERO, None));
    run.case("an id and its name", api, |broker| one(broker.topic_id("seen"), Some("seen")));
    run.case("an id and another name", api, |broker| one(broker.topic_id("seen"), Some("other")));
}

fn describe(run: &mut Run) {
    for api in versions(ApiKey::DescribeTopicPartitions) {
        let cursor = |name: &str, partition_index: i32| {
            Some(Box::new(RequestCursor {
                topic_name: text(name),
                partition_index,
                ..Default::default()
            }))
        };
        let request = |names: &[&str], limit: i32, cursor| describe_topic_partitions::Request {
            topics: names
                .iter()
                .map(|name| TopicRequest { name: text(name), ..Default::default() })
                .collect(),
            response_partition_limit: limit,
            cursor,
            ..Default::default()
        };
        run.case("two topics", api, |_| request(&["seen", "also-seen"], 2000, None));
        run.case("an unknown topic", api, |_| request(&["never-seen"], 2000, None));
        run.case("a topic twice", api, |_| request(&["seen", "seen"], 2000, None));
        run.case("an impossible name", api, |_| request(&["two words"], 2000, None));
        run.case("a page of two", api, |_| request(&["seen", "also-seen"], 2, None));
        run.case("a page of none", api, |_| request(&["seen"], 0, None));
        run.case("a negative page", api, |_| request(&["seen"], -1, None));
        run.case("from a cursor on", api, |_| request(&["seen"], 2000, cursor("seen", 2)));
        run.case("from a cursor past the end", api, |_| {
            request(&["seen"], 2000, cursor("seen", 9))
        });
        run.case("from a negative cursor", api, |_| request(&["seen"], 2000, cursor("seen", -1)));
        run.case("a cursor at a topic between", api, |_| {
            request(&["also-seen", "seen"], 2000, cursor("between", 0))
        });
    }
}
