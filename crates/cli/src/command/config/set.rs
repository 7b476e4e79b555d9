//! `strandline config set`.

use clap::Args;
use strandline_client::{ConfigChange, ConfigResource};

use super::resource::resource;
use crate::command::OutputFormat;
use crate::command::alteration::{Alteration, alter, scope_of};
use crate::command::assignment::assignment;
use crate::command::target::Target;
use crate::failure::Failure;

/// Sets configs of what runs: all that are named, or none.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline config set topic:orders retention.ms=1d\n  strandline \
                  config set cluster log.retention.ms=7d --dry-run\n  strandline config set \
                  group:billing consumer.session.timeout.ms=50s"
)]
pub(crate) struct Set {
    /// Whose: topic:NAME, broker:ID, cluster (all brokers), group:NAME, client-metrics:NAME.
    #[arg(value_parser = resource)]
    resource: ConfigResource,
    /// The keys and their values; sizes and durations may carry units (128MiB, 7d).
    #[arg(required = true, value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Only asks the broker whether it would do it.
    #[arg(long)]
    dry_run: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Set {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut changes = Vec::new();
        for text in &self.assignments {
            let (name, value) = assignment(scope_of(&self.resource), text)?;
            changes.push(ConfigChange { name, value: Some(value) });
        }
        let mut client = target.connect().await?;
        let done = alter(target, &mut client, &self.resource, &changes, self.dry_run).await?;
        Alteration::show(&[done], self.format);
        Ok(())
    }
}
