//! `strandline topic list`.

use clap::Args;
use strandline_client::Topic;

use crate::command::OutputFormat;
use crate::command::target::Target;
use crate::console;
use crate::failure::Failure;
use crate::table::{Align, Table};

/// Lists topics.
#[derive(Debug, Args)]
#[command(visible_alias = "ls", after_help = "Example:\n  strandline topic list --format json")]
pub(crate) struct List {
    /// Also lists topics that belong to the cluster itself.
    #[arg(long)]
    internal: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl List {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let topics = cluster.topics.iter().filter(|topic| self.internal || !topic.internal);
        match self.format {
            OutputFormat::Text => {
                let mut table = Table::new(&[
                    ("TOPIC", Align::Left),
                    ("PARTITIONS", Align::Right),
                    ("REPLICAS", Align::Right),
                ]);
                for topic in topics {
                    let partitions = topic.partitions.len().to_string();
                    table.row([topic.name.clone(), partitions, replicas(topic).to_string()]);
                }
                console::data(table.render().as_bytes());
            }
            OutputFormat::Json => {
                let json = |topic: &Topic| {
                    serde_json::json!({
                        "name": topic.name,
                        "topic_id": topic.id.to_string(),
                        "partitions": topic.partitions.len(),
                        "replication_factor": replicas(topic),
                        "internal": topic.internal,
                    })
                };
                let topics: Vec<_> = topics.map(json).collect();
                console::line(&serde_json::Value::from(topics).to_string());
            }
        }
        Ok(())
    }
}

fn replicas(topic: &Topic) -> usize {
    topic.partitions.first().map_or(0, |partition| partition.replicas.len())
}
