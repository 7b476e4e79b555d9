//! `strandline topic create`.

use clap::Args;
use strandline_client::NewTopic;
use strandline_model::config::Scope;
use strandline_wire::ErrorCode;

use crate::command::assignment::assignment;
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;

/// Creates topics.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic create orders -p 6\n  strandline topic create \
                        clicks -c retention.ms=1h -c segment.bytes=16MiB"
)]
pub(crate) struct Create {
    /// The names.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// How many partitions each gets [default: the broker's num.partitions].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// How many replicas each partition has [default: the broker's].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    replication_factor: Option<i16>,
    /// A topic config; sizes and durations may carry units (128MiB, 7d).
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    configs: Vec<String>,
    /// Is content with topics that are there already.
    #[arg(long)]
    if_not_exists: bool,
    /// Only asks the broker whether it would do it.
    #[arg(long)]
    dry_run: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Create {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let configs: Vec<_> = self
            .configs
            .iter()
            .map(|text| assignment(Scope::Topic, text))
            .collect::<Result<_, _>>()?;
        let topic = |name: &String| NewTopic {
            name: name.clone(),
            partitions: self.partitions,
            replication_factor: self.replication_factor,
            configs: configs.clone(),
        };
        let topics: Vec<NewTopic> = self.names.iter().map(topic).collect();
        let mut client = target.connect().await?;
        let outcomes = client.create_topics(&topics, self.dry_run).await;
        let mut failures = Vec::new();
        let mut created = Vec::new();
        for outcome in outcomes.map_err(|error| target.explain(&error))? {
            let exists = Some(ErrorCode::TOPIC_ALREADY_EXISTS);
            match outcome.result {
                Ok(topic) => {
                    if self.format == OutputFormat::Text {
                        let done = if self.dry_run { "would create" } else { "created" };
                        let partitions =
                            counted(u64::from(topic.partitions.unsigned_abs()), "partition");
                        console::say(&format!("{done} {} with {partitions}", outcome.name));
                    }
                    created.push(serde_json::json!({
                        "name": outcome.name,
                        "partitions": topic.partitions,
                        "replication_factor": topic.replication_factor,
                        "created": !self.dry_run,
                    }));
                }
                Err(error) if self.if_not_exists && error.code() == exists => {
                    created.push(serde_json::json!({ "name": outcome.name, "created": false }));
                }
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        if self.format == OutputFormat::Json {
            console::line(&serde_json::Value::from(created).to_string());
        }
        finish(failures, self.format)
    }
}
