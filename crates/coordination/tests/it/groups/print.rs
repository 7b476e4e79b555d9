//! Effects as lines.

use std::sync::Arc;

use strandline_coordination::group::{
    CommittedOffset, DescribedMember, FetchedTopic, GroupEvent, GroupReply, GroupRow,
    MemberSnapshot, Rebalance, RebalanceMember,
};

pub(super) fn row(row: &GroupRow) -> String {
    match row {
        GroupRow::Group(id, None) => format!("row group {id} gone"),
        GroupRow::Group(id, Some(group)) => {
            let member = |member: &MemberSnapshot| {
                format!(
                    "{}({})",
                    name(&member.id, member.instance.as_ref()),
                    text(&member.assignment)
                )
            };
            let members: Vec<_> = group.members.iter().map(member).collect();
            format!(
                "row group {id} generation={} type={} protocol={} leader={} since={} members={}",
                group.generation,
                or_dash(&group.protocol_type),
                option(group.protocol.as_ref()),
                option(group.leader.as_ref()),
                group.since,
                or_dash(&members.join(","))
            )
        }
        GroupRow::Offset(key, offset) => {
            let topic = key.topic_id.as_bytes()[15];
            let offset = offset.as_ref().map_or("gone".to_owned(), position);
            format!("row offset {} t{topic}/{} {offset}", key.group, key.partition)
        }
    }
}

pub(super) fn event(event: &GroupEvent) -> String {
    let GroupEvent::Rebalances(id, why) = event;
    format!("rebalance group {id} {}", rebalance(why))
}

fn rebalance(why: &Rebalance) -> String {
    let member = |member: &RebalanceMember| {
        let client = if member.client_id.is_empty() {
            String::new()
        } else {
            format!("({}{})", member.client_id, member.client_host)
        };
        format!(" {}{client}", name(&member.id, member.instance.as_ref()))
    };
    let of = why.member.as_ref().map(member).unwrap_or_default();
    let said = if why.client_reason.is_empty() {
        String::new()
    } else {
        format!(" \"{}\"", why.client_reason)
    };
    format!("generation={} since={} {}{of}{said}", why.generation, why.at, why.cause.name())
}

pub(super) fn reply(reply: &GroupReply) -> String {
    match reply {
        GroupReply::Join(Err(refused)) => {
            format!("{:?} member={}", refused.error, or_dash(&refused.member))
        }
        GroupReply::Join(Ok(joined)) => {
            let members: Vec<_> = (joined.members.iter())
                .map(|member| name(&member.member, member.instance.as_ref()))
                .collect();
            format!(
                "joined generation={} protocol={} leader={} member={} members={}{}",
                joined.generation,
                option(joined.protocol.as_ref()),
                joined.leader,
                joined.member,
                or_dash(&members.join(",")),
                if joined.skip_assignment { " skip-assignment" } else { "" }
            )
        }
        GroupReply::Sync(Ok(synced)) => {
            format!(
                "synced protocol={} share={}",
                option(synced.protocol.as_ref()),
                text(&synced.assignment)
            )
        }
        GroupReply::Sync(Err(error)) | GroupReply::Heartbeat(Err(error)) => format!("{error:?}"),
        GroupReply::Heartbeat(Ok(())) => "alive".to_owned(),
        GroupReply::Leave(outcomes) => {
            let outcome = |(member, outcome): &(_, Result<(), _>)| {
                let member: &strandline_coordination::group::LeavingMember = member;
                let outcome =
                    outcome.as_ref().map_or_else(|error| format!("{error:?}"), |()| "left".into());
                format!("{}={outcome}", name(&member.member, member.instance.as_ref()))
            };
            outcomes.iter().map(outcome).collect::<Vec<_>>().join(" ")
        }
        GroupReply::Commit(outcome) => format!("{outcome:?}"),
        GroupReply::DeleteOffsets(outcome) => format!("{outcome:?}"),
        GroupReply::DeleteGroup(outcome) => format!("{outcome:?}"),
        GroupReply::Fetch(topics) => fetched(topics),
        GroupReply::Describe(None) => "no group".to_owned(),
        GroupReply::Describe(Some(group)) => {
            let member = |member: &DescribedMember| {
                format!(
                    "{}({})",
                    name(&member.member, member.instance.as_ref()),
                    text(&member.assignment)
                )
            };
            let members: Vec<_> = group.members.iter().map(member).collect();
            format!(
                "{} rebalance={} type={} protocol={} members={}",
                group.state.name(),
                group.rebalance.as_ref().map_or("-".to_owned(), rebalance),
                or_dash(&group.protocol_type),
                or_dash(&group.protocol),
                or_dash(&members.join(","))
            )
        }
        GroupReply::List(groups) => {
            let line = |group: &strandline_coordination::group::GroupListing| {
                format!("{}:{}:{}", group.group, or_dash(&group.protocol_type), group.state.name())
            };
            groups.iter().map(line).collect::<Vec<_>>().join(" ")
        }
        GroupReply::Done => "done".to_owned(),
    }
}

fn fetched(topics: &[FetchedTopic]) -> String {
    let mut found = Vec::new();
    for topic in topics {
        for (index, offset) in &topic.partitions {
            let offset = offset.as_ref().map_or("none".to_owned(), position);
            found.push(format!("t{}/{index} {offset}", topic.topic_id.as_bytes()[15]));
        }
    }
    if found.is_empty() { "nothing".to_owned() } else { found.join(", ") }
}

fn position(offset: &CommittedOffset) -> String {
    let note = if offset.metadata.is_empty() { "" } else { " note" };
    format!("at {} since {}{note}", offset.offset, offset.committed_at)
}

fn name(member: &str, instance: Option<&Arc<str>>) -> String {
    match instance {
        Some(instance) => format!("{}[{instance}]", or_dash(member)),
        None => or_dash(member).to_owned(),
    }
}

fn option(text: Option<&Arc<str>>) -> &str {
    text.map_or("-", |text| or_dash(text))
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn text(bytes: &[u8]) -> String {
    or_dash(str::from_utf8(bytes).unwrap()).to_owned()
}
