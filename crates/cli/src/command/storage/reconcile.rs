//! `strandline storage reconcile`.

use clap::Args;
use serde_json::{Value, json};
use strandline_broker::{Look, has_metadata};
use strandline_model::PartitionId;
use strandline_model::config::StorageEngine;
use strandline_storage::{LogStore, MetaStore, StorageError};

use super::consent::Consent;
use super::folder::{Folder, shown};
use crate::command::OutputFormat;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::remark::Remark;
use crate::serve::now;
use crate::table::{Align, Table};

/// Sets logs of a stopped broker aside that no topic knows, as a running one does. Shows what it
/// would do, and does it with --yes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline storage reconcile --data /var/lib/strandline \
                        --dry-run\n  strandline storage reconcile --yes\n\nEnds with 4 while \
                        something is to be done, or a partition has lost data.")]
pub(crate) struct Reconcile {
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    consent: Consent,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// What becomes of a log.
struct Act {
    id: PartitionId,
    shown: String,
    action: &'static str,
    what: String,
    /// Whether it is so now.
    done: bool,
}

const SET_ASIDE: &str = "set-aside";
const BRING_BACK: &str = "bring-back";
const MISSING: &str = "missing";
const DAMAGED: &str = "damaged";
const UNREADABLE: &str = "unreadable";

impl Reconcile {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut acts = match self.folder.look().await? {
            Ok(seen) => {
                self.check_metadata(&seen.inspection).await?;
                for path in seen.inspection.foreign() {
                    let message = format!("{path} is no part of any log; it is left alone");
                    Remark::note("foreign", message).say(self.format);
                }
                acts(&seen.look)
                // Here the look ends, and with it the lock that keeps a start away.
            }
            Err(what) => {
                let message = format!("{}: {what}", self.folder.path().display());
                return Err(Failure::new(Exit::Unsatisfied, "folder_damaged", message));
            }
        };
        let is_undone =
            |act: &Act| ![MISSING, DAMAGED, UNREADABLE].contains(&act.action) && !act.done;
        if self.consent.yes && acts.iter().any(is_undone) {
            acts = self.carry_out().await?;
        }
        self.show(&acts);
        if acts.iter().any(is_undone) && !self.consent.yes && !self.consent.dry_run {
            return Err(Failure::unconfirmed("nothing was changed: this needs a confirmation"));
        }
        if acts.iter().all(|act| act.done) {
            return Ok(());
        }
        let message = if acts.iter().any(is_undone) {
            "logs are not where they belong"
        } else if acts.iter().any(|act| [MISSING, DAMAGED].contains(&act.action)) {
            "partitions have lost data"
        } else {
            "partitions can't be read"
        };
        let message = format!("{}: {message}", self.folder.path().display());
        Err(Failure::new(Exit::Unsatisfied, "not_reconciled", message))
    }

    /// Opens the folder as a start does, and does what is to be done.
    async fn carry_out(&self) -> Result<Vec<Act>, Failure> {
        let unreadable = |error: StorageError| self.folder.unreadable(&error);
        let engine = self.folder.open(self.format)?;
        self.check_metadata(&*engine).await?;
        let name = StorageEngine::File.name();
        let look = Look::at(name, &*engine, &*engine).await;
        let look = look.map_err(|error| self.folder.no_metadata(&error))?;
        let mut acts = acts(&look);
        // Nobody else has the folder: what one look finds stays so.
        for act in &mut acts {
            match act.action {
                SET_ASIDE => engine.quarantine(act.id, now()).await.map_err(unreadable)?,
                BRING_BACK => engine.release(act.id).await.map_err(unreadable)?,
                _ => continue,
            }
            act.done = true;
        }
        engine.close().await.map_err(unreadable)?;
        Ok(acts)
    }

    /// Fails for a folder whose topics were kept elsewhere: all of its logs would be unknown.
    async fn check_metadata(&self, meta: &dyn MetaStore) -> Result<(), Failure> {
        let has = has_metadata(meta).await.map_err(|error| self.folder.unreadable(&error))?;
        if has {
            return Ok(());
        }
        let message = format!("{}: the folder holds no metadata", self.folder.path().display());
        Err(Failure::new(Exit::Failed, "no_metadata", message)
            .hint("nobody can say whose its logs are (was it served with meta.store=memory?)"))
    }

    fn show(&self, acts: &[Act]) {
        match self.format {
            OutputFormat::Json => console::line(&json_of(acts).to_string()),
            OutputFormat::Text if acts.is_empty() => console::say("everything is where it belongs"),
            OutputFormat::Text => console::data(table(acts).render().as_bytes()),
        }
    }
}

fn acts(look: &Look) -> Vec<Act> {
    let act = |id: PartitionId, action, what: &str| Act {
        id,
        shown: shown(look, id),
        action,
        what: what.to_owned(),
        done: false,
    };
    let comparison = &look.comparison;
    let unknown = comparison.unknown.iter();
    let unknown = unknown.map(|id| act(*id, SET_ASIDE, "no topic knows this log"));
    let returned = comparison.returned.iter();
    let returned = returned.map(|id| act(*id, BRING_BACK, "its topic exists"));
    let missing = comparison.missing.iter().map(|one| act(one.id, MISSING, &one.what));
    let damaged = comparison.damaged.iter().map(|one| act(one.id, DAMAGED, &one.what));
    let unreadable = comparison.unreadable.iter().map(|one| act(one.id, UNREADABLE, &one.what));
    unknown.chain(returned).chain(missing).chain(damaged).chain(unreadable).collect()
}

fn table(acts: &[Act]) -> Table {
    let mut table = Table::new(&[
        ("ACTION", Align::Left),
        ("PARTITION", Align::Left),
        ("DONE", Align::Left),
        ("WHAT", Align::Left),
    ]);
    for act in acts {
        let done = if act.done { "yes" } else { "no" };
        table.row([act.action.to_owned(), act.shown.clone(), done.to_owned(), act.what.clone()]);
    }
    table
}

fn json_of(acts: &[Act]) -> Value {
    let each = acts.iter().map(|act| {
        json!({
            "action": act.action,
            "log": act.shown,
            "topic_id": act.id.topic_id.to_string(),
            "partition": act.id.index.get(),
            "done": act.done,
            "what": act.what,
        })
    });
    each.collect()
}
