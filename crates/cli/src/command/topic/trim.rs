//! `strandline topic trim`: deletes the oldest records (DeleteRecords).

use clap::Args;
use strandline_client::Client;
use strandline_model::OffsetPoint;

use crate::command::place::{Borders, borders, offsets_at, point};
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
                  orders --before end --yes\n  strandline topic trim orders -p 3 --before 41000 --yes"
)]
pub(crate) struct Trim {
    /// The topic.
    #[arg(value_name = "NAME")]
    name: String,
    /// The first record that is kept: 47, end (keep nothing), -3 (keep the last three), @-1h,
    /// @2026-01-15.
    #[arg(long, value_name = "PLACE", value_parser = point, allow_hyphen_values = true)]
    before: OffsetPoint,
    /// Only these partitions.
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
    partition: i32,
    borders: Borders,
    /// The first offset that is kept.
    keep_from: i64,
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
        let (mut cuts, mut failures) = self.plan(target, &mut client).await?;
        let deletes = cuts.iter().any(|cut| cut.records() > 0);
        if self.yes {
            let progress = Progress::start("trimming", cuts.len());
            for cut in cuts.iter_mut().filter(|cut| cut.records() > 0) {
                match client.delete_records(&self.name, cut.partition, cut.keep_from).await {
                    Ok(start) => {
                        cut.keep_from = start;
                        cut.done = true;
                    }
                    Err(error) => failures.push(target.explain(&error)),
                }
                progress.step();
            }
        }
        self.show(&cuts);
        if failures.is_empty() && deletes && !self.yes && !self.dry_run {
            return Err(Failure::usage("nothing was deleted: this needs a confirmation")
                .hint("the same again with --yes does it, with --dry-run only shows it"));
        }
        finish(failures, self.format)
    }

    async fn plan(
        &self,
        target: &Target,
        client: &mut Client,
    ) -> Result<(Vec<Cut>, Vec<Failure>), Failure> {
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let Some(topic) = cluster.topics.iter().find(|topic| topic.name == self.name) else {
            let known = cluster.topics.iter().map(|topic| topic.name.as_str());
            return Err(unknown_topic(&self.name, known));
        };
        let known: Vec<i32> = topic.partitions.iter().map(|partition| partition.index).collect();
        if let Some(missing) = self.partitions.iter().find(|index| !known.contains(index)) {
            return Err(Failure::usage(format!(
                "{} has no partition {missing}; it has {}",
                self.name,
                counted(known.len() as u64, "partition")
            )));
        }
        let wanted = if self.partitions.is_empty() { &known } else { &self.partitions };
        let places: Vec<(String, i32)> =
            wanted.iter().map(|partition| (self.name.clone(), *partition)).collect();
        let mut failures = Vec::new();
        let mut open = Vec::new();
        for (place, borders) in places.iter().zip(borders(client, &places).await) {
            match borders {
                Ok(borders) => open.push((place.clone(), borders)),
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        let mut cuts = Vec::new();
        let offsets = offsets_at(client, &open, self.before).await;
        for (((_, partition), borders), offset) in open.into_iter().zip(offsets) {
            match offset {
                Ok(offset) => cuts.push(Cut {
                    partition,
                    borders,
                    keep_from: borders.clamp(offset),
                    done: false,
                }),
                Err(error) => failures.push(target.explain(&error)),
            }
        }
        Ok((cuts, failures))
    }

    fn show(&self, cuts: &[Cut]) {
        match self.format {
            OutputFormat::Text => {
                let mut table = Table::new(&[
                    ("PARTITION", Align::Right),
                    ("LOG-START-OFFSET", Align::Right),
                    ("NEW-START-OFFSET", Align::Right),
                    ("HIGH-WATERMARK", Align::Right),
                    ("RECORDS", Align::Right),
                ]);
                for cut in cuts {
                    table.row([
                        cut.partition.to_string(),
                        cut.borders.start.to_string(),
                        cut.keep_from.to_string(),
                        cut.borders.end.to_string(),
                        cut.records().to_string(),
                    ]);
                }
                console::data(table.render().as_bytes());
                // What was refused is no part of the sum: why, is said by its failure.
                let counts = |cut: &&Cut| cut.done || !self.yes;
                let sum = cuts.iter().filter(counts).map(Cut::records).fold(0, u64::saturating_add);
                let done = if self.yes { "deleted" } else { "would delete" };
                console::say(&format!("{done} {} of {}", counted(sum, "record"), self.name));
            }
            OutputFormat::Json => {
                let cut = |cut: &Cut| {
                    serde_json::json!({
                        "topic": self.name,
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
