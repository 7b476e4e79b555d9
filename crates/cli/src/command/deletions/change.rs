//! `strandline deletions pause`, `resume`, `retry` and `purge`.

use clap::Args;
use serde_json::Value;

use super::{act, find, pending};
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;

/// Which deletions: some by their ids, or all.
#[derive(Debug, Args)]
struct Which {
    /// Their ids, or topics' names where these say enough.
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "ID")]
    ids: Vec<String>,
    /// All, those that come later too.
    #[arg(long)]
    all: bool,
}

/// Stops the removal of deleted topics; it stays stopped over restarts of the broker.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline deletions pause orders\n  strandline deletions \
                        pause --all\n\nWhat has not begun can be brought back meanwhile. All are \
                        stopped by the broker's deletion.paused. Asks a Strandline broker's HTTP \
                        side (--http-url).")]
pub(crate) struct Pause {
    #[command(flatten)]
    which: Which,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// Lets the removal of deleted topics go on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline deletions resume orders\n  strandline deletions \
                        resume --all\n\nOne that was paused by itself stays so when all are \
                        resumed. Asks a Strandline broker's HTTP side (--http-url).")]
pub(crate) struct Resume {
    #[command(flatten)]
    which: Which,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// Tries again now what failed, instead of after its pause.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline deletions retry orders\n\nAsks a Strandline broker's \
                        HTTP side (--http-url)."
)]
pub(crate) struct Retry {
    /// Their ids, or topics' names where these say enough.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// Removes deleted topics now instead of after their grace: they can't be brought back.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline deletions purge orders --yes\n\nAsks a Strandline \
                        broker's HTTP side (--http-url)."
)]
pub(crate) struct Purge {
    /// Their ids, or topics' names where these say enough.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Pause {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        self.which.change(target, "pause", "paused", self.format).await
    }
}

impl Resume {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        self.which.change(target, "resume", "resumed", self.format).await
    }
}

impl Retry {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        change(target, &self.ids, "retry", "tries again", self.format).await
    }
}

impl Purge {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        if !self.yes {
            let ids = self.ids.join(" ");
            let message = format!("removing {ids} for good needs a confirmation");
            return Err(
                Failure::usage(message).hint(format!("strandline deletions purge {ids} --yes"))
            );
        }
        change(target, &self.ids, "purge", "grace ended", self.format).await
    }
}

impl Which {
    async fn change(
        self,
        target: &Target,
        action: &str,
        done: &str,
        format: OutputFormat,
    ) -> Result<(), Failure> {
        if !self.all {
            return change(target, &self.ids, action, done, format).await;
        }
        let all = act(target, None, action).await?;
        match format {
            OutputFormat::Json => console::line(&all.to_string()),
            OutputFormat::Text => {
                console::say(&format!("all deletions: {done}"));
                for one in all.as_array().map_or(&[][..], Vec::as_slice) {
                    console::say(&line(one, one["state"].as_str().unwrap_or("")));
                }
            }
        }
        Ok(())
    }
}

async fn change(
    target: &Target,
    ids: &[String],
    action: &str,
    done: &str,
    format: OutputFormat,
) -> Result<(), Failure> {
    let all = pending(target).await?;
    let (mut failures, mut changed) = (Vec::new(), Vec::new());
    for meant in ids {
        let acted = match find(&all, meant) {
            Ok(one) => {
                let id = one["id"].as_str().unwrap_or_default();
                act(target, Some(id), action).await.map(|now| (one, now))
            }
            Err(failure) => Err(failure),
        };
        match acted {
            Ok((before, now)) => {
                // Nothing is left of one that is not pending any more.
                let one = if now.is_null() { before.clone() } else { now };
                if format == OutputFormat::Text {
                    console::say(&line(&one, done));
                }
                changed.push(one);
            }
            Err(failure) => failures.push(failure),
        }
    }
    if format == OutputFormat::Json {
        console::line(&Value::from(changed).to_string());
    }
    finish(failures, format)
}

/// `orders (id A): paused`, with a word on what still stops it.
fn line(one: &Value, done: &str) -> String {
    let text = |field: &str| one[field].as_str().unwrap_or("").to_owned();
    let still = match (text("state").as_str(), done) {
        ("paused", "paused") => "",
        ("paused", _) => "; it is paused, alone or with all",
        _ => "",
    };
    format!("{} (id {}): {done}{still}", text("topic"), text("id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stops_a_deletion_still_is_told() {
        let one = |state: &str| serde_json::json!({"id": "A", "topic": "t", "state": state});
        assert_eq!(line(&one("paused"), "paused"), "t (id A): paused");
        assert_eq!(line(&one("running"), "resumed"), "t (id A): resumed");
        let still = "t (id A): resumed; it is paused, alone or with all";
        assert_eq!(line(&one("paused"), "resumed"), still);
    }
}
