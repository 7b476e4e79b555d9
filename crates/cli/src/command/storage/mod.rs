//! `strandline storage`: the data folder of a broker that is stopped.

mod adopt;
mod consent;
mod folder;
mod reconcile;
mod repair;
mod verify;

use clap::Subcommand;

use super::OutputFormat;
use crate::failure::Failure;

/// Checks the data folder of a stopped broker, sets aside what no topic knows, repairs damaged logs.
#[derive(Debug, Subcommand)]
pub(crate) enum Storage {
    Verify(verify::Verify),
    Reconcile(reconcile::Reconcile),
    Repair(repair::RepairLogs),
    Adopt(adopt::Adopt),
}

impl Storage {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Verify(verify) => verify.format,
            Self::Reconcile(reconcile) => reconcile.format,
            Self::Repair(repair) => repair.format,
            Self::Adopt(adopt) => adopt.format,
        }
    }

    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Verify(verify) => verify.run().await,
            Self::Reconcile(reconcile) => reconcile.run().await,
            Self::Repair(repair) => repair.run().await,
            Self::Adopt(adopt) => adopt.run().await,
        }
    }
}
