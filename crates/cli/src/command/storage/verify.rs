//! `strandline storage verify`.

use clap::Args;
use serde_json::{Value, json};
use strandline_engine_file::Severity;
use strandline_model::PartitionId;

use super::folder::{Folder, Seen, shown};
use crate::command::OutputFormat;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::counted;
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Checks all that a stopped broker keeps: metadata against files, batches, indexes, journal.
/// Changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline storage verify --data /var/lib/strandline\n  \
                        strandline storage verify --format json\n\nEnds with 4 when something durable \
                        is gone or wrong, or when no topic knows a log. A note is no fault: what it \
                        tells of is made anew, or goes, by itself.")]
pub(crate) struct Verify {
    #[command(flatten)]
    folder: Folder,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// One thing that was found.
struct Row {
    kind: &'static str,
    partition: Option<(PartitionId, String)>,
    file: String,
    position: u64,
    what: String,
}

/// What was looked at.
#[derive(Default)]
struct Sum {
    partitions: usize,
    segments: usize,
    bytes: u64,
    batches_in_journal: u64,
    torn_groups: u64,
}

const DAMAGE: &str = "damage";
const UNKNOWN: &str = "unknown";
const NOTE: &str = "note";

impl Verify {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let (rows, sum) = match self.folder.look().await? {
            Ok(seen) => Self::check(&seen),
            Err(what) => {
                let whole =
                    Row { kind: DAMAGE, partition: None, file: String::new(), position: 0, what };
                (vec![whole], Sum::default())
            }
        };
        match self.format {
            OutputFormat::Json => console::line(&json_of(&rows, &sum).to_string()),
            OutputFormat::Text => {
                if !rows.is_empty() {
                    console::data(table(&rows).render().as_bytes());
                }
                console::say(&summary(&sum));
            }
        }
        let wrong = rows.iter().filter(|row| row.kind != NOTE).count();
        if wrong == 0 {
            return Ok(());
        }
        let found = counted(wrong as u64, "fault");
        let message = format!("{}: {found} found", self.folder.path().display());
        let failure = Failure::new(Exit::Unsatisfied, "damaged", message);
        let has_unknown = rows.iter().any(|row| row.kind == UNKNOWN);
        Err(if has_unknown {
            failure.hint("what no topic knows is set aside by  strandline storage reconcile --yes")
        } else {
            failure
        })
    }

    fn check(Seen { inspection, look }: &Seen) -> (Vec<Row>, Sum) {
        let comparison = &look.comparison;
        let missing = comparison.missing.iter().chain(&comparison.damaged);
        let missing = missing.chain(&comparison.unreadable).map(|one| one.id);
        let known = comparison.known.iter().chain(&comparison.pending).copied().chain(missing);
        let mut known: Vec<PartitionId> = known.collect();
        known.sort_unstable();
        let journal = inspection.journal();
        let mut sum = Sum {
            partitions: known.len(),
            batches_in_journal: journal.batches,
            torn_groups: journal.torn_groups,
            ..Sum::default()
        };
        let mut rows = Vec::new();
        let progress = Progress::start("checking", known.len());
        for id in known {
            let check = inspection.verify(id);
            sum.segments += check.segments;
            sum.bytes += check.bytes;
            rows.extend(check.findings.into_iter().map(|(severity, finding)| Row {
                kind: if severity == Severity::Damage { DAMAGE } else { NOTE },
                partition: Some((id, shown(look, id))),
                file: finding.chunk,
                position: finding.position,
                what: finding.message,
            }));
            progress.step();
        }
        drop(progress);
        let whole = |kind, id: PartitionId, what: &str| Row {
            kind,
            partition: Some((id, shown(look, id))),
            file: String::new(),
            position: 0,
            what: what.to_owned(),
        };
        let unknown = comparison.unknown.iter();
        rows.extend(unknown.map(|id| whole(UNKNOWN, *id, "no topic knows this log")));
        let returned = comparison.returned.iter();
        let in_quarantine = "its topic exists, but it is in quarantine";
        rows.extend(returned.map(|id| whole(DAMAGE, *id, in_quarantine)));
        let aside = comparison.quarantined.iter();
        rows.extend(aside.map(|id| whole(NOTE, *id, "in quarantine: no topic knows it")));
        rows.extend(inspection.foreign().into_iter().map(|path| Row {
            kind: NOTE,
            partition: None,
            file: path,
            position: 0,
            what: "no part of any log; it is left alone".to_owned(),
        }));
        (rows, sum)
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("KIND", Align::Left),
        ("PARTITION", Align::Left),
        ("FILE", Align::Left),
        ("POSITION", Align::Right),
        ("WHAT", Align::Left),
    ]);
    for row in rows {
        let position = if row.file.is_empty() { String::new() } else { row.position.to_string() };
        let partition = row.partition.as_ref().map(|(_, shown)| shown.clone());
        table.row([
            row.kind.to_owned(),
            partition.unwrap_or_default(),
            row.file.clone(),
            position,
            row.what.clone(),
        ]);
    }
    table
}

fn json_of(rows: &[Row], sum: &Sum) -> Value {
    let findings = rows.iter().map(|row| {
        let id = row.partition.as_ref().map(|(id, _)| *id);
        json!({
            "kind": row.kind,
            "log": row.partition.as_ref().map(|(_, shown)| shown),
            "topic_id": id.map(|id| id.topic_id.to_string()),
            "partition": id.map(|id| id.index.get()),
            "file": (!row.file.is_empty()).then_some(&row.file),
            "position": row.position,
            "what": row.what,
        })
    });
    json!({
        "partitions": sum.partitions,
        "segments": sum.segments,
        "bytes": sum.bytes,
        "journal_batches": sum.batches_in_journal,
        "journal_torn_groups": sum.torn_groups,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn summary(sum: &Sum) -> String {
    let partitions = counted(sum.partitions as u64, "partition");
    let segments = counted(sum.segments as u64, "segment");
    let mut text = format!("checked {partitions}, {segments}, {} bytes of batches", sum.bytes);
    if sum.batches_in_journal > 0 {
        let appends = counted(sum.batches_in_journal, "append");
        text += &format!("; the journal holds {appends} that the next start writes again");
    }
    if sum.torn_groups > 0 {
        let writes = counted(sum.torn_groups, "torn write");
        text += &format!("; {writes} at its end, none was acknowledged");
    }
    text
}
