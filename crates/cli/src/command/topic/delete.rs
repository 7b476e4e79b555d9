//! `strandline topic delete`.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use strandline_client::Client;
use strandline_model::TopicId;
use strandline_wire::ErrorCode;
use tokio::time::timeout;

use crate::command::deletions::pending;
use crate::command::names::{Names, unconfirmed};
use crate::command::target::{Target, unknown_topic};
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::{between, counted};

/// How long a question may take that only tells of the way back.
const ASK_TIME_MAX: Duration = Duration::from_secs(1);

/// Deletes topics with all their records.
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:\n  strandline topic delete orders --yes\n  strandline topic delete -r 'test-.*' --dry-run"
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
    /// Is content with topics that are not there.
    #[arg(long)]
    if_exists: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Delete {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let unconfirmed_of =
            |names: &[String]| unconfirmed("deleting", "strandline topic delete", names);
        let asks = !self.yes && !self.dry_run;
        if asks && let Some(names) = self.names.plain_topics()? {
            return Err(unconfirmed_of(names));
        }
        let mut client = target.connect().await?;
        let names = self.names.topics(target, &mut client).await?;
        if asks {
            return Err(unconfirmed_of(&names));
        }
        if self.dry_run {
            return self.try_out(target, &mut client, &names).await;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let outcomes = client.delete_topics(&names).await;
        let mut failures = Vec::new();
        let mut done = Vec::new();
        let mut deleted = Vec::new();
        let mut missing = Vec::new();
        for outcome in outcomes.map_err(|error| target.explain(&error))? {
            let id = outcome.result.as_ref().ok().copied();
            let (name, gone) = (outcome.name.clone(), id.is_some());
            match outcome.result {
                Ok(id) => deleted.push((outcome.name, id)),
                Err(error) if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
                    missing.push(outcome.name);
                }
                Err(error) => failures.push(target.explain(&error)),
            }
            let id = id.filter(|id| *id != TopicId::ZERO).map(|id| id.to_string());
            done.push(serde_json::json!({ "name": name, "deleted": gone, "id": id }));
        }
        match self.format {
            OutputFormat::Json => console::line(&Value::from(done).to_string()),
            OutputFormat::Text => tell(target, &deleted).await,
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

    /// Tells what would be deleted.
    async fn try_out(
        &self,
        target: &Target,
        client: &mut Client,
        names: &[String],
    ) -> Result<(), Failure> {
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        let mut found = Vec::new();
        for name in names {
            match cluster.topics.iter().find(|topic| topic.name == *name) {
                Some(topic) => {
                    let id = (topic.id != TopicId::ZERO).then(|| topic.id.to_string());
                    found.push(serde_json::json!({ "name": name, "deleted": false, "id": id }));
                    if self.format == OutputFormat::Text {
                        let partitions = counted(topic.partitions.len() as u64, "partition");
                        console::say(&format!("would delete {name} ({partitions})"));
                    }
                }
                None if self.if_exists => {}
                None => {
                    let known = cluster.topics.iter().map(|topic| topic.name.as_str());
                    failures.push(unknown_topic(name, known));
                }
            }
        }
        if self.format == OutputFormat::Json {
            console::line(&Value::from(found).to_string());
        }
        finish(failures, self.format)
    }
}

/// Tells what was deleted. A Strandline broker is asked how long there is a way back; what is no such
/// broker, or can't be asked, has none to tell of.
async fn tell(target: &Target, deleted: &[(String, TopicId)]) {
    if deleted.is_empty() {
        return;
    }
    let asked = timeout(ASK_TIME_MAX, pending(target)).await;
    let all = asked.ok().and_then(Result::ok).unwrap_or_default();
    for (name, id) in deleted {
        let of_it = all.iter().find(|one| one["id"] == id.to_string());
        console::say(&line(name, *id, of_it));
    }
}

fn line(name: &str, id: TopicId, pending: Option<&Value>) -> String {
    let text = match id {
        TopicId::ZERO => return format!("deleted {name}"),
        id => format!("deleted {name} (id {id})"),
    };
    let Some(pending) = pending.filter(|one| one["can_undelete"] == true) else { return text };
    let bytes = counted(pending["bytes"].as_u64().unwrap_or(0), "byte");
    let after = between(&pending["deleted_at"], &pending["grace_until"]).unwrap_or_default();
    format!("{text}; {bytes} go after {after} (undo: strandline topic undelete {id})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_told_where_there_is_one() {
        let id = TopicId::from_bytes([7; 16]);
        let pending = |can_undelete: bool| {
            serde_json::json!({
                "can_undelete": can_undelete, "bytes": 300, "deleted_at": "2026-11-30T12:00:00Z",
                "grace_until": "2026-11-30T12:01:00Z",
            })
        };
        let way_back = format!(
            "deleted t (id {id}); 300 bytes go after 1m (undo: strandline topic undelete {id})"
        );
        assert_eq!(line("t", id, Some(&pending(true))), way_back);
        assert_eq!(line("t", id, Some(&pending(false))), format!("deleted t (id {id})"));
        assert_eq!(line("t", id, None), format!("deleted t (id {id})"));
        assert_eq!(line("t", TopicId::ZERO, None), "deleted t", "a broker of old");
    }
}
