//! `strandline topic`: topics of any Kafka cluster.

mod create;
mod delete;
mod describe;
mod list;

use clap::Subcommand;

use super::OutputFormat;
use super::target::Target;
use crate::console;
use crate::failure::{Exit, Failure};

/// Creates, lists, describes and deletes topics.
#[derive(Debug, Subcommand)]
pub(crate) enum Topic {
    Create(create::Create),
    List(list::List),
    Describe(describe::Describe),
    Delete(delete::Delete),
}

impl Topic {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Create(create) => create.format,
            Self::List(list) => list.format,
            Self::Describe(describe) => describe.format,
            Self::Delete(delete) => delete.format,
        }
    }

    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(target).await,
            Self::List(list) => list.run(target).await,
            Self::Describe(describe) => describe.run(target).await,
            Self::Delete(delete) => delete.run(target).await,
        }
    }
}

/// Ends a command about several topics: each failure on its own lines, and exit code 1 if any.
fn finish(mut failures: Vec<Failure>, format: OutputFormat) -> Result<(), Failure> {
    let Some(last) = failures.pop() else { return Ok(()) };
    for failure in failures {
        console::say(&match format {
            OutputFormat::Text => failure.to_string(),
            OutputFormat::Json => failure.to_json(),
        });
    }
    Err(Failure { exit: Exit::Failed, ..last })
}
