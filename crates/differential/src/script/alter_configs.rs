//! `IncrementalAlterConfigs`, `AlterConfigs` and `ListConfigResources`: what may be set, added, taken away
//! and listed, and what it comes to.

use strandline_wire::alter_configs as replace;
use strandline_wire::describe_configs;
use strandline_wire::incremental_alter_configs::{AlterConfigsResource, AlterableConfig, Request};
use strandline_wire::list_config_resources as list;
use strandline_wire::{Api, ApiKey};

use super::{create, newest, text, topic, versions};
use crate::run::Run;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const METRICS: i8 = 16;
const GROUP: i8 = 32;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// A key, an operation and perhaps a value.
type Op<'a> = (&'a str, i8, Option<&'a str>);

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    create(run, "a topic to configure", &[topic("altered", 1, &[])])?;
    for api in versions(ApiKey::IncrementalAlterConfigs) {
        topics(run, api);
        brokers(run, api);
        groups(run, api);
        client_metrics(run, api);
        loggers(run, api);
        oddities(run, api);
    }
    for api in versions(ApiKey::AlterConfigs) {
        replacements(run, api);
    }
    for api in versions(ApiKey::ListConfigResources) {
        for types in [&[][..], &[TOPIC], &[BROKER, GROUP], &[METRICS], &[LOGGER], &[99], &[0]] {
            run.case(&format!("resources of {types:?}"), api, |_| list::Request {
                resource_types: if api.version() == 0 { Vec::new() } else { types.to_vec() },
                ..Default::default()
            });
        }
    }
    clean(run);
    Ok(())
}

/// Alters one resource, checked only and then for good, and looks at what came of it.
fn alter(run: &mut Run, api: Api, kind: i8, name: &str, ops: &[Op<'_>]) {
    for validate_only in [true, false] {
        let case = format!("{kind} {name:?} {ops:?}, validate only: {validate_only}");
        run.case(&case, api, |_| Request {
            resources: vec![resource(kind, name, ops)],
            validate_only,
            ..Default::default()
        });
    }
    let keys: Vec<&str> = ops.iter().map(|(key, _, _)| *key).collect();
    look(run, kind, name, &keys);
}

fn look(run: &mut Run, kind: i8, name: &str, keys: &[&str]) {
    let api = newest(ApiKey::DescribeConfigs);
    let case = format!("{kind} {name:?} {keys:?} afterwards");
    run.settled(&case, api, |_| describe_configs::Request {
        resources: vec![describe_configs::DescribeConfigsResource {
            resource_type: kind,
            resource_name: text(name),
            configuration_keys: Some(keys.iter().map(|key| text(key)).collect()),
            ..Default::default()
        }],
        include_synonyms: true,
        ..Default::default()
    });
}

fn resource(kind: i8, name: &str, ops: &[Op<'_>]) -> AlterConfigsResource {
    let config = |(name, config_operation, value): &Op<'_>| AlterableConfig {
        name: text(name),
        config_operation: *config_operation,
        value: value.map(text),
        ..Default::default()
    };
    AlterConfigsResource {
        resource_type: kind,
        resource_name: text(name),
        configs: ops.iter().map(config).collect(),
        ..Default::default()
    }
}

fn topics(run: &mut Run, api: Api) {
    for ops in [
        &[("retention.ms", SET, Some("5000"))][..],
        &[("retention.ms", SET, Some(" 6000 "))],
        &[("retention.ms", SET, Some("-2"))],
        &[("retention.ms", SET, Some("abc"))],
        &[("retention.ms", SET, None)],
        &[("retention.ms", APPEND, Some("7"))],
        &[("retention.ms", DELETE, Some("7"))],
        &[("retention.ms", DELETE, None)],
        &[("no.such", SET, Some("7"))],
        &[("no.such", DELETE, None)],
        &[("no.such", APPEND, Some("7"))],
        &[("cleanup.policy", APPEND, Some("compact"))],
        &[("cleanup.policy", SUBTRACT, Some("delete"))],
        &[("cleanup.policy", SUBTRACT, Some("compact"))],
        &[("cleanup.policy", APPEND, Some("compact,delete"))],
        &[("cleanup.policy", APPEND, Some("foo"))],
        &[("cleanup.policy", APPEND, Some(""))],
        &[("cleanup.policy", SUBTRACT, None)],
        &[("cleanup.policy", SET, Some(""))],
        &[("cleanup.policy", DELETE, None)],
        &[("retention.ms", SET, Some("1")), ("retention.ms", SET, Some("2"))],
        &[("retention.ms", SET, Some("1")), ("no.such", SET, Some("2"))],
        &[("min.compaction.lag.ms", SET, Some("9")), ("max.compaction.lag.ms", SET, Some("5"))],
        &[("remote.storage.enable", SET, Some("true"))],
        &[("segment.bytes", SET, Some("10"))],
        &[("max.message.bytes", SET, Some("100000")), ("preallocate", SET, Some("TRUE"))],
        &[("max.message.bytes", DELETE, None), ("preallocate", DELETE, None)],
        &[("leader.replication.throttled.replicas", APPEND, Some("0:1"))],
        &[("leader.replication.throttled.replicas", SUBTRACT, Some("0:1"))],
        &[("leader.replication.throttled.replicas", DELETE, None)],
        &[],
    ] {
        alter(run, api, TOPIC, "altered", ops);
    }
    for name in ["never-made", "two words", ""] {
        alter(run, api, TOPIC, name, &[("retention.ms", SET, Some("5"))]);
        alter(run, api, TOPIC, name, &[("retention.ms", SET, Some("x"))]);
    }
}

fn brokers(run: &mut Run, api: Api) {
    for name in ["1", ""] {
        for ops in [
            &[("message.max.bytes", SET, Some("2000000"))][..],
            &[("message.max.bytes", SET, Some("x"))],
            &[("message.max.bytes", SET, Some("-1"))],
            &[("message.max.bytes", APPEND, Some("1"))],
            &[("message.max.bytes", DELETE, None)],
            &[("num.partitions", SET, Some("3"))],
            &[("num.partitions", DELETE, None)],
            &[("log.cleanup.policy", APPEND, Some("compact"))],
            &[("log.cleanup.policy", SUBTRACT, Some("delete"))],
            &[("log.cleanup.policy", APPEND, Some("x"))],
            &[("log.cleanup.policy", DELETE, None)],
            &[("no.such", APPEND, Some("1"))],
            &[("my.own.key", SET, Some("1"))],
            &[("my.own.key", DELETE, None)],
            &[("listener.name.plaintext.max.connections", SET, Some("100"))],
            &[("listener.name.plaintext.max.connections", DELETE, None)],
            &[("background.threads", SET, Some("4"))],
            &[("background.threads", SET, Some("21"))],
            &[("background.threads", SET, Some("20"))],
            &[("background.threads", SET, Some("41"))],
            &[("background.threads", SET, Some("40"))],
            &[("background.threads", DELETE, None)],
            &[("background.threads", SET, Some("20"))],
            &[("background.threads", DELETE, None)],
            &[("log.cleaner.threads", SET, Some("3"))],
            &[("log.cleaner.threads", SET, Some("0"))],
            &[("min.insync.replicas", SET, Some("1"))],
            &[("min.insync.replicas", DELETE, None)],
            &[("ssl.keystore.location", SET, Some("x"))],
            &[("compression.type", SET, Some("x"))],
            &[("log.segment.bytes", SET, Some("1048576")), ("log.roll.ms", SET, Some("5000"))],
            &[("log.segment.bytes", DELETE, None), ("log.roll.ms", DELETE, None)],
        ] {
            alter(run, api, BROKER, name, ops);
        }
    }
    look(run, TOPIC, "altered", &["max.message.bytes", "segment.bytes", "segment.ms"]);
    for name in ["77", "one", "-1"] {
        alter(run, api, BROKER, name, &[("message.max.bytes", SET, Some("5"))]);
    }
}

fn groups(run: &mut Run, api: Api) {
    for ops in [
        &[("share.auto.offset.reset", SET, Some("earliest"))][..],
        &[("share.auto.offset.reset", SET, Some("sometime"))],
        &[("share.auto.offset.reset", SET, Some("by_duration:PT1H"))],
        &[("share.auto.offset.reset", DELETE, None)],
        &[("no.such", SET, Some("1"))],
        &[("consumer.session.timeout.ms", SET, Some("1"))],
        &[("consumer.session.timeout.ms", SET, Some("0"))],
        &[("consumer.session.timeout.ms", SET, Some("46000"))],
        &[("consumer.session.timeout.ms", DELETE, None)],
        &[("streams.rack.aware.assignment.tags", SET, Some("a,b"))],
        &[("streams.rack.aware.assignment.tags", APPEND, Some("c"))],
        &[("streams.rack.aware.assignment.tags", SET, Some("a,a"))],
        &[("streams.rack.aware.assignment.tags", SET, Some("a,,b"))],
        &[("streams.rack.aware.assignment.tags", DELETE, None)],
        &[("streams.num.warmup.replicas", SET, Some("1"))],
        &[("errors.deadletterqueue.topic.name", SET, Some("__x"))],
        &[("share.record.lock.duration.ms", SET, Some("1000"))],
    ] {
        alter(run, api, GROUP, "altered-group", ops);
    }
    alter(run, api, GROUP, "", &[("share.auto.offset.reset", SET, Some("earliest"))]);
}

fn client_metrics(run: &mut Run, api: Api) {
    for ops in [
        &[("interval.ms", SET, Some("1000"))][..],
        &[("interval.ms", SET, Some("1"))],
        &[("interval.ms", SET, Some("x"))],
        &[("metrics", SET, Some("a,b"))],
        &[("metrics", APPEND, Some("c"))],
        &[("match", SET, Some("x=y"))],
        &[("match", SET, Some("client_id=y"))],
        &[("no.such", SET, Some("1"))],
        &[("match", DELETE, None), ("metrics", DELETE, None)],
    ] {
        alter(run, api, METRICS, "altered-metrics", ops);
    }
    alter(run, api, METRICS, "", &[("interval.ms", SET, Some("1000"))]);
}

/// Levels as Kafka names them; of loggers both have the one above all others.
fn loggers(run: &mut Run, api: Api) {
    for ops in [
        &[("root", SET, Some("WARN"))][..],
        &[("root", SET, Some("warn"))],
        &[("root", SET, Some("OFF"))],
        &[("root", SET, Some("FATAL"))],
        &[("root", SET, None)],
        &[("root", DELETE, None)],
        &[("root", APPEND, Some("INFO"))],
        &[("root", SUBTRACT, Some("INFO"))],
        &[("root", 9, Some("INFO"))],
        &[("no.such", SET, Some("INFO"))],
        &[("no.such", DELETE, None)],
        &[("root", SET, Some("INFO")), ("no.such", SET, Some("INFO"))],
        &[("root", SET, Some("INFO")), ("root", SET, Some("WARN"))],
        &[("root", SET, Some("INFO"))],
    ] {
        alter(run, api, LOGGER, "1", ops);
    }
    for name in ["77", "one", ""] {
        alter(run, api, LOGGER, name, &[("root", SET, Some("INFO"))]);
    }
}

fn oddities(run: &mut Run, api: Api) {
    for kind in [0, 1, 3, 99, -1] {
        let case = format!("a resource of type {kind}");
        let ops: [Op<'_>; 1] = [("retention.ms", SET, Some("5"))];
        run.case(&case, api, |_| Request {
            resources: vec![resource(kind, "altered", &ops)],
            ..Default::default()
        });
    }
    for kind in [TOPIC, BROKER] {
        let name = if kind == TOPIC { "altered" } else { "1" };
        let unknown: [Op<'_>; 1] = [("retention.ms", 9, Some("5"))];
        run.case(&format!("an unknown operation on {kind}"), api, |_| Request {
            resources: vec![resource(kind, name, &unknown)],
            ..Default::default()
        });
    }
    let twice: [Op<'_>; 1] = [("retention.ms", SET, Some("5"))];
    run.case("a resource twice and another one", api, |_| Request {
        resources: vec![
            resource(TOPIC, "altered", &twice),
            resource(TOPIC, "never-made", &twice),
            resource(TOPIC, "altered", &[]),
        ],
        ..Default::default()
    });
    run.case("no resources", api, |_| Request::default());
}

fn replacements(run: &mut Run, api: Api) {
    let one =
        |kind: i8, name: &str, configs: &[(&str, Option<&str>)]| replace::AlterConfigsResource {
            resource_type: kind,
            resource_name: text(name),
            configs: configs
                .iter()
                .map(|(name, value)| replace::AlterableConfig {
                    name: text(name),
                    value: value.map(text),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
    for (kind, name, configs) in [
        (TOPIC, "altered", &[("retention.ms", Some("7000")), ("segment.ms", Some("9000"))][..]),
        (TOPIC, "altered", &[("segment.ms", Some("9000"))]),
        (TOPIC, "altered", &[("segment.ms", None)]),
        (TOPIC, "altered", &[("segment.ms", Some("x"))]),
        (TOPIC, "altered", &[("no.such", Some("x"))]),
        (TOPIC, "altered", &[("segment.ms", Some("1")), ("segment.ms", Some("2"))]),
        (TOPIC, "altered", &[]),
        (TOPIC, "never-made", &[]),
        (BROKER, "1", &[("message.max.bytes", Some("2000000"))]),
        (BROKER, "1", &[("num.partitions", Some("2"))]),
        (BROKER, "1", &[]),
        (LOGGER, "1", &[("root", Some("INFO"))]),
        (GROUP, "altered-group", &[("share.isolation.level", Some("read_committed"))]),
        (GROUP, "altered-group", &[]),
        (99, "altered", &[]),
    ] {
        for validate_only in [true, false] {
            let case = format!("{kind} {name:?} as {configs:?}, validate only: {validate_only}");
            run.case(&case, api, |_| replace::Request {
                resources: vec![one(kind, name, configs)],
                validate_only,
                ..Default::default()
            });
        }
        if kind != 99 {
            look(run, kind, name, &["retention.ms", "segment.ms", "message.max.bytes"]);
        }
    }
}

/// Leaves nothing behind that later parts of the script would notice.
fn clean(run: &mut Run) {
    let api = newest(ApiKey::IncrementalAlterConfigs);
    for (kind, name, keys) in [
        (METRICS, "altered-metrics", &["interval.ms"][..]),
        (GROUP, "altered-group", &["streams.num.warmup.replicas"]),
    ] {
        let ops: Vec<Op<'_>> = keys.iter().map(|key| (*key, DELETE, None)).collect();
        alter(run, api, kind, name, &ops);
    }
}
