//! `strandline storage`: the storage that a broker would use, and the data folder of one that is stopped.

mod adopt;
mod check;
mod consent;
mod folder;
mod reconcile;
mod repair;
mod verify;

use clap::Subcommand;

use super::OutputFormat;
use crate::failure::Failure;

/// Checks what a broker would keep records in, and the data folder of a stopped one: sets aside what no
/// topic knows, repairs damaged logs.
#[derive(Debug, Subcommand)]
pub(crate) enum Storage {
    Check(check::Check),
    Verify(verify::Verify),
    Reconcile(reconcile::Reconcile),
    Repair(repair::RepairLogs),
    Adopt(adopt::Adopt),
}

impl Storage {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Check(check) => check.format,
            Self::Verify(verify) => verify.format,
            Self::Reconcile(reconcile) => reconcile.format,
            Self::Repair(repair) => repair.format,
            Self::Adopt(adopt) => adopt.format,
        }
    }

    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Check(check) => check.run().await,
            Self::Verify(verify) => verify.run().await,
            Self::Reconcile(reconcile) => reconcile.run().await,
            Self::Repair(repair) => repair.run().await,
            Self::Adopt(adopt) => adopt.run().await,
        }
    }
}
