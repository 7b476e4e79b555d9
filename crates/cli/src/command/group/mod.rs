//! `strandline group`: groups of consumers, of any Kafka cluster.

mod delete;
mod delete_offsets;
mod describe;
mod lag;
mod list;
mod rebalance;
mod seek;
mod seek_plan;

use std::collections::BTreeMap;

use clap::Subcommand;
use strandline_client::{Client, ClientError, Group as Described, PartitionOutcome};
use strandline_model::config::nearest;
use strandline_wire::ErrorCode;

use super::OutputFormat;
use super::quote::quoted;
use super::target::Target;
use crate::failure::{Exit, Failure};
use crate::format::counted;

/// Members that a refusal names. Others are counted.
const MEMBERS_NAMED_MAX: usize = 3;

/// Lists, describes, moves and deletes groups of consumers.
#[derive(Debug, Subcommand)]
pub(crate) enum Group {
    List(list::List),
    Describe(describe::Describe),
    Seek(seek::Seek),
    Delete(delete::Delete),
    DeleteOffsets(delete_offsets::DeleteOffsets),
}

impl Group {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::List(list) => list.format,
            Self::Describe(describe) => describe.format,
            Self::Seek(seek) => seek.format,
            Self::Delete(delete) => delete.format,
            Self::DeleteOffsets(delete) => delete.format,
        }
    }

    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(target).await,
            Self::Describe(describe) => describe.run(target).await,
            Self::Seek(seek) => seek.run(target).await,
            Self::Delete(delete) => delete.run(target).await,
            Self::DeleteOffsets(delete) => delete.run(target).await,
        }
    }
}

/// A failure about a group: when there is none of that id, with the one that may be meant.
async fn explain_group(
    target: &Target,
    client: &mut Client,
    id: &str,
    error: &ClientError,
) -> Failure {
    match error.code() {
        Some(ErrorCode::NON_EMPTY_GROUP) => match client.describe_group(id).await {
            Ok(group) => refuse_active(&group, "it can only be changed while it is empty"),
            Err(_) => named(target.explain(error), id),
        },
        Some(ErrorCode::GROUP_ID_NOT_FOUND) => {
            // Only to make the error clearer: without the list there is no suggestion.
            let known = client.list_groups().await.unwrap_or_default();
            match known.iter().find(|group| group.id == id) {
                Some(group) => target.explain(error).hint(format!(
                    "it is a {} group, which this command does not know",
                    group.kind
                )),
                None => unknown_group(id, known.iter().map(|group| group.id.as_str())),
            }
        }
        _ => named(target.explain(error), id),
    }
}

/// The failure for a group that is not there.
fn unknown_group<'a>(id: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let meant = nearest(id, known);
    let meant = meant.map(|near| format!("did you mean \"{near}\"?   ")).unwrap_or_default();
    Failure::new(Exit::Failed, "unknown_group", format!("group \"{id}\" does not exist"))
        .kafka_code(ErrorCode::GROUP_ID_NOT_FOUND.get())
        .hint(format!("{meant}list: strandline group list"))
}

/// The failure for a change that members of the group would not notice, or undo.
fn refuse_active(group: &Described, why: &str) -> Failure {
    let count = group.members.len();
    let who = match count {
        0 => format!("is {}", group.state),
        count => format!("has {}", counted(count as u64, "live member")),
    };
    let failure = Failure::new(
        Exit::Failed,
        "non_empty_group",
        format!("group \"{}\" {who}; {why} (NON_EMPTY_GROUP)", group.id),
    )
    .kafka_code(ErrorCode::NON_EMPTY_GROUP.get());
    if count == 0 {
        return failure.hint("its members have just left or are joining; try again in a moment");
    }
    let named = group.members.iter().take(MEMBERS_NAMED_MAX);
    let mut names: Vec<String> =
        named.map(|member| format!("{}@{}", member.client_id, host(&member.host))).collect();
    if count > MEMBERS_NAMED_MAX {
        names.push(format!("{} more", count - MEMBERS_NAMED_MAX));
    }
    failure.hint(format!("members: {}   stop them first", names.join(", ")))
}

/// A group's id as people see it: one that is empty, as some old clients have, must not be a blank.
pub(super) fn called(id: &str) -> &str {
    if id.is_empty() { "\"\"" } else { id }
}

/// A member's address as people write it: Kafka puts a slash in front.
fn host(host: &str) -> &str {
    host.strip_prefix('/').unwrap_or(host)
}

/// What partitions of a request came to, as failures with the group's name: one for each topic and
/// reason, however many partitions it is about.
fn failures(target: &Target, group: &str, outcomes: Vec<PartitionOutcome>) -> Vec<Failure> {
    let mut by_reason: BTreeMap<(String, String), (Failure, Vec<i32>)> = BTreeMap::new();
    for outcome in outcomes {
        let Err(error) = outcome.result else { continue };
        let failure = explain_partition(target, group, &error);
        let same = by_reason.entry((outcome.topic, failure.code.to_string()));
        let (_, partitions) = same.or_insert_with(|| (failure, Vec::new()));
        partitions.push(outcome.partition);
    }
    let told = by_reason.into_values().map(|(mut failure, partitions)| {
        if let [_, others @ ..] = partitions.as_slice()
            && !others.is_empty()
        {
            let others: Vec<String> = others.iter().map(ToString::to_string).collect();
            failure.message += &format!("; the same for partitions {}", others.join(", "));
        }
        failure
    });
    told.collect()
}

fn explain_partition(target: &Target, group: &str, error: &ClientError) -> Failure {
    let failure = named(target.explain(error), group);
    match error.code() {
        Some(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC) => subscribed(failure, group),
        // What the coordinator says to a stranger once the group has members.
        Some(
            ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::REBALANCE_IN_PROGRESS
            | ErrorCode::STALE_MEMBER_EPOCH,
        ) => {
            let group = called(group);
            failure.hint(format!("{group} has got members meanwhile; stop them and try again"))
        }
        _ => failure,
    }
}

/// The same failure with the one way on that there is.
fn subscribed(mut failure: Failure, group: &str) -> Failure {
    let who = quoted(group);
    failure.hints = vec![format!(
        "members of {} read this topic; stop them first   who: strandline group describe {who}",
        called(group)
    )];
    failure
}

/// The same failure with hints that can be typed as they are.
fn named(mut failure: Failure, group: &str) -> Failure {
    for hint in &mut failure.hints {
        *hint = hint.replace(" GROUP", &format!(" {}", quoted(group)));
    }
    failure
}

#[cfg(test)]
mod tests {
    use strandline_client::{GroupKind, GroupMember};

    use super::*;

    fn group(members: usize) -> Described {
        let member = |index: usize| GroupMember {
            id: format!("id-{index}"),
            instance_id: None,
            client_id: format!("app-{index}"),
            host: "/10.0.0.7".to_owned(),
            assigned: Vec::new(),
        };
        Described {
            id: "billing".to_owned(),
            kind: GroupKind::Classic,
            state: "Stable".to_owned(),
            assignor: "range".to_owned(),
            epoch: None,
            members: (1..=members).map(member).collect(),
        }
    }

    #[test]
    fn a_group_with_members_is_refused_by_their_names() {
        assert_eq!(
            refuse_active(&group(5), "offsets can only be moved while it is empty").to_string(),
            "error: group \"billing\" has 5 live members; offsets can only be moved while it is \
             empty (NON_EMPTY_GROUP)\n  members: app-1@10.0.0.7, app-2@10.0.0.7, app-3@10.0.0.7, \
             2 more   stop them first"
        );
    }

    #[test]
    fn partitions_with_the_same_trouble_are_told_of_once() {
        use clap::Parser;

        /// Flags without a command.
        #[derive(Parser)]
        struct Flags {
            #[command(flatten)]
            target: Target,
        }
        let target = Flags::parse_from(["test"]).target;
        let outcome = |topic: &str, partition, code| PartitionOutcome {
            topic: topic.to_owned(),
            partition,
            result: Err(ClientError::Broker {
                subject: format!("{topic}-{partition} of my group"),
                code,
                message: None,
            }),
        };
        let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
        let outcomes = vec![
            outcome("orders", 0, subscribed),
            outcome("orders", 1, subscribed),
            outcome("clicks", 0, subscribed),
            outcome("orders", 2, ErrorCode::NON_EMPTY_GROUP),
            outcome("orders", 3, subscribed),
        ];
        let told: Vec<String> =
            failures(&target, "my group", outcomes).iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:#?}");
        assert_eq!(
            told[1],
            "error: orders-0 of my group: GROUP_SUBSCRIBED_TO_TOPIC; the same for partitions 1, \
             3\n  members of my group read this topic; stop them first   who: strandline group \
             describe 'my group'"
        );
        assert!(told[2].contains("strandline group describe 'my group'   stop"), "{}", told[2]);
    }

    #[test]
    fn a_missing_group_comes_with_the_one_that_was_meant() {
        assert_eq!(
            unknown_group("biling", ["billing"].into_iter()).to_string(),
            "error: group \"biling\" does not exist\n  did you mean \"billing\"?   list: \
             strandline group list"
        );
    }
}
