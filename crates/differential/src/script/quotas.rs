//! AlterClientQuotas and DescribeClientQuotas: for whom a quota may be, what it may be, and filters.

use strandline_wire::alter_client_quotas::{EntityData, EntryData, OpData, Request};
use strandline_wire::{Api, ApiKey, describe_client_quotas as describe};

use super::{text, versions};
use crate::run::Run;

/// The types and names of an entity.
type Entity<'a> = &'a [(&'a str, Option<&'a str>)];

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    let before = run.cases;
    for api in versions(ApiKey::AlterClientQuotas) {
        alterations(run, api);
    }
    // Kafka's brokers learn of a change after its answer.
    std::thread::sleep(std::time::Duration::from_millis(300));
    for api in versions(ApiKey::DescribeClientQuotas) {
        descriptions(run, api);
    }
    for api in versions(ApiKey::AlterClientQuotas) {
        for entity in
            [&[("client-id", Some("c"))][..], &[("user", None)], &[("ip", Some("10.0.0.1"))]]
        {
            for key in ["producer_byte_rate", "request_percentage", "connection_creation_rate"] {
                alter(run, api, entity, &[(key, None)]);
            }
        }
    }
    anyhow::ensure!(run.cases > before, "nothing was asked");
    Ok(())
}

fn alter(run: &mut Run, api: Api, entity: Entity<'_>, ops: &[(&str, Option<f64>)]) {
    for validate_only in [true, false] {
        let case = format!("{entity:?} to {ops:?}, validate only: {validate_only}");
        run.case(&case, api, |_| Request {
            entries: vec![entry(entity, ops)],
            validate_only,
            ..Default::default()
        });
    }
}

fn entry(entity: Entity<'_>, ops: &[(&str, Option<f64>)]) -> EntryData {
    let one = |&(kind, name): &(&str, Option<&str>)| EntityData {
        entity_type: text(kind),
        entity_name: name.map(text),
        ..Default::default()
    };
    let op = |&(key, value): &(&str, Option<f64>)| OpData {
        key: text(key),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
        ..Default::default()
    };
    EntryData {
        entity: entity.iter().map(one).collect(),
        ops: ops.iter().map(op).collect(),
        ..Default::default()
    }
}

fn alterations(run: &mut Run, api: Api) {
    for ops in [
        &[("producer_byte_rate", Some(1024.0))][..],
        &[("producer_byte_rate", Some(0.5))],
        &[("producer_byte_rate", Some(0.0))],
        &[("producer_byte_rate", Some(-1.0))],
        &[("request_percentage", Some(0.5))],
        &[("request_percentage", None)],
        &[("no.such", Some(1.0))],
        &[("no.such", None)],
        &[("connection_creation_rate", Some(1.0))],
        &[("producer_byte_rate", Some(1.0)), ("producer_byte_rate", Some(2.0))],
        &[],
    ] {
        alter(run, api, &[("client-id", Some("c"))], ops);
    }
    for entity in [
        &[][..],
        &[("group", Some("g"))],
        &[("user", Some(""))],
        &[("user", None)],
        &[("ip", Some("10.0.0.1")), ("user", None)],
        &[("ip", Some("not an address"))],
    ] {
        // More than the script needs: Kafka would slow it down.
        alter(run, api, entity, &[("request_percentage", Some(5_000.0))]);
    }
    alter(run, api, &[("ip", Some("10.0.0.1"))], &[("connection_creation_rate", Some(7.0))]);
    alter(run, api, &[("ip", Some("10.0.0.1"))], &[("producer_byte_rate", Some(7.0))]);
    run.case("no entries", api, |_| Request::default());
}

fn descriptions(run: &mut Run, api: Api) {
    for components in [
        &[][..],
        &[("client-id", 0, Some("c"))],
        &[("client-id", 0, None)],
        &[("client-id", 1, None)],
        &[("client-id", 1, Some("c"))],
        &[("client-id", 2, None)],
        &[("client-id", 3, None)],
        &[("user", 1, None)],
        &[("ip", 2, None)],
        &[("ip", 2, None), ("user", 2, None)],
        &[("user", 2, None), ("user", 1, None)],
        &[("group", 2, None)],
        &[("", 2, None)],
    ] {
        for strict in [false, true] {
            let component =
                |&(kind, match_type, name): &(&str, i8, Option<&str>)| describe::ComponentData {
                    entity_type: text(kind),
                    match_type,
                    r#match: name.map(text),
                    ..Default::default()
                };
            run.case(&format!("{components:?}, strict: {strict}"), api, |_| describe::Request {
                components: components.iter().map(component).collect(),
                strict,
                ..Default::default()
            });
        }
    }
}
