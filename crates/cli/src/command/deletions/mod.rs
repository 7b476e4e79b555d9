//! `strandline deletions`: what is left of deleted topics on a Strandline broker.

mod change;
mod list;
mod pending;
mod show;
mod watch;

use clap::Subcommand;

use super::OutputFormat;
use super::target::Target;
use crate::failure::Failure;

pub(super) use pending::{act, find, pending};

/// Shows what is left of deleted topics, and stops, repeats or hurries its removal.
#[derive(Debug, Subcommand)]
pub(crate) enum Deletions {
    List(list::List),
    Show(show::Show),
    Pause(change::Pause),
    Resume(change::Resume),
    Retry(change::Retry),
    Purge(change::Purge),
}

impl Deletions {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::List(list) => list.format,
            Self::Show(show) => show.format,
            Self::Pause(pause) => pause.format,
            Self::Resume(resume) => resume.format,
            Self::Retry(retry) => retry.format,
            Self::Purge(purge) => purge.format,
        }
    }

    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(target).await,
            Self::Show(show) => show.run(target).await,
            Self::Pause(pause) => pause.run(target).await,
            Self::Resume(resume) => resume.run(target).await,
            Self::Retry(retry) => retry.run(target).await,
            Self::Purge(purge) => purge.run(target).await,
        }
    }
}
