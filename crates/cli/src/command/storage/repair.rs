//! `strandline storage repair`.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use strandline_broker::Look;
use strandline_engine_file::{FileEngine, Repair};
use strandline_model::PartitionId;
use strandline_model::config::StorageEngine;
use strandline_storage::{LogStore, StorageError};

use super::consent::Consent;
use super::folder::{Folder, Seen, shown};
use crate::command::OutputFormat;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::counted;
use crate::progress::Progress;
use crate::remark::Remark;
use crate::serve::now;
use crate::table::{Align, Table};

/// Lets damaged logs of a stopped broker serve again from what is whole of them, and says what is lost.
/// Shows what it would do, and does it with --yes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline storage repair --data /var/lib/strandline \
                        --dry-run\n  strandline storage repair --yes\n\nKeeps every whole batch at \
                        its offset, puts back those that a start rescued from the journal, and ends \
                        each log where it ended. What is not whole is gone afterwards: copy the \
                        folder first if it may be of use. Ends with 4 while a log needs a repair.")]
pub(crate) struct RepairLogs {
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    consent: Consent,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// A log that needs a repair, or got it.
struct Act {
    id: PartitionId,
    shown: String,
    repair: Repair,
    done: bool,
}

impl RepairLogs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let (mut acts, journal_batches) = match self.folder.look().await? {
            Ok(seen) => (self.plan(&seen)?, seen.inspection.journal().batches),
            Err(what) => {
                let message = format!("{}: {what}", self.folder.path().display());
                return Err(Failure::new(Exit::Unsatisfied, "folder_damaged", message).hint(
                    "this repairs logs one by one; the journal and the snapshot belong to all of them",
                ));
            }
        };
        // The look has ended, and with it the lock that keeps a start away.
        if self.consent.yes && (!acts.is_empty() || journal_batches > 0) {
            acts = self.carry_out().await?;
        } else if journal_batches > 0 {
            let appends = counted(journal_batches, "append");
            let message = format!(
                "the journal holds {appends} that --yes writes first, as a start does: what they say \
                 of damaged logs is not in this"
            );
            Remark::note("journal_not_replayed", message).say(self.format);
        }
        self.show(&acts);
        if acts.iter().all(|act| act.done) {
            return Ok(());
        }
        if !self.consent.dry_run {
            return Err(Failure::unconfirmed("nothing was changed: this needs a confirmation"));
        }
        let logs = counted(acts.len() as u64, "log");
        let message = format!("{}: {logs} to repair", self.folder.path().display());
        Err(Failure::new(Exit::Unsatisfied, "not_repaired", message).hint(
            "the same with --yes repairs; copy the folder first if what is lost may be of use",
        ))
    }

    fn plan(&self, Seen { inspection, look }: &Seen) -> Result<Vec<Act>, Failure> {
        let ids = served(look);
        let progress = Progress::start("checking", ids.len());
        let mut acts = Vec::new();
        for id in ids {
            let planned = inspection.plan_repair(id);
            if let Some(repair) = planned.map_err(|error| self.folder.unreadable(&error))? {
                acts.push(Act { id, shown: shown(look, id), repair, done: false });
            }
            progress.step();
        }
        Ok(acts)
    }

    /// Opens the folder as a start does, which may find more, and repairs.
    async fn carry_out(&self) -> Result<Vec<Act>, Failure> {
        let unreadable = |error: StorageError| self.folder.unreadable(&error);
        let engine: Arc<FileEngine> = self.folder.open(self.format)?;
        let look = Look::at(StorageEngine::File.name(), &*engine, &*engine).await;
        let look = look.map_err(|error| self.folder.no_metadata(&error))?;
        let ids = served(&look);
        let progress = Progress::start("repairing", ids.len());
        let mut acts = Vec::new();
        let mut failed = None;
        for id in ids {
            match engine.repair(id, now()).await {
                Ok(None) => {}
                Ok(Some(repair)) => {
                    acts.push(Act { id, shown: shown(&look, id), repair, done: true });
                }
                // The others are repaired all the same.
                Err(error) => failed = Some(failed.unwrap_or(error)),
            }
            progress.step();
        }
        drop(progress);
        engine.close().await.map_err(unreadable)?;
        match failed {
            Some(error) => {
                self.show(&acts);
                Err(unreadable(error))
            }
            None => Ok(acts),
        }
    }

    fn show(&self, acts: &[Act]) {
        match self.format {
            OutputFormat::Json => {
                let acts: Value = acts.iter().map(json_of).collect();
                console::line(&acts.to_string());
            }
            OutputFormat::Text if acts.is_empty() => console::say("no log needs a repair"),
            OutputFormat::Text => console::data(table(acts).render().as_bytes()),
        }
    }
}

/// Logs of topics that exist, in order.
fn served(look: &Look) -> Vec<PartitionId> {
    let comparison = &look.comparison;
    let hurt = comparison.missing.iter().chain(&comparison.damaged);
    let hurt = hurt.chain(&comparison.unreadable).map(|one| one.id);
    let mut ids: Vec<_> = comparison.known.iter().copied().chain(hurt).collect();
    ids.sort_unstable();
    ids
}

fn table(acts: &[Act]) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Left),
        ("DONE", Align::Left),
        ("KIND", Align::Left),
        ("OFFSETS", Align::Left),
        ("BYTES", Align::Right),
        ("WHAT", Align::Left),
    ]);
    for Act { shown, repair, done, .. } in acts {
        let done = if *done { "yes" } else { "no" };
        let mut row = |kind: &str, offsets: String, bytes: u64, what: String| {
            let bytes = bytes.to_string();
            table.row([shown.clone(), done.to_owned(), kind.to_owned(), offsets, bytes, what]);
        };
        if let Some(reason) = &repair.reason {
            row("damage", String::new(), 0, reason.clone());
        }
        let batches =
            |count: u64| if count == 1 { "1 batch".to_owned() } else { format!("{count} batches") };
        let kept = batches(repair.kept_batches);
        row(
            "kept",
            String::new(),
            repair.kept_bytes,
            format!("{kept}, up to offset {}", repair.end),
        );
        if repair.put_back_batches > 0 {
            let what = format!("{} of these from the journal", batches(repair.put_back_batches));
            row("put back", String::new(), repair.put_back_bytes, what);
        }
        for lost in &repair.lost {
            let range = &lost.offsets;
            let offsets = if range.is_empty() {
                String::new()
            } else {
                format!("{}..{}", range.start, range.end)
            };
            let doubt =
                if lost.certain { "" } else { " (compaction may have removed some before)" };
            row("lost", offsets, lost.bytes, format!("{}{doubt}", lost.what));
        }
    }
    table
}

fn json_of(act: &Act) -> Value {
    let Act { id, shown, repair, done } = act;
    let lost = repair.lost.iter().map(|lost| {
        json!({
            "from": lost.offsets.start.get(),
            "to": lost.offsets.end.get(),
            "bytes": lost.bytes,
            "certain": lost.certain,
            "what": lost.what,
        })
    });
    json!({
        "log": shown,
        "topic_id": id.topic_id.to_string(),
        "partition": id.index.get(),
        "done": done,
        "damage": repair.reason,
        "kept_batches": repair.kept_batches,
        "kept_bytes": repair.kept_bytes,
        "put_back_batches": repair.put_back_batches,
        "put_back_bytes": repair.put_back_bytes,
        "end": repair.end.get(),
        "lost": lost.collect::<Vec<_>>(),
    })
}
