//! `strandline config unset`.

use clap::Args;
use strandline_client::{ConfigChange, ConfigResource};

use super::resource::resource;
use crate::command::OutputFormat;
use crate::command::alteration::{Alteration, alter};
use crate::command::target::Target;
use crate::failure::Failure;

/// Takes configs of what runs away, so that the next source counts again: the broker's, the default.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  strandline config unset topic:orders retention.ms segment.bytes"
)]
pub(crate) struct Unset {
    /// Whose: topic:NAME, broker:ID, cluster (all brokers), group:NAME, client-metrics:NAME.
    #[arg(value_parser = resource)]
    resource: ConfigResource,
    /// The keys.
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Only asks the broker whether it would do it.
    #[arg(long)]
    dry_run: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Unset {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let change = |name: &String| ConfigChange { name: name.clone(), value: None };
        let changes: Vec<ConfigChange> = self.keys.iter().map(change).collect();
        let mut client = target.connect().await?;
        let done = alter(target, &mut client, &self.resource, &changes, self.dry_run).await?;
        Alteration::show(&[done], self.format);
        Ok(())
    }
}
