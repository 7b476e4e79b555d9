//! `strandline topic delete`.

use clap::Args;
use strandline_wire::ErrorCode;

use crate::command::names::Names;
use crate::command::target::{Target, unknown_topic};
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;

/// Deletes topics with all their records.
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:\n  strandline topic delete orders --yes\n  strandline topic delete -r 'test-.*'"
)]
pub(crate) struct Delete {
    #[command(flatten)]
    names: Names,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// Is content with topics that are not there.
    #[arg(long)]
    if_exists: bool,
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
        let names = self.names.topics(target, &mut client).await?;
        if !self.yes {
            return Err(unconfirmed(&names));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let outcomes = client.delete_topics(&names).await;
        let mut failures = Vec::new();
        let mut done = Vec::new();
        let mut missing = Vec::new();
        for outcome in outcomes.map_err(|error| target.explain(&error))? {
            let deleted = outcome.result.is_ok();
            match outcome.result {
                Ok(()) if self.format == OutputFormat::Text => {
                    console::say(&format!("deleted {}", outcome.name));
                }
                Ok(()) => {}
                Err(error) if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
                    missing.push(outcome.name.clone());
                }
                Err(error) => failures.push(target.explain(&error)),
            }
            done.push(serde_json::json!({ "name": outcome.name, "deleted": deleted }));
        }
        if self.format == OutputFormat::Json {
            console::line(&serde_json::Value::from(done).to_string());
        }
        if !self.if_exists && !missing.is_empty() {
            // Only to make the errors clearer: without the list there are no suggestions.
            let cluster = client.cluster(None).await;
            let known = cluster.map(|cluster| cluster.topics).unwrap_or_default();
            for name in missing {
                let known = known.iter().map(|topic| topic.name.as_str());
                failures.push(unknown_topic(&name, known));
            }
        }
        finish(failures, self.format)
    }
}

fn unconfirmed(names: &[String]) -> Failure {
    let names = names.join(" ");
    Failure::usage(format!("deleting {names} needs a confirmation"))
        .hint(format!("strandline topic delete {names} --yes"))
}
