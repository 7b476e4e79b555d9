//! `strandline group delete`.

use clap::Args;
use strandline_client::{Client, ClientError};

use super::{called, explain_group, refuse_active};
use crate::command::names::{Names, unconfirmed};
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;

/// Deletes groups that have no members, with all that they committed.
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:\n  strandline group delete billing --yes\n  strandline group delete -r 'test-.*' --dry-run"
)]
pub(crate) struct Delete {
    #[command(flatten)]
    names: Names,
    /// Only shows what would be deleted.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Delete {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let unconfirmed_of =
            |names: &[String]| unconfirmed("deleting", "strandline group delete", names);
        let asks = !self.yes && !self.dry_run;
        if asks && let Some(names) = self.names.plain() {
            return Err(unconfirmed_of(names));
        }
        let mut client = target.connect().await?;
        let names = self.names.groups(target, &mut client).await?;
        if asks {
            return Err(unconfirmed_of(&names));
        }
        if self.dry_run {
            return self.try_out(target, &mut client, &names).await;
        }
        let mut failures = Vec::new();
        let mut done = Vec::new();
        for name in &names {
            let outcome = client.delete_group(name).await;
            done.push(serde_json::json!({ "group": name, "deleted": outcome.is_ok() }));
            match outcome {
                Ok(()) if self.format == OutputFormat::Text => {
                    console::say(&format!("deleted {}", called(name)));
                }
                Ok(()) => {}
                Err(error) => {
                    failures.push(explain_group(target, &mut client, name, &error).await);
                }
            }
        }
        if self.format == OutputFormat::Json {
            console::line(&serde_json::Value::from(done).to_string());
        }
        finish(failures, self.format)
    }

    /// Tells what would be deleted, and what would be refused.
    async fn try_out(
        &self,
        target: &Target,
        client: &mut Client,
        names: &[String],
    ) -> Result<(), Failure> {
        let mut failures = Vec::new();
        let mut found = Vec::new();
        for name in names {
            match offsets_that_would_go(client, name).await {
                Ok(Ok(count)) => {
                    found.push(serde_json::json!({ "group": name, "deleted": false }));
                    if self.format == OutputFormat::Text {
                        let count = counted(count as u64, "partition");
                        let name = called(name);
                        console::say(&format!("would delete {name} (offsets of {count})"));
                    }
                }
                Ok(Err(failure)) => failures.push(failure),
                Err(error) => failures.push(explain_group(target, client, name, &error).await),
            }
        }
        if self.format == OutputFormat::Json {
            console::line(&serde_json::Value::from(found).to_string());
        }
        finish(failures, self.format)
    }
}

/// How many partitions a group has committed; a refusal when it has members.
async fn offsets_that_would_go(
    client: &mut Client,
    name: &str,
) -> Result<Result<usize, Failure>, ClientError> {
    let group = client.describe_group(name).await?;
    if group.is_active() {
        return Ok(Err(refuse_active(&group, "it can only be changed while it is empty")));
    }
    Ok(Ok(client.committed(name).await?.len()))
}
