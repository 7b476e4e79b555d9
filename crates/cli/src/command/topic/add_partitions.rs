//! `strandline topic add-partitions`.

use std::str::FromStr;

use clap::Args;
use strandline_client::Client;

use super::readers::{Reader, Readers, readers};
use crate::command::names::Names;
use crate::command::quote::quoted;
use crate::command::target::{Target, unknown_topic};
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;
use crate::remark::Remark;

/// Gives topics more partitions. They can't be taken away again, and keys move to other partitions.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic add-partitions orders -p 12\n  strandline topic \
                  add-partitions orders -p +3 --groups-from-start\n  strandline topic add-partitions -r \
                  'orders-.*' -p 12 --dry-run\n\nA group that begins where \
                  partitions end (auto.offset.reset=latest) skips what comes into new ones before \
                  it notices them. Stop it, add the partitions with --groups-from-start, and start \
                  it again: then it reads them whole."
)]
pub(crate) struct AddPartitions {
    #[command(flatten)]
    names: Names,
    /// How many partitions each has afterwards; +3 adds three.
    #[arg(short, long, value_name = "N")]
    partitions: Count,
    /// Has groups of the topic that are without members read the new partitions from their start.
    #[arg(long)]
    groups_from_start: bool,
    /// Only asks the broker whether it would do it, and tells which groups read the topic.
    #[arg(long)]
    dry_run: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// Groups that a warning names. Others are counted.
const GROUPS_NAMED_MAX: usize = 5;

/// How many partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Total(i32),
    More(i32),
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let positive = |digits: &str| digits.parse().ok().filter(|count: &i32| *count > 0);
        let count = match text.strip_prefix('+') {
            Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                positive(digits).map(Self::More)
            }
            Some(_) => None,
            None => positive(text).map(Self::Total),
        };
        count.ok_or_else(|| format!("\"{text}\" is no number of partitions; write 12 or +3"))
    }
}

/// A topic that grew, or would.
struct Grown {
    topic: String,
    before: i32,
    total: i32,
    readers: Readers,
}

impl AddPartitions {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let names = self.names.topics(target, &mut client).await?;
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        let mut all = Vec::new();
        for name in &names {
            let Some(topic) = cluster.topics.iter().find(|topic| topic.name == *name) else {
                let known = cluster.topics.iter().map(|topic| topic.name.as_str());
                failures.push(unknown_topic(name, known));
                continue;
            };
            let before = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
            match self.grow(target, &mut client, name, before).await {
                Ok((grown, failed)) => {
                    all.push(grown);
                    failures.extend(failed);
                }
                Err(failure) => failures.push(failure),
            }
        }
        self.show(&all);
        finish(failures, self.format)
    }

    /// Grows one topic. What went wrong with the groups that read it comes beside.
    async fn grow(
        &self,
        target: &Target,
        client: &mut Client,
        topic: &str,
        before: i32,
    ) -> Result<(Grown, Vec<Failure>), Failure> {
        let total = match self.partitions {
            Count::Total(total) => total,
            Count::More(more) => before.saturating_add(more),
        };
        // Before anything changes: a group that comes later finds all partitions.
        let mut readers = readers(client, topic).await;
        let created = client.create_partitions(topic, total, self.dry_run).await;
        created.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        if self.groups_from_start && !self.dry_run {
            let added: Vec<_> = (before..total).map(|index| (topic.to_owned(), index, 0)).collect();
            failures = begin_at_start(target, client, &mut readers.found, &added).await;
        }
        Ok((Grown { topic: topic.to_owned(), before, total, readers }, failures))
    }

    fn show(&self, all: &[Grown]) {
        for warning in all.iter().flat_map(|one| warnings(&one.topic, &one.readers)) {
            warning.say(self.format);
        }
        match self.format {
            OutputFormat::Text => {
                for Grown { topic, before, total, .. } in all {
                    let partitions = counted(u64::from(total.unsigned_abs()), "partition");
                    let has = if self.dry_run { "would have" } else { "has" };
                    console::say(&format!("{topic} {has} {partitions}, {before} before"));
                }
            }
            OutputFormat::Json => {
                let group = |reader: &Reader| {
                    serde_json::json!({
                        "group": reader.group,
                        "members": reader.members,
                        "from_start": reader.from_start,
                    })
                };
                let object = |one: &Grown| {
                    serde_json::json!({
                        "name": one.topic,
                        "partitions_before": one.before,
                        "partitions": one.total,
                        "changed": !self.dry_run,
                        "groups": one.readers.found.iter().map(group).collect::<Vec<_>>(),
                    })
                };
                let all: Vec<_> = all.iter().map(object).collect();
                console::line(&serde_json::Value::from(all).to_string());
            }
        }
    }
}

/// Commits the start of each added partition for groups without members, and notes for which it
/// did; a group with members would commit over it.
async fn begin_at_start(
    target: &Target,
    client: &mut Client,
    readers: &mut [Reader],
    added: &[(String, i32, i64)],
) -> Vec<Failure> {
    let mut failures = Vec::new();
    for reader in readers.iter_mut().filter(|reader| !reader.is_active) {
        match client.commit_offsets(&reader.group, added).await {
            Ok(outcomes) => {
                let before = failures.len();
                let failed = outcomes.into_iter().filter_map(|outcome| outcome.result.err());
                failures.extend(failed.map(|error| target.explain(&error)));
                reader.from_start = failures.len() == before;
            }
            Err(error) => failures.push(target.explain(&error)),
        }
    }
    failures
}

/// What to say about groups that may miss records of the new partitions.
fn warnings(topic: &str, readers: &Readers) -> Vec<Remark> {
    let mut warnings = Vec::new();
    let at_risk: Vec<String> =
        readers.found.iter().filter(|reader| !reader.from_start).map(Reader::to_string).collect();
    if !at_risk.is_empty() {
        let (named, others) = at_risk.split_at(at_risk.len().min(GROUPS_NAMED_MAX));
        let others = match others.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let message = format!(
            "{} {} {topic}: {}{others}",
            counted(at_risk.len() as u64, "group"),
            if at_risk.len() == 1 { "reads" } else { "read" },
            named.join(", "),
        );
        warnings.push(
            Remark::warning("groups_may_miss_records", message)
                .hint(
                    "one that begins where partitions end (auto.offset.reset=latest) skips what \
                     comes into the new ones before it notices them",
                )
                .hint(format!(
                    "stop it before, and use --groups-from-start; or later: strandline group seek \
                     GROUP -t {}:PARTITIONS --to start",
                    quoted(topic)
                )),
        );
    }
    if let Some(unknown) = &readers.unknown {
        let message = format!("which groups read {topic} is not known: {unknown}");
        warnings.push(Remark::warning("readers_unknown", message));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(group: &str, members: usize, from_start: bool) -> Reader {
        Reader { group: group.to_owned(), is_active: members > 0, members, from_start }
    }

    fn texts(topic: &str, readers: &Readers) -> Vec<String> {
        warnings(topic, readers).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn groups_that_may_miss_records_are_named() {
        let found = vec![reader("a", 2, false), reader("b", 0, true), reader("c", 0, false)];
        let warned = texts("t", &Readers { found, unknown: None });
        assert_eq!(warned.len(), 1);
        assert!(
            warned[0].starts_with("warning: 2 groups read t: a (2 members), c\n"),
            "{warned:?}"
        );

        let found = (0..7).map(|index| reader(&format!("g{index}"), 0, false)).collect();
        let warned = texts("t", &Readers { found, unknown: None });
        assert!(warned[0].contains("g4 and 2 more\n"), "{warned:?}");

        let found = vec![reader("b", 0, true)];
        assert!(warnings("t", &Readers { found, unknown: None }).is_empty());
        let unknown = Some("refused".to_owned());
        assert_eq!(
            texts("t", &Readers { found: Vec::new(), unknown }),
            ["warning: which groups read t is not known: refused"]
        );
    }

    #[test]
    fn a_plus_adds() {
        assert_eq!("12".parse(), Ok(Count::Total(12)));
        assert_eq!("+3".parse(), Ok(Count::More(3)));
        for wrong in ["", "+", "0", "+0", "-1", "++3", "x"] {
            assert!(wrong.parse::<Count>().is_err(), "{wrong}");
        }
    }
}
