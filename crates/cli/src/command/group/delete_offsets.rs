//! `strandline group delete-offsets`.

use clap::Args;
use strandline_client::CommittedOffset;

use super::{explain_group, failures};
use crate::command::place::TopicPartitions;
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::counted;

/// Forgets what a group committed for topics.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  strandline group delete-offsets billing -t orders -t clicks:0,2 --yes"
)]
pub(crate) struct DeleteOffsets {
    /// The group.
    #[arg(value_name = "GROUP")]
    name: String,
    /// The topics or partitions: orders, orders:0,2. The group's members must not read them.
    #[arg(short, long = "topic", required = true, value_name = "TOPIC[:PARTITIONS]")]
    topics: Vec<TopicPartitions>,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl DeleteOffsets {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        if !self.yes {
            return Err(Failure::usage(format!(
                "forgetting offsets of {} needs a confirmation",
                self.name
            ))
            .hint("the same again with --yes does it"));
        }
        let mut client = target.connect().await?;
        let committed = client.committed(&self.name).await;
        let committed = committed.map_err(|error| target.explain(&error))?;
        let mut failed: Vec<Failure> = Vec::new();
        for asked in &self.topics {
            let is_asked = |one: &CommittedOffset| asked.includes(&one.topic, one.partition);
            if !committed.iter().any(is_asked) {
                let message = format!("{}: has no offsets of {}", self.name, asked.topic);
                let failure = Failure::new(Exit::Failed, "no_offsets", message);
                let hint = format!("what it has: strandline group describe {}", self.name);
                failed.push(failure.hint(hint));
            }
        }
        // What was committed is forgotten even when the topic itself is gone.
        let places = committed.into_iter().map(|offset| (offset.topic, offset.partition));
        let partitions: Vec<(String, i32)> = places
            .filter(|(topic, partition)| {
                self.topics.iter().any(|one| one.includes(topic, *partition))
            })
            .collect();
        if partitions.is_empty() {
            let known = client.list_groups().await.map_err(|error| target.explain(&error))?;
            if !known.iter().any(|group| group.id == self.name) {
                let known = known.iter().map(|group| group.id.as_str());
                return Err(super::unknown_group(&self.name, known));
            }
            return finish(failed, self.format);
        }
        let outcomes = match client.delete_offsets(&self.name, &partitions).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                return Err(explain_group(target, &mut client, &self.name, &error).await);
            }
        };
        let done: Vec<(String, i32, bool)> = outcomes
            .iter()
            .map(|outcome| (outcome.topic.clone(), outcome.partition, outcome.result.is_ok()))
            .collect();
        self.show(&done);
        failed.extend(failures(target, &self.name, outcomes));
        finish(failed, self.format)
    }

    fn show(&self, outcomes: &[(String, i32, bool)]) {
        match self.format {
            OutputFormat::Text => {
                let done = outcomes.iter().filter(|(_, _, deleted)| *deleted).count();
                if done == 0 {
                    return;
                }
                let done = counted(done as u64, "partition");
                console::say(&format!("{}: forgot the offsets of {done}", self.name));
            }
            OutputFormat::Json => {
                let outcomes = outcomes.iter().map(|(topic, partition, deleted)| {
                    serde_json::json!({"topic": topic, "partition": partition, "deleted": deleted})
                });
                let outcomes: Vec<_> = outcomes.collect();
                console::line(&serde_json::Value::from(outcomes).to_string());
            }
        }
    }
}
