//! `strandline topic describe`.

use clap::Args;
use strandline_client::{Client, ClientError, ConfigEntry, OffsetAt, Partition, Topic};

use crate::command::names::Names;
use crate::command::target::{Target, unknown_topic};
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;
use crate::table::{Align, Table};

/// Kafka's number for a value that was set on the topic itself.
const SOURCE_TOPIC: i8 = 1;

/// Shows partitions, offsets and what was configured.
#[derive(Debug, Args)]
#[command(visible_alias = "info", after_help = "Example:\n  strandline topic describe orders")]
pub(crate) struct Describe {
    #[command(flatten)]
    names: Names,
    /// Also shows configs that were not set on the topic.
    #[arg(long)]
    all_configs: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// A topic with what one must ask for separately.
struct Described {
    topic: Topic,
    partitions: Vec<PartitionOffsets>,
    configs: Vec<ConfigEntry>,
    /// `retention.bytes`, wherever it was set: the limit of each partition, not of the topic.
    retention_bytes: Option<u64>,
}

impl Described {
    /// What retention by size leaves of all partitions together at most; `None` without that limit.
    fn retention_bytes_of_all(&self) -> Option<u64> {
        Some(self.retention_bytes?.saturating_mul(self.partitions.len() as u64))
    }
}

/// A partition's borders; `None` while it has no leader that answers.
struct PartitionOffsets {
    partition: Partition,
    start: Option<i64>,
    end: Option<i64>,
    /// Why there is none.
    error: Option<String>,
}

impl Describe {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let names = self.names.topics(target, &mut client).await?;
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        let mut described = Vec::new();
        for name in &names {
            let Some(topic) = cluster.topics.iter().find(|topic| topic.name == *name) else {
                let known = cluster.topics.iter().map(|topic| topic.name.as_str());
                failures.push(unknown_topic(name, known));
                continue;
            };
            match self.describe(&mut client, topic.clone()).await {
                Ok(topic) => described.push(topic),
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        match self.format {
            OutputFormat::Text => {
                let texts: Vec<String> = described.iter().map(text).collect();
                console::data(texts.join("\n").as_bytes());
            }
            OutputFormat::Json => {
                let topics: Vec<_> = described.iter().map(json).collect();
                console::line(&serde_json::Value::from(topics).to_string());
            }
        }
        finish(failures, self.format)
    }

    async fn describe(&self, client: &mut Client, topic: Topic) -> Result<Described, ClientError> {
        let mut configs = client.topic_config(&topic.name).await?;
        let of_size = configs.iter().find(|entry| entry.name == "retention.bytes");
        // −1 is no limit, and no number of bytes.
        let retention_bytes =
            of_size.and_then(|entry| entry.value.as_deref()).and_then(|text| text.parse().ok());
        configs.retain(|entry| self.all_configs || entry.source == SOURCE_TOPIC);
        let mut partitions = Vec::new();
        for partition in topic.partitions.clone() {
            // A partition without a leader is worth its line all the same.
            let start = client.offset(&topic.name, partition.index, OffsetAt::Earliest).await;
            let end = client.offset(&topic.name, partition.index, OffsetAt::Latest).await;
            let error = start.as_ref().err().or(end.as_ref().err()).map(ToString::to_string);
            partitions.push(PartitionOffsets {
                partition,
                start: start.ok().map(|found| found.offset),
                end: end.ok().map(|found| found.offset),
                error,
            });
        }
        Ok(Described { topic, partitions, configs, retention_bytes })
    }
}

fn text(described: &Described) -> String {
    let mut text = format!("{}  id {}\n", described.topic.name, described.topic.id);
    for entry in &described.configs {
        text += &format!("  {}={}\n", entry.name, entry.shown());
    }
    if let (Some(each), Some(all)) = (described.retention_bytes, described.retention_bytes_of_all())
    {
        let partitions = counted(described.partitions.len() as u64, "partition");
        text += &format!(
            "  retention.bytes is for each partition: {each} × {partitions} = {all} bytes at most\n"
        );
    }
    let mut table = Table::new(&[
        ("PARTITION", Align::Right),
        ("LEADER", Align::Right),
        ("EPOCH", Align::Right),
        ("REPLICAS", Align::Left),
        ("ISR", Align::Left),
        ("LOG-START-OFFSET", Align::Right),
        ("HIGH-WATERMARK", Align::Right),
    ]);
    let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    for PartitionOffsets { partition, start, end, .. } in &described.partitions {
        table.row([
            partition.index.to_string(),
            partition.leader.to_string(),
            partition.leader_epoch.to_string(),
            ids(&partition.replicas),
            ids(&partition.in_sync),
            number(*start),
            number(*end),
        ]);
    }
    text += &table.render();
    for PartitionOffsets { partition, error, .. } in &described.partitions {
        if let Some(error) = error {
            text += &format!("  partition {} tells no offsets: {error}\n", partition.index);
        }
    }
    text
}

fn ids(ids: &[i32]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn json(described: &Described) -> serde_json::Value {
    let config = |entry: &ConfigEntry| (entry.name.clone(), entry.value.clone().into());
    let configs: serde_json::Map<_, _> = described.configs.iter().map(config).collect();
    let partition = |found: &PartitionOffsets| {
        serde_json::json!({
            "partition": found.partition.index,
            "leader": found.partition.leader,
            "leader_epoch": found.partition.leader_epoch,
            "replicas": found.partition.replicas,
            "in_sync_replicas": found.partition.in_sync,
            "log_start_offset": found.start,
            "high_watermark": found.end,
            "error": found.error,
        })
    };
    let partitions: Vec<_> = described.partitions.iter().map(partition).collect();
    serde_json::json!({
        "name": described.topic.name,
        "topic_id": described.topic.id.to_string(),
        "internal": described.topic.internal,
        "configs": configs,
        "retention_bytes_of_all_partitions": described.retention_bytes_of_all(),
        "partitions": partitions,
    })
}
