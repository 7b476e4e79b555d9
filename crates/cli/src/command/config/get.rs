//! `strandline config get`.

use clap::Args;
use strandline_client::{ConfigEntry, ConfigResource};

use super::resource::resource;
use crate::command::alteration::{explain_resource, is_set, source_name};
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::{Exit, Failure};
use crate::table::plain;

/// Prints what is configured, and where each value comes from.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline config get topic:orders\n  strandline config get \
                  topic:orders retention.ms\n  strandline config get broker:1 --all --format \
                  json\n\nEach value comes with who set it: topic, group, client-metrics, broker \
                  (this one), cluster (all brokers), static (what the broker was started with: its \
                  file, environment and command line; strandline config show tells which), or \
                  default.")]
pub(crate) struct Get {
    /// Whose: topic:NAME, broker:ID, cluster (all brokers), group:NAME, client-metrics:NAME.
    #[arg(value_parser = resource)]
    resource: ConfigResource,
    /// These keys, whether they were set or not.
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Also keys that have their default.
    #[arg(short, long)]
    all: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Get {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let mut entries = match client.describe_configs(&self.resource).await {
            Ok(entries) => entries,
            Err(error) => {
                return Err(explain_resource(target, &mut client, &self.resource, &error).await);
            }
        };
        let missing: Vec<Failure> = self
            .keys
            .iter()
            .filter(|key| !entries.iter().any(|entry| entry.name == **key))
            .map(|key| self.unknown_key(key, &entries))
            .collect();
        entries.retain(|entry| {
            if self.keys.is_empty() {
                self.all || is_set(entry.source)
            } else {
                self.keys.contains(&entry.name)
            }
        });
        match self.format {
            OutputFormat::Text => entries.iter().for_each(|entry| console::line(&text(entry))),
            OutputFormat::Json => {
                let entries: Vec<_> = entries.iter().map(json).collect();
                console::line(&serde_json::Value::from(entries).to_string());
            }
        }
        finish(missing, self.format)
    }

    fn unknown_key(&self, key: &str, known: &[ConfigEntry]) -> Failure {
        let message = format!("{} has no key {key}", self.resource);
        let failure = Failure::new(Exit::Failed, "unknown_key", message);
        let names = known.iter().map(|entry| entry.name.as_str());
        match strandline_model::config::nearest(key, names) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure,
        }
    }
}

fn text(entry: &ConfigEntry) -> String {
    let value = plain(entry.shown());
    format!("{}={value}  ({})", plain(&entry.name), source_name(entry.source))
}

fn json(entry: &ConfigEntry) -> serde_json::Value {
    serde_json::json!({
        "name": entry.name,
        "value": entry.value,
        "source": source_name(entry.source),
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
    })
}
