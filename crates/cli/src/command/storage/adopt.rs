//! `strandline storage adopt`.

use clap::Args;
use serde_json::json;
use strandline_broker::{AdoptError, Adoption, Look, adopt};
use strandline_model::config::StorageEngine;
use strandline_model::{PartitionId, TopicId};
use strandline_storage::{LogStore, StorageError};

use super::consent::Consent;
use super::folder::Folder;
use crate::command::OutputFormat;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::counted;
use crate::serve::now;

/// Makes a topic for logs that no topic knows, in quarantine or not, in the folder of a stopped broker.
/// Shows what it would do, and does it with --yes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline storage adopt 2nQv8sJPTEm1sWmLDt0zSg --as orders \
                        --dry-run\n  strandline storage adopt 2nQv8sJPTEm1sWmLDt0zSg --as orders \
                        --yes\n\nThe topic keeps its id, so that positions of groups are there \
                        again too. Its retention.ms and retention.bytes are -1, so that nothing \
                        goes before somebody says so. storage verify and GET /v1/storage tell the \
                        ids of logs that no topic knows.")]
pub(crate) struct Adopt {
    /// The id of the topic that the logs had.
    #[arg(value_name = "ID")]
    id: String,
    /// What it is called from now on.
    #[arg(long = "as", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    consent: Consent,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Adopt {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let id: TopicId = self.id.parse().map_err(|_| {
            Failure::usage(format!("{} is no id of a topic", self.id))
                .hint("22 letters and digits, as storage verify prints them")
        })?;
        let logs = {
            let seen = match self.folder.look().await? {
                Ok(seen) => seen,
                Err(what) => {
                    let message = format!("{}: {what}", self.folder.path().display());
                    return Err(Failure::new(Exit::Unsatisfied, "folder_damaged", message));
                }
            };
            let logs = unknown(&seen.look, id);
            if logs.is_empty() {
                let message = format!("no log of {id} is unknown to all topics");
                return Err(Failure::new(Exit::Failed, "not_found", message)
                    .hint("strandline storage verify lists those that are"));
            }
            if let Some(foreign) = logs.iter().find(|log| !seen.inspection.has_rows(**log)) {
                let message = format!("{foreign} was not written by this broker");
                return Err(Failure::new(Exit::Failed, "foreign", message)
                    .hint("nothing says what is whole of its files"));
            }
            logs
        };
        if self.consent.yes {
            self.carry_out(id, &logs).await?;
        }
        self.show(id, &logs);
        if self.consent.yes || self.consent.dry_run {
            return Ok(());
        }
        Err(Failure::unconfirmed("nothing was changed: this needs a confirmation"))
    }

    async fn carry_out(&self, id: TopicId, logs: &[PartitionId]) -> Result<(), Failure> {
        let unreadable = |error: StorageError| self.folder.unreadable(&error);
        let engine = self.folder.open(self.format)?;
        let partition_count = logs.last().map_or(0, |last| last.index.get() + 1);
        let adoption = Adoption {
            id,
            name: &self.name,
            engine: StorageEngine::File.name(),
            partition_count,
            now: now(),
        };
        match adopt(&*engine, &adoption).await {
            Ok(()) => {}
            Err(AdoptError::Storage(error)) => return Err(unreadable(error)),
            Err(refused) => {
                return Err(Failure::new(Exit::Failed, "refused", refused.to_string()));
            }
        }
        // A crash from here on is made good by the next start, which brings back what a topic knows.
        for log in logs {
            engine.release(*log).await.map_err(unreadable)?;
        }
        engine.close().await.map_err(unreadable)
    }

    fn show(&self, id: TopicId, logs: &[PartitionId]) {
        let done = if self.consent.yes { "adopted" } else { "would adopt" };
        match self.format {
            OutputFormat::Json => {
                let partitions: Vec<_> = logs.iter().map(|log| log.index.get()).collect();
                let act = json!({
                    "topic_id": id.to_string(),
                    "topic": self.name,
                    "partitions": partitions,
                    "done": self.consent.yes,
                });
                console::line(&act.to_string());
            }
            OutputFormat::Text => {
                let logs = counted(logs.len() as u64, "log");
                let name = &self.name;
                console::say(&format!(
                    "{done} {logs} of {id} as {name}, with retention.ms=-1 and retention.bytes=-1"
                ));
            }
        }
    }
}

/// The logs of an id that no topic knows, in order.
fn unknown(look: &Look, id: TopicId) -> Vec<PartitionId> {
    let all = look.comparison.unknown.iter().chain(&look.comparison.quarantined);
    let mut logs: Vec<_> = all.copied().filter(|log| log.topic_id == id).collect();
    logs.sort_unstable();
    logs
}
