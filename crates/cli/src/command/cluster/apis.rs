//! `strandline cluster apis`.

use std::collections::BTreeMap;

use clap::Args;
use strandline_client::NodeVersions;
use strandline_wire::api_name;

use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::table::{Align, Table};

/// Shows which versions of Kafka's APIs each node serves.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline cluster apis\n  strandline cluster apis --format json"
)]
pub(crate) struct Apis {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Apis {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let cluster = client.cluster(Some(&[])).await.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        let mut nodes: Vec<(i32, NodeVersions)> = Vec::new();
        for broker in &cluster.brokers {
            match client.versions_of(broker.id).await {
                Ok(versions) => nodes.push((broker.id, versions)),
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        match self.format {
            OutputFormat::Text => console::data(table(&nodes).render().as_bytes()),
            OutputFormat::Json => {
                let nodes: Vec<_> =
                    nodes.iter().map(|(id, versions)| json(*id, versions)).collect();
                console::line(&serde_json::Value::from(nodes).to_string());
            }
        }
        finish(failures, self.format)
    }
}

/// Kafka's name of an API, or its number for one of the future.
fn name(key: i16) -> String {
    api_name(key).unwrap_or_else(|| format!("API-{key}"))
}

fn table(nodes: &[(i32, NodeVersions)]) -> Table {
    // Nodes of one version serve the same: then one row tells of all.
    let mut rows: BTreeMap<(i16, i16, i16), Vec<i32>> = BTreeMap::new();
    for (id, versions) in nodes {
        for api in &versions.apis {
            rows.entry((api.key, api.min_version, api.max_version)).or_default().push(*id);
        }
    }
    let mut table = Table::new(&[
        ("KEY", Align::Right),
        ("API", Align::Left),
        ("MIN", Align::Right),
        ("MAX", Align::Right),
        ("NODES", Align::Left),
    ]);
    for ((key, min, max), ids) in rows {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let ids = if ids.len() == nodes.len() { "all".to_owned() } else { ids.join(",") };
        table.row([key.to_string(), name(key), min.to_string(), max.to_string(), ids]);
    }
    table
}

fn json(id: i32, versions: &NodeVersions) -> serde_json::Value {
    let apis = versions.apis.iter().map(|api| {
        serde_json::json!({
            "key": api.key,
            "name": api_name(api.key),
            "min_version": api.min_version,
            "max_version": api.max_version,
        })
    });
    serde_json::json!({ "node_id": id, "apis": apis.collect::<Vec<_>>() })
}
