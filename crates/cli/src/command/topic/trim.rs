//! `strandline topic trim`: deletes the oldest records (DeleteRecords).

use clap::Args;
use strandline_client::{Client, Topic};
use strandline_model::OffsetPoint;

use crate::command::names::Names;
use crate::command::place::{Borders, borders, offsets_at, outside, point};
use crate::command::target::{Target, unknown_topic};
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Deletes the records before an offset or a time, for ever. Shows what would go, and does it with
/// --yes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic trim orders --before @-7d\n  strandline topic trim \
                  orders --before end --yes\n  strandline topic trim orders -p 3 --before 41000 --yes\n  \
                  strandline topic trim -r 'test-.*' --before end --dry-run"
)]
pub(crate) struct Trim {
    #[command(flatten)]
    names: Names,
    /// The first record that is kept: 47, end (keep nothing), -3 (keep the last three), @-1h,
    /// @2026-01-15.
    #[arg(long, value_name = "PLACE", value_parser = point, allow_hyphen_values = true)]
    before: OffsetPoint,
    /// Only these partitions of each topic.
    #[arg(short, long, value_delimiter = ',')]
    partitions: Vec<i32>,
    /// Only shows what would go.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Confirms.
    #[arg(short, long)]
    yes: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// What happens to a partition.
struct Cut {
    topic: String,
    partition: i32,
    borders: Borders,
    /// The first offset that is kept: as it is to be, and once it was tried as it is.
    keep_from: i64,
    /// What was asked for, where it lies behind the end.
    wished: Option<i64>,
    done: bool,
}

impl Cut {
    fn records(&self) -> u64 {
        u64::try_from(self.keep_from - self.borders.start).unwrap_or(0)
    }
}

impl Trim {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let names = self.names.topics(target, &mut client).await?;
        let (mut cuts, mut failures) = self.plan(target, &mut client, &names).await?;
        let deletes = cuts.iter().any(|cut| cut.records() > 0);
        for cut in &cuts {
            if let Some(wished) = cut.wished {
                outside(&cut.topic, cut.partition, wished, cut.keep_from).say(self.format);
            }
        }
        if self.yes {
            let progress = Progress::start("trimming", cuts.len());
            for cut in cuts.iter_mut().filter(|cut| cut.records() > 0) {
                match client.delete_records(&cut.topic, cut.partition, cut.keep_from).await {
                    Ok(start) => {
                        cut.keep_from = start;
                        cut.done = true;
                    }
                    Err(error) => {
                        cut.keep_from = cut.borders.start;
                        failures.push(target.explain(&error));
                    }
                }
                progress.step();
            }
        }
        self.show(&names, &cuts);
        if failures.is_empty() && deletes && !self.yes && !self.dry_run {
            return Err(Failure::unconfirmed("nothing was deleted: this needs a confirmation"));
        }
        finish(failures, self.format)
    }

    async fn plan(
        &self,
        target: &Target,
        client: &mut Client,
        names: &[String],
    ) -> Result<(Vec<Cut>, Vec<Failure>), Failure> {
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        let mut places = Vec::new();
        for name in names {
            let Some(topic) = cluster.topics.iter().find(|topic| topic.name == *name) else {
                let known = cluster.topics.iter().map(|topic| topic.name.as_str());
                failures.push(unknown_topic(name, known));
                continue;
            };
            places.extend(self.partitions_of(topic)?);
        }
        let mut open = Vec::new();
        for (place, borders) in places.iter().zip(borders(client, &places).await) {
            match borders {
                Ok(borders) => open.push((place.clone(), borders)),
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        let mut cuts = Vec::new();
        let offsets = offsets_at(client, &open, self.before).await;
        for (((topic, partition), borders), offset) in open.into_iter().zip(offsets) {
            match offset {
                Ok(offset) => {
                    let keep_from = borders.clamp(offset);
                    // What lies before a start that is past it is gone, as was asked.
                    let wished = (offset > borders.end).then_some(offset);
                    cuts.push(Cut { topic, partition, borders, keep_from, wished, done: false });
                }
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        Ok((cuts, failures))
    }

    /// The partitions of a topic that are meant.
    fn partitions_of(&self, topic: &Topic) -> Result<Vec<(String, i32)>, Failure> {
        let known: Vec<i32> = topic.partitions.iter().map(|partition| partition.index).collect();
        if let Some(missing) = self.partitions.iter().find(|index| !known.contains(index)) {
            return Err(Failure::usage(format!(
                "{} has no partition {missing}; it has {}",
                topic.name,
                counted(known.len() as u64, "partition")
            )));
        }
        let wanted = if self.partitions.is_empty() { &known } else { &self.partitions };
        Ok(wanted.iter().map(|partition| (topic.name.clone(), *partition)).collect())
    }

    fn show(&self, names: &[String], cuts: &[Cut]) {
        match self.format {
            OutputFormat::Text => {
                console::data(table(cuts).render().as_bytes());
                for name in names {
                    let mut of_it = cuts.iter().filter(|cut| cut.topic == *name).peekable();
                    if of_it.peek().is_some() {
                        let sum = of_it.map(Cut::records).fold(0, u64::saturating_add);
                        let done = if self.yes { "deleted" } else { "would delete" };
                        console::say(&format!("{done} {} of {name}", counted(sum, "record")));
                    }
                }
            }
            OutputFormat::Json => {
                let cut = |cut: &Cut| {
                    serde_json::json!({
                        "topic": cut.topic,
                        "partition": cut.partition,
                        "log_start_offset": cut.borders.start,
                        "new_start_offset": cut.keep_from,
                        "high_watermark": cut.borders.end,
                        "records": cut.records(),
                        "trimmed": cut.done,
                    })
                };
                let cuts: Vec<_> = cuts.iter().map(cut).collect();
                console::line(&serde_json::Value::from(cuts).to_string());
            }
        }
    }
}

fn table(cuts: &[Cut]) -> Table {
    let mut table = Table::new(&[
        ("TOPIC", Align::Left),
        ("PARTITION", Align::Right),
        ("LOG-START-OFFSET", Align::Right),
        ("NEW-START-OFFSET", Align::Right),
        ("HIGH-WATERMARK", Align::Right),
        ("RECORDS", Align::Right),
    ]);
    for cut in cuts {
        table.row([
            cut.topic.clone(),
            cut.partition.to_string(),
            cut.borders.start.to_string(),
            cut.keep_from.to_string(),
            cut.borders.end.to_string(),
            cut.records().to_string(),
        ]);
    }
    table
}
