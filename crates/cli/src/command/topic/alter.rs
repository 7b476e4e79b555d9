//! `strandline topic alter`.

use clap::Args;
use strandline_client::{ConfigChange, ConfigResource};
use strandline_model::config::Scope;

use crate::command::alteration::{Alteration, alter};
use crate::command::assignment::assignment;
use crate::command::names::Names;
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::failure::Failure;

/// Changes configs of topics.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    group = clap::ArgGroup::new("change").required(true).multiple(true).args(["configs", "deleted"]),
    after_help = "Examples:\n  strandline topic alter orders -c retention.ms=1d\n  strandline topic \
                  alter orders clicks --delete-config segment.bytes --dry-run"
)]
pub(crate) struct Alter {
    #[command(flatten)]
    names: Names,
    /// A topic config; sizes and durations may carry units (128MiB, 7d).
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    configs: Vec<String>,
    /// A config that goes back to the broker's default.
    #[arg(id = "deleted", long = "delete-config", value_name = "KEY")]
    deleted: Vec<String>,
    /// Only asks the broker whether it would do it.
    #[arg(long)]
    dry_run: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Alter {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut changes = Vec::new();
        for text in &self.configs {
            let (name, value) = assignment(Scope::Topic, text)?;
            changes.push(ConfigChange { name, value: Some(value) });
        }
        let deleted = self.deleted.iter();
        changes.extend(deleted.map(|name| ConfigChange { name: name.clone(), value: None }));
        let mut client = target.connect().await?;
        let names = self.names.topics(target, &mut client).await?;
        let mut failures = Vec::new();
        let mut alterations: Vec<Alteration> = Vec::new();
        for name in &names {
            let resource = ConfigResource::Topic(name.clone());
            match alter(target, &mut client, &resource, &changes, self.dry_run).await {
                Ok(alteration) => alterations.push(alteration),
                Err(failure) => failures.push(failure),
            }
        }
        Alteration::show(&alterations, self.format);
        finish(failures, self.format)
    }
}
