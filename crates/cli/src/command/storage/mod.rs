//! `strandline storage`: the data folder of a broker that is stopped.

mod folder;
mod reconcile;
mod verify;

use clap::Subcommand;

use super::OutputFormat;
use crate::failure::Failure;

/// Checks the data folder of a stopped broker, and sets aside what no topic knows.
#[derive(Debug, Subcommand)]
pub(crate) enum Storage {
    Verify(verify::Verify),
    Reconcile(reconcile::Reconcile),
}

impl Storage {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Verify(verify) => verify.format,
            Self::Reconcile(reconcile) => reconcile.format,
        }
    }

    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Verify(verify) => verify.run().await,
            Self::Reconcile(reconcile) => reconcile.run().await,
        }
    }
}
