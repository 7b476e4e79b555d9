//! `strandline group seek`: moves what a group reads next.
//!
//! Everything is looked up and shown before anything is changed, and nothing is changed without a
//! word of consent.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use strandline_client::{Client, CommittedOffset};
use strandline_model::OffsetPoint;
use strandline_wire::ErrorCode;

use super::seek_plan::{Aim, Move, moves, partitions};
use super::{explain_group, failures, refuse_active, unknown_group};
use crate::command::place::{TopicPartitions, point};
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;
use crate::table::{Align, Table};

/// Moves what a group reads next. Shows what would happen, and does it with --yes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline group seek billing --to start\n  strandline group seek \
                  billing --to @-1h -t orders --yes\n  strandline group seek billing --by -100 -t \
                  orders:0,2 --yes\n  strandline group seek billing-copy --like billing --yes"
)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("aim").required(true).args(["to", "by", "like"]))]
pub(crate) struct Seek {
    /// The group. With -t or --like it may be one that is not there yet.
    #[arg(value_name = "GROUP", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Where to: start, end, 47, +2 (after the start), -3 (before the end), @2026-01-15, @-1h.
    #[arg(long, value_name = "PLACE", value_parser = point, allow_hyphen_values = true)]
    to: Option<OffsetPoint>,
    /// So many records further, or back.
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true)]
    by: Option<i64>,
    /// Where another group is.
    #[arg(long, value_name = "GROUP")]
    like: Option<String>,
    /// Only these topics or partitions: orders, orders:0,2.
    #[arg(short, long = "topic", value_name = "TOPIC[:PARTITIONS]")]
    topics: Vec<TopicPartitions>,
    /// Only shows what would happen.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Seek {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let committed = self.committed(target, &mut client).await?;
        let aim = self.aim(target, &mut client).await?;
        let partitions = partitions(&mut client, &committed, &aim, &self.topics).await;
        let partitions = match partitions {
            Ok(partitions) => partitions,
            Err(error) => return Err(self.explain_topics(target, &mut client, &error).await),
        };
        if partitions.is_empty() {
            return Err(Failure::usage(format!(
                "group \"{}\" has committed nothing there",
                self.name
            ))
            .hint("name the topics that it is to read: -t TOPIC"));
        }
        let mut moves = moves(&mut client, &committed, partitions, &aim).await;
        let mut failed: Vec<Failure> = Vec::new();
        for one in &moves {
            if let Err(error) = &one.after {
                failed.push(target.explain(error));
            }
        }
        moves.retain(|one| one.after.is_ok());
        if self.yes {
            failed.extend(self.commit(target, &mut client, &moves).await?);
        }
        self.show(&moves);
        if failed.is_empty() && !self.yes && !self.dry_run && moves.iter().any(Move::changes) {
            return Err(Failure::usage("nothing was changed: this needs a confirmation")
                .hint("the same again with --yes does it, with --dry-run only shows it"));
        }
        finish(failed, self.format)
    }

    /// What the group committed. Refuses a group with members: they would not notice the change,
    /// and commit over it.
    async fn committed(
        &self,
        target: &Target,
        client: &mut Client,
    ) -> Result<Vec<CommittedOffset>, Failure> {
        match client.describe_group(&self.name).await {
            Ok(group) if group.is_active() => {
                return Err(refuse_active(&group, "offsets can only be moved while it is empty"));
            }
            Ok(_) => {}
            Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => {
                let listed = client.list_groups().await.map_err(|error| target.explain(&error))?;
                if listed.iter().any(|group| group.id == self.name) {
                    return Err(explain_group(target, client, &self.name, &error).await);
                }
                if self.topics.is_empty() && self.like.is_none() {
                    let known = listed.iter().map(|group| group.id.as_str());
                    return Err(unknown_group(&self.name, known)
                        .hint("to make it, name the topics that it is to read: -t TOPIC"));
                }
            }
            Err(error) => return Err(target.explain(&error)),
        }
        client.committed(&self.name).await.map_err(|error| target.explain(&error))
    }

    async fn aim(&self, target: &Target, client: &mut Client) -> Result<Aim, Failure> {
        if let Some(place) = self.to {
            return Ok(Aim::To(place));
        }
        if let Some(count) = self.by {
            return Ok(Aim::By(count));
        }
        let other = self.like.as_deref().unwrap_or_default();
        let committed = client.committed(other).await.map_err(|error| target.explain(&error))?;
        if committed.is_empty() {
            let known = client.list_groups().await.map_err(|error| target.explain(&error))?;
            if known.iter().any(|group| group.id == other) {
                return Err(Failure::usage(format!("group \"{other}\" has committed nothing")));
            }
            return Err(unknown_group(other, known.iter().map(|group| group.id.as_str())));
        }
        Ok(Aim::Like(committed))
    }

    async fn explain_topics(
        &self,
        target: &Target,
        client: &mut Client,
        error: &strandline_client::ClientError,
    ) -> Failure {
        for one in &self.topics {
            let failure = target.explain_topic(client, &one.topic, error).await;
            if failure.code == "unknown_topic" {
                return failure;
            }
        }
        target.explain(error)
    }

    async fn commit(
        &self,
        target: &Target,
        client: &mut Client,
        moves: &[Move],
    ) -> Result<Vec<Failure>, Failure> {
        let changed = moves.iter().filter(|one| one.changes());
        let offsets: Vec<(String, i32, i64)> = changed
            .filter_map(|one| {
                let after = one.after.as_ref().ok()?;
                Some((one.topic.clone(), one.partition, *after))
            })
            .collect();
        if offsets.is_empty() {
            return Ok(Vec::new());
        }
        match client.commit_offsets(&self.name, &offsets).await {
            Ok(outcomes) => Ok(failures(target, &self.name, outcomes)),
            Err(error) => Err(explain_group(target, client, &self.name, &error).await),
        }
    }

    fn show(&self, moves: &[Move]) {
        for one in moves {
            if let (Some(wished), Ok(after)) = (one.wished, &one.after) {
                console::say(&format!(
                    "warning: {}-{} has no offset {wished}; the nearest is {after}",
                    one.topic, one.partition
                ));
            }
        }
        match self.format {
            OutputFormat::Text => {
                console::data(table(moves).render().as_bytes());
                let (again, skipped) = sums(moves);
                console::say(&format!(
                    "{}: {} read {} again and skip {}",
                    self.name,
                    if self.yes { "will" } else { "would" },
                    counted(again, "record"),
                    counted(skipped, "record")
                ));
            }
            OutputFormat::Json => {
                let moves: Vec<_> = moves.iter().map(|one| json(one, self.yes)).collect();
                console::line(&serde_json::Value::from(moves).to_string());
            }
        }
    }
}

/// Offsets that are gone back over, and offsets that are jumped.
fn sums(moves: &[Move]) -> (u64, u64) {
    let (mut again, mut skipped) = (0_u64, 0_u64);
    for one in moves {
        if let (Some(before), Ok(after)) = (one.before, &one.after) {
            again = again.saturating_add_signed((before - after).max(0));
            skipped = skipped.saturating_add_signed((after - before).max(0));
        }
    }
    (again, skipped)
}

fn table(moves: &[Move]) -> Table {
    let mut table = Table::new(&[
        ("TOPIC", Align::Left),
        ("PARTITION", Align::Right),
        ("CURRENT-OFFSET", Align::Right),
        ("NEW-OFFSET", Align::Right),
    ]);
    for one in moves {
        table.row([
            one.topic.clone(),
            one.partition.to_string(),
            one.before.map(|before| before.to_string()).unwrap_or_default(),
            one.after.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]);
    }
    table
}

fn json(one: &Move, done: bool) -> serde_json::Value {
    serde_json::json!({
        "topic": one.topic,
        "partition": one.partition,
        "current_offset": one.before,
        "new_offset": one.after.as_ref().ok(),
        "moved": done && one.changes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_count_what_is_read_again_and_what_is_skipped() {
        let one = |before, after| Move {
            topic: "t".to_owned(),
            partition: 0,
            before,
            after: Ok(after),
            wished: None,
        };
        let moves = [one(Some(10), 4), one(Some(5), 9), one(None, 3), one(Some(7), 7)];
        assert_eq!(sums(&moves), (6, 4));
        assert_eq!(moves.iter().filter(|one| one.changes()).count(), 3);
    }
}
