//! `strandline group seek`: moves what a group reads next.
//!
//! Everything is looked up before anything is changed, for all groups: when that fails for one
//! partition, nothing is. Nothing is changed without a word of consent, and what is told then is
//! what was committed.

use clap::Args;
use strandline_client::{Client, CommittedOffset, PartitionOutcome};
use strandline_model::OffsetPoint;
use strandline_wire::ErrorCode;

use super::delete_offsets::{missing, named_places};
use super::seek_plan::{Aim, Move, moves, partitions};
use super::{called, explain_group, failures, refuse_active, unknown_group};
use crate::command::names::Names;
use crate::command::place::{TopicPartitions, outside, point};
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;
use crate::table::{Align, Table};

/// Moves what groups read next. Shows what would happen, and does it with --yes.
///
/// With -t or --like a group need not be there yet. When one partition can't be looked up, nothing
/// is moved.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline group seek billing --to start\n  strandline group seek \
                  billing --to @-1h -t orders --yes\n  strandline group seek billing --by -100 -t \
                  orders:0,2 --yes\n  strandline group seek billing-copy --like billing --yes\n  strandline group \
                  seek -r 'test-.*' --to end --dry-run"
)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("aim").required(true).args(["to", "by", "like"]))]
pub(crate) struct Seek {
    // With -t or --like a group need not be there yet.
    #[command(flatten)]
    names: Names,
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

/// What happens to a group.
struct Plan {
    group: String,
    moves: Vec<Move>,
}

impl Seek {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let names = self.names.groups(target, &mut client).await?;
        let aim = self.aim(target, &mut client).await?;
        let mut failed = Vec::new();
        let mut plans = Vec::new();
        for group in names {
            match self.plan(target, &mut client, &group, &aim).await {
                Ok(moves) => plans.push(Plan { group, moves }),
                Err(failure) => failed.push(failure),
            }
        }
        if plans.is_empty() && failed.len() == 1 {
            // With its own exit code.
            return failed.pop().map_or(Ok(()), Err);
        }
        for plan in &mut plans {
            failed.extend(take_unknown(target, &mut plan.moves));
        }
        failed.dedup();
        let does = self.yes && failed.is_empty();
        if does {
            for plan in &mut plans {
                failed.extend(commit(target, &mut client, plan).await);
            }
        } else if self.yes
            && let Some(last) = failed.last_mut()
        {
            last.hints.push("nothing was changed".to_owned());
        }
        self.show(&plans, does);
        let changes = plans.iter().flat_map(|plan| &plan.moves).any(Move::changes);
        if failed.is_empty() && !self.yes && !self.dry_run && changes {
            return Err(Failure::unconfirmed("nothing was changed: this needs a confirmation"));
        }
        finish(failed, self.format)
    }

    /// Where a group's partitions go.
    async fn plan(
        &self,
        target: &Target,
        client: &mut Client,
        group: &str,
        aim: &Aim,
    ) -> Result<Vec<Move>, Failure> {
        let committed = self.committed(target, client, group).await?;
        let partitions = match partitions(client, &committed, aim, &self.topics).await {
            Ok(partitions) => partitions,
            Err(error) => return Err(self.explain_topics(target, client, &error).await),
        };
        if partitions.is_empty() && self.topics.is_empty() {
            let message = format!("group \"{group}\" has committed nothing");
            return Err(
                Failure::usage(message).hint("name the topics that it is to read: -t TOPIC")
            );
        }
        // A count of records, and another group's place, need a place to begin with.
        let (whose, from) = match aim {
            Aim::To(_) => return Ok(moves(client, &committed, partitions, aim).await),
            Aim::By(_) => (group, &committed),
            Aim::Like(other) => (self.like.as_deref().unwrap_or_default(), other),
        };
        if let Some((topic, partitions)) = missing(&self.topics, from).first() {
            let places = named_places(topic, partitions);
            return Err(Failure::usage(format!(
                "group \"{whose}\" has committed nothing of {places}"
            )));
        }
        Ok(moves(client, &committed, partitions, aim).await)
    }

    /// What the group committed. Refuses a group with members: they would not notice the change,
    /// and commit over it.
    async fn committed(
        &self,
        target: &Target,
        client: &mut Client,
        group: &str,
    ) -> Result<Vec<CommittedOffset>, Failure> {
        match client.describe_group(group).await {
            Ok(described) if described.is_active() => {
                let why = "offsets can only be moved while it is empty";
                return Err(refuse_active(&described, why));
            }
            Ok(_) => {}
            Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => {
                let listed = client.list_groups().await.map_err(|error| target.explain(&error))?;
                if listed.iter().any(|known| known.id == group) {
                    return Err(explain_group(target, client, group, &error).await);
                }
                if self.topics.is_empty() && self.like.is_none() {
                    let known = listed.iter().map(|known| known.id.as_str());
                    return Err(unknown_group(group, known)
                        .hint("to make it, name the topics that it is to read: -t TOPIC"));
                }
            }
            Err(error) => return Err(target.explain(&error)),
        }
        client.committed(group).await.map_err(|error| target.explain(&error))
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

    fn show(&self, plans: &[Plan], does: bool) {
        for one in plans.iter().flat_map(|plan| &plan.moves) {
            if let (Some(wished), Ok(after)) = (one.wished, &one.after) {
                outside(&one.topic, one.partition, wished, *after).say(self.format);
            }
        }
        match self.format {
            OutputFormat::Text => {
                console::data(table(plans, does).render().as_bytes());
                for plan in plans {
                    console::say(&summary(plan, does));
                }
            }
            OutputFormat::Json => {
                let one = |plan: &Plan| {
                    let moves = plan.moves.iter().map(|one| json(&plan.group, one, does));
                    moves.collect::<Vec<_>>()
                };
                let all: Vec<_> = plans.iter().flat_map(one).collect();
                console::line(&serde_json::Value::from(all).to_string());
            }
        }
    }
}

/// Takes out what could not be looked up, as failures.
fn take_unknown(target: &Target, moves: &mut Vec<Move>) -> Vec<Failure> {
    let errors = moves.iter().filter_map(|one| one.after.as_ref().err());
    let failed = errors.map(|error| target.explain(error)).collect();
    moves.retain(|one| one.after.is_ok());
    failed
}

/// Commits what changes, and notes what was taken.
async fn commit(target: &Target, client: &mut Client, plan: &mut Plan) -> Vec<Failure> {
    let changed = plan.moves.iter().filter(|one| one.changes());
    let offsets: Vec<(String, i32, i64)> = changed
        .filter_map(|one| {
            let after = one.after.as_ref().ok()?;
            Some((one.topic.clone(), one.partition, *after))
        })
        .collect();
    if offsets.is_empty() {
        return Vec::new();
    }
    match client.commit_offsets(&plan.group, &offsets).await {
        Ok(outcomes) => {
            note(&mut plan.moves, &outcomes);
            failures(target, &plan.group, outcomes)
        }
        Err(error) => vec![explain_group(target, client, &plan.group, &error).await],
    }
}

/// Marks the moves that the coordinator took. What it does not speak of, it did not take.
fn note(moves: &mut [Move], outcomes: &[PartitionOutcome]) {
    for outcome in outcomes.iter().filter(|outcome| outcome.result.is_ok()) {
        let is_it =
            |one: &&mut Move| one.topic == outcome.topic && one.partition == outcome.partition;
        if let Some(one) = moves.iter_mut().find(is_it) {
            one.done = true;
        }
    }
}

/// Where a partition is after all, or would be: what was to be done and was not is where it was.
fn now(one: &Move, does: bool) -> Option<i64> {
    let stays = does && one.changes() && !one.done;
    if stays { one.before } else { one.after.as_ref().ok().copied() }
}

fn summary(plan: &Plan, does: bool) -> String {
    let moves = plan.moves.iter().filter(|one| !does || one.done);
    let (again, skipped) = moves.map(Move::passes).fold((0_u64, 0_u64), |sum, one| {
        (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
    });
    let group = called(&plan.group);
    let (again, skipped) = (counted(again, "record"), counted(skipped, "record"));
    if does {
        format!("{group}: reads {again} again and skips {skipped}")
    } else {
        format!("{group}: would read {again} again and skip {skipped}")
    }
}

fn table(plans: &[Plan], does: bool) -> Table {
    let mut table = Table::new(&[
        ("GROUP", Align::Left),
        ("TOPIC", Align::Left),
        ("PARTITION", Align::Right),
        ("CURRENT-OFFSET", Align::Right),
        ("NEW-OFFSET", Align::Right),
    ]);
    let number = |offset: Option<i64>| offset.map(|offset| offset.to_string()).unwrap_or_default();
    for plan in plans {
        for one in &plan.moves {
            table.row([
                called(&plan.group).to_owned(),
                one.topic.clone(),
                one.partition.to_string(),
                number(one.before),
                number(now(one, does)),
            ]);
        }
    }
    table
}

fn json(group: &str, one: &Move, does: bool) -> serde_json::Value {
    serde_json::json!({
        "group": group,
        "topic": one.topic,
        "partition": one.partition,
        "current_offset": one.before,
        "new_offset": now(one, does),
        "moved": one.done,
    })
}

#[cfg(test)]
mod tests {
    use strandline_client::ClientError;

    use super::*;
    use crate::command::place::Borders;

    fn one(partition: i32, before: Option<i64>, after: i64) -> Move {
        Move {
            topic: "t".to_owned(),
            partition,
            before,
            after: Ok(after),
            wished: None,
            borders: Some(Borders { start: 4, end: 20 }),
            done: false,
        }
    }

    #[test]
    fn sums_count_what_is_read_again_and_what_is_skipped() {
        let moves = vec![
            one(0, Some(10), 4),
            one(1, Some(5), 9),
            one(2, None, 14),
            one(3, Some(7), 7),
            one(4, Some(0), 6),   // four are gone
            one(5, Some(99), 18), // it never read beyond the end
        ];
        assert_eq!(moves.iter().filter(|one| one.changes()).count(), 5);
        let plan = Plan { group: "g".to_owned(), moves };
        assert_eq!(summary(&plan, false), "g: would read 8 records again and skip 6 records");
        assert_eq!(summary(&plan, true), "g: reads 0 records again and skips 0 records");
    }

    #[test]
    fn what_the_coordinator_did_not_take_is_told_as_it_was() {
        let mut moves = vec![one(0, Some(10), 4), one(1, Some(5), 9), one(2, Some(7), 7)];
        let outcome =
            |partition, result| PartitionOutcome { topic: "t".to_owned(), partition, result };
        let refused = ClientError::Broker {
            subject: "t-1".to_owned(),
            code: ErrorCode::UNKNOWN_MEMBER_ID,
            message: None,
        };
        note(&mut moves, &[outcome(0, Ok(())), outcome(1, Err(refused))]);
        let told: Vec<_> = moves.iter().map(|one| (now(one, true), one.done)).collect();
        assert_eq!(told, [(Some(4), true), (Some(5), false), (Some(7), false)]);
        assert_eq!(now(&moves[1], false), Some(9), "the plan");
        let plan = Plan { group: "g".to_owned(), moves };
        assert_eq!(summary(&plan, true), "g: reads 6 records again and skips 0 records");
    }
}
