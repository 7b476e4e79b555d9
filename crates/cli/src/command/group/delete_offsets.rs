//! `strandline group delete-offsets`.

use clap::Args;
use strandline_client::{Client, CommittedOffset, Group};
use strandline_wire::ErrorCode;

use super::{explain_group, failures, subscribed, unknown_group};
use crate::command::names::Names;
use crate::command::place::TopicPartitions;
use crate::command::quote::{all_quoted, quoted};
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::counted;

/// Forgets what groups committed for topics.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline group delete-offsets billing -t orders -t clicks:0,2 \
                  --yes\n  strandline group delete-offsets -r '.*' -t old-topic --dry-run"
)]
pub(crate) struct DeleteOffsets {
    #[command(flatten)]
    names: Names,
    /// The topics or partitions: orders, orders:0,2. Members of the group must not read them.
    #[arg(short, long = "topic", required = true, value_name = "TOPIC[:PARTITIONS]")]
    topics: Vec<TopicPartitions>,
    /// Only shows what would be forgotten.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// A partition that a group has committed for.
struct Forgotten {
    group: String,
    topic: String,
    partition: i32,
    done: bool,
}

impl DeleteOffsets {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let unconfirmed = |names: &[String]| {
            let named = all_quoted(names);
            Failure::unconfirmed(format!("forgetting offsets of {named} needs a confirmation"))
        };
        let asks = !self.yes && !self.dry_run;
        if asks && let Some(names) = self.names.plain() {
            return Err(unconfirmed(names));
        }
        let mut client = target.connect().await?;
        let names = self.names.groups(target, &mut client).await?;
        if asks {
            return Err(unconfirmed(&names));
        }
        let mut failed = Vec::new();
        let mut all = Vec::new();
        for name in &names {
            match self.forget(target, &mut client, name, &mut failed).await {
                Ok(forgotten) => all.extend(forgotten),
                Err(failure) => failed.push(failure),
            }
        }
        self.show(&names, &all);
        finish(failed, self.format)
    }

    /// Forgets what one group committed, or only looks. What can't be done is put to `failed`.
    async fn forget(
        &self,
        target: &Target,
        client: &mut Client,
        group: &str,
        failed: &mut Vec<Failure>,
    ) -> Result<Vec<Forgotten>, Failure> {
        let committed = client.committed(group).await.map_err(|error| target.explain(&error))?;
        let is_asked = |one: &CommittedOffset| {
            self.topics.iter().any(|asked| asked.includes(&one.topic, one.partition))
        };
        if !committed.iter().any(is_asked) {
            let known = client.list_groups().await.map_err(|error| target.explain(&error))?;
            if !known.iter().any(|known| known.id == group) {
                return Err(unknown_group(group, known.iter().map(|known| known.id.as_str())));
            }
        }
        for asked in &self.topics {
            if !committed.iter().any(|one| asked.includes(&one.topic, one.partition)) {
                let message = format!("{group}: has no offsets of {}", asked.topic);
                let hint = format!("what it has: strandline group describe {}", quoted(group));
                failed.push(Failure::new(Exit::Failed, "no_offsets", message).hint(hint));
            }
        }
        // What was committed is forgotten even when the topic itself is gone.
        let places = committed.into_iter().filter(is_asked);
        let places: Vec<(String, i32)> =
            places.map(|offset| (offset.topic, offset.partition)).collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        if self.dry_run {
            return Ok(self.try_out(target, client, group, places, failed).await);
        }
        let outcomes = match client.delete_offsets(group, &places).await {
            Ok(outcomes) => outcomes,
            Err(error) => return Err(explain_group(target, client, group, &error).await),
        };
        let done = outcomes.iter().map(|outcome| Forgotten {
            group: group.to_owned(),
            topic: outcome.topic.clone(),
            partition: outcome.partition,
            done: outcome.result.is_ok(),
        });
        let done = done.collect();
        failed.extend(failures(target, group, outcomes));
        Ok(done)
    }

    /// What would be forgotten: not what members read.
    async fn try_out(
        &self,
        target: &Target,
        client: &mut Client,
        group: &str,
        mut places: Vec<(String, i32)>,
        failed: &mut Vec<Failure>,
    ) -> Vec<Forgotten> {
        match client.describe_group(group).await {
            Ok(described) => {
                let mut read: Vec<&String> = places
                    .iter()
                    .map(|(topic, _)| topic)
                    .filter(|topic| reads(&described, topic))
                    .collect();
                read.dedup();
                let read: Vec<String> = read.into_iter().cloned().collect();
                for topic in &read {
                    let message = format!("{group}: GROUP_SUBSCRIBED_TO_TOPIC for {topic}");
                    let failure = Failure::new(Exit::Failed, "GROUP_SUBSCRIBED_TO_TOPIC", message)
                        .kafka_code(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC.get());
                    failed.push(subscribed(failure, group));
                }
                places.retain(|(topic, _)| !read.contains(topic));
            }
            // A group that only has offsets.
            Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => {}
            Err(error) => {
                failed.push(explain_group(target, client, group, &error).await);
                places.clear();
            }
        }
        let would = places.into_iter().map(|(topic, partition)| Forgotten {
            group: group.to_owned(),
            topic,
            partition,
            done: false,
        });
        would.collect()
    }

    fn show(&self, names: &[String], all: &[Forgotten]) {
        match self.format {
            OutputFormat::Text => {
                for name in names {
                    let counts =
                        |one: &&Forgotten| one.group == *name && (one.done || self.dry_run);
                    let count = all.iter().filter(counts).count();
                    if count > 0 {
                        let forgot = if self.dry_run { "would forget" } else { "forgot" };
                        let partitions = counted(count as u64, "partition");
                        console::say(&format!("{name}: {forgot} the offsets of {partitions}"));
                    }
                }
            }
            OutputFormat::Json => {
                let one = |one: &Forgotten| {
                    serde_json::json!({
                        "group": one.group,
                        "topic": one.topic,
                        "partition": one.partition,
                        "deleted": one.done,
                    })
                };
                let all: Vec<_> = all.iter().map(one).collect();
                console::line(&serde_json::Value::from(all).to_string());
            }
        }
    }
}

/// Whether a member of the group has partitions of the topic.
fn reads(group: &Group, topic: &str) -> bool {
    group.members.iter().flat_map(|member| &member.assigned).any(|(name, _)| name == topic)
}
