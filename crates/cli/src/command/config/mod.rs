//! `strandline config`: settings of a broker before it runs, and of what runs.

mod check;
mod get;
mod resource;
mod set;
mod unset;

use clap::Subcommand;
use strandline_model::config::reference_markdown;

use super::target::Target;
use super::{OutputFormat, block_on};
use crate::console;
use crate::failure::Failure;

/// Reads and changes settings: of a broker before it runs, of topics, brokers and groups.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Reads a properties file (and the environment and -c) as `serve` would, and says what it means.
    #[command(after_help = "Example:\n  strandline config check server.properties")]
    Check(check::Check),
    /// Prints every setting that is not the default, where it comes from and what it hides.
    #[command(after_help = "Example:\n  strandline config show server.properties -c node.id=2")]
    Show(check::Check),
    /// Prints the reference of all keys, as Markdown.
    #[command(after_help = "Example:\n  strandline config reference")]
    Reference,
    Get(get::Get),
    Set(set::Set),
    Unset(unset::Unset),
}

impl Config {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Check(check) | Self::Show(check) => check.format,
            Self::Reference => OutputFormat::Text,
            Self::Get(get) => get.format,
            Self::Set(set) => set.format,
            Self::Unset(unset) => unset.format,
        }
    }

    pub(super) fn run(self, target: &Target) -> Result<(), Failure> {
        match self {
            Self::Check(check) => check.check(),
            Self::Show(check) => check.show(),
            Self::Reference => {
                console::data(reference_markdown().as_bytes());
                Ok(())
            }
            Self::Get(get) => block_on(get.run(target)),
            Self::Set(set) => block_on(set.run(target)),
            Self::Unset(unset) => block_on(unset.run(target)),
        }
    }
}
