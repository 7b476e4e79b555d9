//! `strandline storage`: the data folder of a broker that is stopped.

mod folder;
mod reconcile;
mod repair;
mod verify;

use clap::Subcommand;

use super::OutputFormat;
use crate::failure::Failure;

/// Checks the data folder of a stopped broker, sets aside what no topic knows, and repairs damaged logs.
#[derive(Debug, Subcommand)]
pub(crate) enum Storage {
    Verify(verify::Verify),
    Reconcile(reconcile::Reconcile),
    Repair(repair::RepairLogs),
}

impl Storage {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Verify(verify) => verify.format,
            Self::Reconcile(reconcile) => reconcile.format,
            Self::Repair(repair) => repair.format,
        }
    }

    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Verify(verify) => verify.run().await,
            Self::Reconcile(reconcile) => reconcile.run().await,
            Self::Repair(repair) => repair.run().await,
        }
    }
}
