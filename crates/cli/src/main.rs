//! The binary `strandline`.
//!
//! Reads the command line and hands over to one file per command. This crate alone knows which
//! engines exist, where settings come from and how words reach a person; everything below it is
//! told.
//!
//! # Invariants
//! - stdout carries data only; every other word goes to stderr.
//! - No command asks a question: what needs a confirmation needs a flag.
//! - Exit codes: 0 done, 1 an item failed, 2 usage or configuration, 3 not reached, 4 a check is
//!   not satisfied.

#![expect(
    clippy::format_push_string,
    reason = "short texts for people; `write!` adds a result to drop"
)]
#![expect(clippy::doc_markdown, reason = "doc comments of arguments are the text of --help")]

mod command;
mod console;
mod failure;
mod format;
mod http;
mod log_levels;
mod logging;
mod progress;
mod serve;
mod settings;
mod table;

use std::process::ExitCode;

use clap::Parser;

use command::Cli;

/// Frees memory of bursts sooner and costs less per record than the system's allocator.
///
/// Without huge pages (its feature `no_thp`): with them an idle broker holds twice as much, and a
/// buffer that is given back costs 2 MiB of zeros when the next one is touched.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.wants_json();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            console::say(&if json { failure.to_json() } else { failure.to_string() });
            ExitCode::from(failure.exit as u8)
        }
    }
}
