//! `strandline group delete`.

use clap::Args;

use super::explain_group;
use crate::command::names::Names;
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;

/// Deletes groups that have no members, with all that they committed.
#[derive(Debug, Args)]
#[command(visible_alias = "rm", after_help = "Example:\n  strandline group delete billing --yes")]
pub(crate) struct Delete {
    #[command(flatten)]
    names: Names,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Delete {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        if !self.yes
            && let Some(names) = self.names.plain()
        {
            return Err(unconfirmed(names));
        }
        let mut client = target.connect().await?;
        let names = self.names.groups(target, &mut client).await?;
        if !self.yes {
            return Err(unconfirmed(&names));
        }
        let mut failures = Vec::new();
        let mut done = Vec::new();
        for name in &names {
            let outcome = client.delete_group(name).await;
            done.push(serde_json::json!({ "group": name, "deleted": outcome.is_ok() }));
            match outcome {
                Ok(()) if self.format == OutputFormat::Text => {
                    console::say(&format!("deleted {name}"));
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
}

fn unconfirmed(names: &[String]) -> Failure {
    let names = names.join(" ");
    Failure::usage(format!("deleting {names} needs a confirmation"))
        .hint(format!("strandline group delete {names} --yes"))
}
