//! `strandline group delete`.

use clap::Args;

use super::explain_group;
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;

/// Deletes groups with all that they committed.
#[derive(Debug, Args)]
#[command(visible_alias = "rm", after_help = "Example:\n  strandline group delete billing --yes")]
pub(crate) struct Delete {
    /// The groups. They must have no members.
    #[arg(required = true, value_name = "GROUP")]
    names: Vec<String>,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Delete {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        if !self.yes {
            let names = self.names.join(" ");
            return Err(Failure::usage(format!("deleting {names} needs a confirmation"))
                .hint(format!("strandline group delete {names} --yes")));
        }
        let mut client = target.connect().await?;
        let mut failures = Vec::new();
        let mut done = Vec::new();
        for name in &self.names {
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
