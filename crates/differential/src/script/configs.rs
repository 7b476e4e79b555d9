//! DescribeConfigs: topics, the broker, and what is neither.

use strandline_wire::describe_configs::{DescribeConfigsResource, Request};
use strandline_wire::{Api, ApiKey};

use super::{create, text, topic, versions};
use crate::run::Run;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    let configs = [("retention.ms", "12345"), ("cleanup.policy", "compact")];
    create(run, "a topic with configuration", &[topic("configured", 1, &configs)])?;
    for api in versions(ApiKey::DescribeConfigs) {
        one_resource(run, api, "a topic's keys", TOPIC, "configured", Some(&KEYS));
        one_resource(run, api, "all keys of a topic", TOPIC, "configured", None);
        one_resource(run, api, "no keys", TOPIC, "configured", Some(&[]));
        one_resource(run, api, "an unknown key", TOPIC, "configured", Some(&["no.such.key"]));
        one_resource(run, api, "an unknown topic", TOPIC, "never-configured", None);
        one_resource(run, api, "an impossible topic", TOPIC, "two words", None);
        one_resource(run, api, "an empty name", TOPIC, "", None);
        one_resource(run, api, "the broker", BROKER, "1", Some(&BROKER_KEYS));
        one_resource(run, api, "the default of all brokers", BROKER, "", Some(&BROKER_KEYS));
        one_resource(run, api, "another broker", BROKER, "77", None);
        one_resource(run, api, "a broker that is no number", BROKER, "one", None);
        for kind in [0, 1, 3, 99, -1] {
            one_resource(run, api, &format!("a resource of type {kind}"), kind, "configured", None);
        }
        run.case("nothing", api, |_| Request::default());
    }
    Ok(())
}

const KEYS: [&str; 6] = [
    "retention.ms",
    "cleanup.policy",
    "segment.bytes",
    "max.message.bytes",
    "message.timestamp.type",
    "compression.type",
];

const BROKER_KEYS: [&str; 4] =
    ["num.partitions", "auto.create.topics.enable", "message.max.bytes", "log.retention.ms"];

fn one_resource(
    run: &mut Run,
    api: Api,
    case: &str,
    resource_type: i8,
    name: &str,
    keys: Option<&[&str]>,
) {
    for details in [false, true] {
        let documented = details && api.version() >= 3;
        run.case(&format!("{case}, details: {details}"), api, |_| Request {
            resources: vec![DescribeConfigsResource {
                resource_type,
                resource_name: text(name),
                configuration_keys: keys.map(|keys| keys.iter().map(|key| text(key)).collect()),
                ..Default::default()
            }],
            include_synonyms: details,
            include_documentation: documented,
            ..Default::default()
        });
    }
}
