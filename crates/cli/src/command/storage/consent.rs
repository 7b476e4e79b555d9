//! Whether a command that changes a folder may do what it has found.

use clap::Args;

/// Without a word of either kind it is shown what would be done, and the command fails.
#[derive(Debug, Args)]
pub(super) struct Consent {
    /// Only shows what would be done.
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
    /// Confirms.
    #[arg(short, long)]
    pub(super) yes: bool,
}
