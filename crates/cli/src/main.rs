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

mod check;
mod command;
mod console;
mod failure;
mod format;
mod http;
mod log_levels;
mod logging;
mod progress;
mod remark;
mod serve;
mod settings;
mod table;

use std::process::ExitCode;

use clap::Parser;

use command::{Cli, OutputFormat, asks_for_json, usage_failure};
use failure::Failure;

/// Frees memory of bursts sooner and costs less per record than the system's allocator.
///
/// Without huge pages (its feature `no_thp`): with them an idle broker holds twice as much, and a
/// buffer that is given back costs 2 MiB of zeros when the next one is touched.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && asks_for_json(&words) => {
            return ended(&usage_failure(&error), OutputFormat::Json);
        }
        Err(error) => error.exit(),
    };
    let format = cli.error_format();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ended(&failure, format),
    }
}

fn ended(failure: &Failure, format: OutputFormat) -> ExitCode {
    console::say(&failure.shown(format));
    ExitCode::from(failure.exit as u8)
}
