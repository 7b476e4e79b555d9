//! The command line: one file per command.

mod config;
mod consume;
mod partitioner;
mod produce;
mod segment;
mod serve;
mod target;
mod topic;

use std::future::Future;

use clap::{Parser, Subcommand, ValueEnum};

use crate::failure::{Exit, Failure};
use target::Target;

/// A message broker that speaks Apache Kafka's protocol.
#[derive(Debug, Parser)]
#[command(name = "strandline", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    #[command(subcommand)]
    Topic(topic::Topic),
    Produce(Box<produce::Produce>),
    Consume(Box<consume::Consume>),
    #[command(subcommand)]
    Segment(segment::Segment),
    #[command(subcommand)]
    Config(config::Config),
}

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Columns for people.
    #[default]
    Text,
    /// JSON for programs.
    Json,
}

impl Cli {
    /// Whether errors are to be JSON too.
    pub(crate) fn wants_json(&self) -> bool {
        let format = match &self.command {
            Command::Serve(_) | Command::Produce(_) => OutputFormat::Text,
            Command::Consume(consume) => consume.error_format(),
            Command::Topic(topic) => topic.format(),
            Command::Segment(segment) => segment.format(),
            Command::Config(config) => config.format(),
        };
        format == OutputFormat::Json
    }

    /// Does what was asked.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let target = self.target;
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Topic(topic) => block_on(topic.run(&target)),
            Command::Produce(produce) => block_on(produce.run(&target)),
            Command::Consume(consume) => block_on(consume.run(&target)),
            Command::Segment(segment) => segment.run(),
            Command::Config(config) => config.run(),
        }
    }
}

/// Runs a client command: one task on this thread.
fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => {
            Err(Failure::new(Exit::Failed, "no_runtime", format!("cannot start: {error}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_leaf_has_an_example() {
        fn walk(command: &clap::Command, path: &str, missing: &mut Vec<String>) {
            let path = format!("{path} {}", command.get_name());
            let mut leaves = command.get_subcommands().peekable();
            if leaves.peek().is_none() {
                let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                if !after.contains("strandline ") {
                    missing.push(path.clone());
                }
            }
            for leaf in leaves {
                walk(leaf, &path, missing);
            }
        }
        let mut missing = Vec::new();
        walk(&Cli::command(), "", &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }
}
