//! `strandline cluster info`.

use clap::Args;
use strandline_client::{Broker, Cluster, Feature};

use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::table::{Align, Table};

/// Shows the cluster's id, its nodes, and the features that are in force.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline cluster info\n  strandline cluster info --format json"
)]
pub(crate) struct Info {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Info {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        let mut features: Vec<Feature> = Vec::new();
        // Features belong to the cluster; every node says the same of those in force.
        for broker in &cluster.brokers {
            match client.versions_of(broker.id).await {
                Ok(versions) if features.is_empty() => features = versions.features,
                Ok(_) => {}
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        match self.format {
            OutputFormat::Text => console::data(text(&cluster, &features).as_bytes()),
            OutputFormat::Json => console::line(&json(&cluster, &features).to_string()),
        }
        finish(failures, self.format)
    }
}

fn text(cluster: &Cluster, features: &[Feature]) -> String {
    let partitions: usize = cluster.topics.iter().map(|topic| topic.partitions.len()).sum();
    let mut text = format!(
        "cluster {}  {} topics  {partitions} partitions\n\n",
        cluster.id.as_deref().unwrap_or("-"),
        cluster.topics.len(),
    );
    let mut nodes = Table::new(&[
        ("NODE", Align::Right),
        ("ADDRESS", Align::Left),
        ("RACK", Align::Left),
        ("CONTROLLER", Align::Left),
        ("LEADS", Align::Right),
    ]);
    for broker in &cluster.brokers {
        let controller = if broker.id == cluster.controller_id { "yes" } else { "" };
        nodes.row([
            broker.id.to_string(),
            broker.address.to_string(),
            broker.rack.clone().unwrap_or_default(),
            controller.to_owned(),
            leads(cluster, broker).to_string(),
        ]);
    }
    text += &nodes.render();
    if !features.is_empty() {
        let mut table = Table::new(&[
            ("FEATURE", Align::Left),
            ("LEVEL", Align::Right),
            ("SUPPORTED", Align::Left),
        ]);
        for feature in features {
            table.row([
                feature.name.clone(),
                feature.finalized.map(|level| level.to_string()).unwrap_or_default(),
                feature.supported.map(|(min, max)| format!("{min}-{max}")).unwrap_or_default(),
            ]);
        }
        text += &format!("\n{}", table.render());
    }
    text
}

/// Partitions that a broker leads.
fn leads(cluster: &Cluster, broker: &Broker) -> usize {
    let partitions = cluster.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.filter(|partition| partition.leader == broker.id).count()
}

fn json(cluster: &Cluster, features: &[Feature]) -> serde_json::Value {
    let node = |broker: &Broker| {
        serde_json::json!({
            "node_id": broker.id,
            "host": broker.address.host(),
            "port": broker.address.port(),
            "rack": broker.rack,
            "leads_partitions": leads(cluster, broker),
        })
    };
    let feature = |feature: &Feature| {
        serde_json::json!({
            "name": feature.name,
            "finalized_level": feature.finalized,
            "supported_min": feature.supported.map(|(min, _)| min),
            "supported_max": feature.supported.map(|(_, max)| max),
        })
    };
    serde_json::json!({
        "cluster_id": cluster.id,
        "controller_id": cluster.controller_id,
        "nodes": cluster.brokers.iter().map(node).collect::<Vec<_>>(),
        "features": features.iter().map(feature).collect::<Vec<_>>(),
        "topics": cluster.topics.len(),
        "partitions": cluster.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>(),
    })
}
