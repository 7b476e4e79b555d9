//! `DeleteTopics`: by name, by id, and what is not there.

use strandline_wire::delete_topics::{DeleteTopicState, Request};
use strandline_wire::{Api, ApiKey, KafkaString, KafkaUuid};

use super::{create, text, topic, versions, wait};
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    for api in versions(ApiKey::DeleteTopics) {
        let name = |tag: &str| format!("{tag}-{}", api.version());
        let [one, two, three] = [name("gone-a"), name("gone-b"), name("gone-c")];
        let topics = [topic(&one, 1, &[]), topic(&two, 2, &[]), topic(&three, 1, &[])];
        create(run, "topics to delete", &topics)?;
        run.case("a topic", api, |_| by_name(api, &[&one]));
        for broker in [&mut run.kafka, &mut run.ours] {
            wait(broker, |broker| !broker.has_topic(&one))?;
        }
        run.case("the same again", api, |_| by_name(api, &[&one]));
        run.case("an unknown topic", api, |_| by_name(api, &["never-there"]));
        run.case("an impossible name", api, |_| by_name(api, &["two words"]));
        run.case("an empty name", api, |_| by_name(api, &[""]));
        run.case("a topic twice", api, |_| by_name(api, &[&two, &two]));
        run.case("a good and an unknown one", api, |_| by_name(api, &[&three, "never-there"]));
        run.case("nothing", api, |_| by_name(api, &[]));
        if api.version() >= 6 {
            by_id(run, api)?;
        }
    }
    Ok(())
}

fn by_name(api: Api, names: &[&str]) -> Request {
    let state = |name: &&str| DeleteTopicState { name: Some(text(name)), ..Default::default() };
    let structures = api.version() >= 6;
    Request {
        topics: if structures { names.iter().map(state).collect() } else { Vec::new() },
        topic_names: if structures { Vec::new() } else { names.iter().map(|n| text(n)).collect() },
        timeout_ms: 10_000,
        ..Default::default()
    }
}

fn by_id(run: &mut Run, api: Api) -> anyhow::Result<()> {
    create(run, "topics to delete by id", &[topic("by-id-a", 1, &[]), topic("by-id-b", 1, &[])])?;
    let one = |topic_id: KafkaUuid, name: Option<KafkaString>| Request {
        topics: vec![DeleteTopicState { name, topic_id, ..Default::default() }],
        timeout_ms: 10_000,
        ..Default::default()
    };
    run.case("an id", api, |broker| one(broker.topic_id("by-id-a"), None));
    run.case("an unknown id", api, |_| one(KafkaUuid::from_parts(1, 2), None));
    run.case("neither name nor id", api, |_| one(KafkaUuid::ZERO, None));
    run.case("a name and an id", api, |broker| {
        one(broker.topic_id("by-id-b"), Some(text("by-id-b")))
    });
    run.case("a name and an id of the same topic", api, |broker| Request {
        topics: vec![
            DeleteTopicState { name: Some(text("by-id-b")), ..Default::default() },
            DeleteTopicState { topic_id: broker.topic_id("by-id-b"), ..Default::default() },
        ],
        timeout_ms: 10_000,
        ..Default::default()
    });
    Ok(())
}
