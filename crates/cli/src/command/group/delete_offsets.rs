//! `strandline group delete-offsets`.

use std::collections::BTreeSet;

use clap::Args;
use strandline_client::{Client, CommittedOffset, Group};
use strandline_wire::ErrorCode;

use super::{called, explain_group, failures, subscribed, unknown_group};
use crate::command::error_word::error_word;
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
        let missing = missing(&self.topics, &committed);
        if !missing.is_empty() {
            let described = match client.describe_group(group).await {
                Ok(described) => Some(described),
                // A group that only has offsets.
                Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => None,
                Err(error) => return Err(explain_group(target, client, group, &error).await),
            };
            let is_read = |topic: &str| described.as_ref().is_some_and(|group| reads(group, topic));
            let mut read = BTreeSet::new();
            for (topic, partitions) in missing {
                if is_read(&topic) {
                    read.insert(topic);
                } else {
                    failed.push(no_offsets(group, &topic, &partitions));
                }
            }
            // Of a topic of which something is to be forgotten the same is told with that.
            read.retain(|topic| !committed.iter().any(|one| is_asked(one) && one.topic == *topic));
            failed.extend(read.iter().map(|topic| subscribed_to(group, topic)));
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
                    failed.push(subscribed_to(group, topic));
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
                        let name = called(name);
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

/// What is asked for and was not committed: topics with their partitions, or without any where the
/// whole topic was meant and nothing of it is there.
pub(super) fn missing(
    asked: &[TopicPartitions],
    committed: &[CommittedOffset],
) -> Vec<(String, Vec<i32>)> {
    let mut missing: Vec<(String, Vec<i32>)> = Vec::new();
    for one in asked {
        if one.partitions.is_empty() {
            if !committed.iter().any(|offset| offset.topic == one.topic) {
                missing.push((one.topic.clone(), Vec::new()));
            }
            continue;
        }
        let has = |partition: i32| {
            committed.iter().any(|at| at.topic == one.topic && at.partition == partition)
        };
        let partitions = one.partitions.iter().copied();
        let partitions: Vec<i32> = partitions.filter(|partition| !has(*partition)).collect();
        if !partitions.is_empty() {
            missing.push((one.topic.clone(), partitions));
        }
    }
    missing
}

/// `orders`, or `orders-3, orders-4`.
pub(super) fn named_places(topic: &str, partitions: &[i32]) -> String {
    if partitions.is_empty() {
        return topic.to_owned();
    }
    let places = partitions.iter().map(|partition| format!("{topic}-{partition}"));
    places.collect::<Vec<_>>().join(", ")
}

fn no_offsets(group: &str, topic: &str, partitions: &[i32]) -> Failure {
    let what = if partitions.len() == 1 { "no offset" } else { "no offsets" };
    let message = format!("{}: has {what} of {}", called(group), named_places(topic, partitions));
    Failure::new(Exit::Failed, "no_offsets", message)
        .hint(format!("what it has: strandline group describe {}", quoted(group)))
}

/// What a broker says of a topic that members of the group read.
fn subscribed_to(group: &str, topic: &str) -> Failure {
    let code = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    let message = format!("{}: {code} for {topic}", called(group));
    let failure = Failure::new(Exit::Failed, error_word(code), message).kafka_code(code.get());
    subscribed(failure, group)
}

/// Whether a member of the group has partitions of the topic.
fn reads(group: &Group, topic: &str) -> bool {
    group.members.iter().flat_map(|member| &member.assigned).any(|(name, _)| name == topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_committed_is_named_partition_by_partition() {
        let at = |topic: &str, partition| CommittedOffset {
            topic: topic.to_owned(),
            partition,
            offset: 1,
            metadata: String::new(),
        };
        let committed = [at("orders", 5), at("orders", 6)];
        let told = |asked: &[&str]| {
            let asked: Vec<TopicPartitions> =
                asked.iter().map(|text| text.parse().expect("a topic")).collect();
            let missing = missing(&asked, &committed);
            let told = missing.iter().map(|(topic, them)| no_offsets("coop", topic, them).message);
            told.collect::<Vec<_>>()
        };
        assert_eq!(told(&["orders"]), [""; 0]);
        assert_eq!(told(&["orders:6,5"]), [""; 0]);
        assert_eq!(told(&["orders:3"]), ["coop: has no offset of orders-3"]);
        assert_eq!(told(&["orders:3,5,4"]), ["coop: has no offsets of orders-3, orders-4"]);
        assert_eq!(told(&["clicks", "orders"]), ["coop: has no offsets of clicks"]);
        assert!(no_offsets("", "t", &[]).message.starts_with("\"\": has no offsets of t"));
    }

    #[test]
    fn a_topic_that_is_read_is_refused_in_kafkas_word() {
        let failure = subscribed_to("coop", "orders");
        assert_eq!(failure.message, "coop: GROUP_SUBSCRIBED_TO_TOPIC for orders");
        assert_eq!(
            (failure.code.as_ref(), failure.kafka_code),
            ("group_subscribed_to_topic", Some(86))
        );
    }
}
