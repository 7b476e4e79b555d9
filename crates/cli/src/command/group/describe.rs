//! `strandline group describe`.

use clap::Args;
use strandline_client::{Client, ClientError, Group, GroupKind, GroupMember};

use super::lag::{self, GroupOffset};
use super::rebalance::{self, Rebalances};
use super::{called, explain_group, host};
use crate::command::names::Names;
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::{counted, now, span};
use crate::progress::Progress;
use crate::table::{Align, Table, plain};

/// Shows members, offsets, and how far a group is behind.
#[derive(Debug, Args)]
#[command(
    visible_alias = "info",
    after_help = "Examples:\n  strandline group describe billing\n  strandline group describe -r '.*' \
                  --format json\n\nLAG counts the offsets that the group can still read and has not read: what \
                  retention or a trim has removed is no lag (Kafka's tool counts it). TIME-LAG is \
                  the age of the first record that the group has not read yet.\n\nOf a Strandline \
                  broker also why the group last left a generation, when, and for which member, \
                  as its HTTP address (--http-url) tells."
)]
pub(crate) struct Describe {
    #[command(flatten)]
    names: Names,
    /// Leaves out the lag in time, which costs a read of each partition that is behind.
    #[arg(long)]
    no_time_lag: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// A group with what it committed.
struct Described {
    group: Group,
    coordinator: i32,
    offsets: Vec<GroupOffset>,
    /// Why it left its last generation; null when that is not known.
    rebalance: serde_json::Value,
}

impl Describe {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let names = self.names.groups(target, &mut client).await?;
        let mut rebalances = Rebalances::of(target, &mut client).await;
        let mut failures = Vec::new();
        let mut described = Vec::new();
        let progress = Progress::start("reading groups", names.len());
        for name in &names {
            match self.describe(&mut client, &mut rebalances, name).await {
                Ok(group) => {
                    let troubles = group.offsets.iter().filter_map(|one| one.trouble.as_ref());
                    failures.extend(troubles.map(|error| target.explain(error)));
                    described.push(group);
                }
                Err(error) => {
                    failures.push(explain_group(target, &mut client, name, &error).await);
                }
            }
            progress.step();
        }
        drop(progress);
        match self.format {
            OutputFormat::Text => {
                let texts: Vec<String> = described.iter().map(text).collect();
                console::data(texts.join("\n").as_bytes());
            }
            OutputFormat::Json => {
                let groups: Vec<_> = described.iter().map(json).collect();
                console::line(&serde_json::Value::from(groups).to_string());
            }
        }
        finish(failures, self.format)
    }

    async fn describe(
        &self,
        client: &mut Client,
        rebalances: &mut Rebalances,
        name: &str,
    ) -> Result<Described, ClientError> {
        let group = client.describe_group(name).await?;
        let coordinator = client.coordinator(name).await?;
        let assigned = group.members.iter().flat_map(|member| &member.assigned);
        let also: Vec<(String, i32)> = assigned
            .flat_map(|(topic, partitions)| {
                partitions.iter().map(|partition| (topic.clone(), *partition))
            })
            .collect();
        let offsets = lag::of_group(client, name, &also, !self.no_time_lag).await?;
        let rebalance = rebalances.last(name).await;
        Ok(Described { group, coordinator, offsets, rebalance })
    }
}

impl Described {
    /// Who reads a partition.
    fn reader(&self, topic: &str, partition: i32) -> Option<&GroupMember> {
        self.group.members.iter().find(|member| {
            let mut assigned = member.assigned.iter();
            assigned.any(|(name, partitions)| name == topic && partitions.contains(&partition))
        })
    }

    /// Members that read nothing.
    fn idle(&self) -> impl Iterator<Item = &GroupMember> {
        let reads_nothing = |member: &&GroupMember| {
            member.assigned.iter().all(|(_, partitions)| partitions.is_empty())
        };
        self.group.members.iter().filter(reads_nothing)
    }
}

fn kind(group: &Group) -> &'static str {
    match group.kind {
        GroupKind::Classic => "classic",
        GroupKind::Consumer => "consumer",
    }
}

fn text(described: &Described) -> String {
    let group = &described.group;
    let members = counted(group.members.len() as u64, "member");
    let mut head = format!("{}  {}  {}  {members}", called(&group.id), kind(group), group.state);
    if !group.assignor.is_empty() {
        head += &format!("  assignor {}", group.assignor);
    }
    if let Some(epoch) = group.epoch {
        head += &format!("  epoch {epoch}");
    }
    head += &format!("  coordinator {}", described.coordinator);
    let totals = lag::totals(&described.offsets);
    if let Some(records) = totals.records {
        head += &format!("  lag {}", counted(records, "record"));
    }
    if let Some(ms) = totals.ms {
        head += &format!(" {}", span(ms));
    }
    let mut table = Table::new(&[
        ("TOPIC", Align::Left),
        ("PARTITION", Align::Right),
        ("CURRENT-OFFSET", Align::Right),
        ("LOG-END-OFFSET", Align::Right),
        ("LAG", Align::Right),
        ("TIME-LAG", Align::Right),
        ("CONSUMER-ID", Align::Left),
        ("HOST", Align::Left),
        ("CLIENT-ID", Align::Left),
    ]);
    let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    for offset in &described.offsets {
        let reader = described.reader(&offset.topic, offset.partition);
        table.row([
            offset.topic.clone(),
            offset.partition.to_string(),
            number(offset.committed),
            number(offset.borders.map(|borders| borders.end)),
            offset.lag_records().map(|lag| lag.to_string()).unwrap_or_default(),
            offset.lag_ms.map(span).unwrap_or_default(),
            reader.map(|member| member.id.clone()).unwrap_or_default(),
            reader.map(|member| host(&member.host).to_owned()).unwrap_or_default(),
            reader.map(|member| member.client_id.clone()).unwrap_or_default(),
        ]);
    }
    for member in described.idle() {
        let nothing = || String::new();
        table.row([
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            member.id.clone(),
            host(&member.host).to_owned(),
            member.client_id.clone(),
        ]);
    }
    let last = rebalance::line(&described.rebalance, &now());
    let last = last.map(|line| format!("{}\n", plain(&line))).unwrap_or_default();
    format!("{}\n{last}{}", plain(&head), table.render())
}

fn json(described: &Described) -> serde_json::Value {
    let group = &described.group;
    let member = |member: &GroupMember| {
        let assigned = member.assigned.iter().map(
            |(topic, partitions)| serde_json::json!({"topic": topic, "partitions": partitions}),
        );
        serde_json::json!({
            "member_id": member.id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": host(&member.host),
            "assigned": assigned.collect::<Vec<_>>(),
        })
    };
    let offset = |offset: &GroupOffset| {
        let reader = described.reader(&offset.topic, offset.partition);
        serde_json::json!({
            "topic": offset.topic,
            "partition": offset.partition,
            "current_offset": offset.committed,
            "log_start_offset": offset.borders.map(|borders| borders.start),
            "log_end_offset": offset.borders.map(|borders| borders.end),
            "lag_records": offset.lag_records(),
            "lag_ms": offset.lag_ms,
            "metadata": offset.metadata,
            "member_id": reader.map(|member| &member.id),
        })
    };
    let totals = lag::totals(&described.offsets);
    serde_json::json!({
        "group": group.id,
        "type": kind(group),
        "state": group.state,
        "assignor": group.assignor,
        "epoch": group.epoch,
        "coordinator": described.coordinator,
        "last_rebalance": described.rebalance,
        "lag_records": totals.records,
        "lag_ms": totals.ms,
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
        "offsets": described.offsets.iter().map(offset).collect::<Vec<_>>(),
    })
}
