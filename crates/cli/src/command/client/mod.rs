//! `strandline client`: who is connected to a Strandline broker.

mod list;

use clap::Subcommand;

use super::OutputFormat;
use super::target::Target;
use crate::failure::Failure;

/// Shows who is connected.
#[derive(Debug, Subcommand)]
pub(crate) enum Client {
    List(list::List),
}

impl Client {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::List(list) => list.format,
        }
    }

    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(target).await,
        }
    }
}
