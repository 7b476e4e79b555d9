//! The command line: one file per command.

mod advice;
mod alteration;
mod assignment;
mod client;
mod cluster;
mod config;
mod consume;
mod deletions;
mod error_word;
mod examples;
mod explain;
mod group;
mod names;
mod partitioner;
mod place;
mod produce;
mod quote;
mod segment;
mod serve;
mod shell;
mod storage;
mod target;
mod topic;
mod usage;

use std::future::Future;

use clap::{Parser, Subcommand, ValueEnum};

use crate::console;
use crate::failure::{Exit, Failure};
use target::Target;
pub(crate) use usage::{asks_for_json, usage_failure};

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
    #[command(subcommand)]
    Group(group::Group),
    #[command(subcommand)]
    Deletions(deletions::Deletions),
    Produce(Box<produce::Produce>),
    Consume(Box<consume::Consume>),
    #[command(subcommand)]
    Segment(segment::Segment),
    #[command(subcommand)]
    Storage(storage::Storage),
    #[command(subcommand)]
    Config(config::Config),
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    #[command(subcommand)]
    Client(client::Client),
    Explain(explain::Explain),
    Examples(examples::Examples),
    Completion(shell::Completion),
    Man(shell::Man),
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
    /// How errors are to be printed.
    pub(crate) fn error_format(&self) -> OutputFormat {
        match &self.command {
            Command::Serve(_)
            | Command::Produce(_)
            | Command::Examples(_)
            | Command::Completion(_)
            | Command::Man(_) => OutputFormat::Text,
            Command::Consume(consume) => consume.error_format(),
            Command::Topic(topic) => topic.format(),
            Command::Segment(segment) => segment.format(),
            Command::Storage(storage) => storage.format(),
            Command::Config(config) => config.format(),
            Command::Group(group) => group.format(),
            Command::Deletions(deletions) => deletions.format(),
            Command::Cluster(cluster) => cluster.format(),
            Command::Client(client) => client.format(),
            Command::Explain(explain) => explain.format,
        }
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
            Command::Storage(storage) => block_on(storage.run()),
            Command::Config(config) => config.run(&target),
            Command::Group(group) => block_on(group.run(&target)),
            Command::Deletions(deletions) => block_on(deletions.run(&target)),
            Command::Cluster(cluster) => block_on(cluster.run(&target)),
            Command::Client(client) => block_on(client.run(&target)),
            Command::Explain(explain) => explain.run(),
            Command::Examples(examples) => examples.run(),
            Command::Completion(completion) => {
                completion.run();
                Ok(())
            }
            Command::Man(man) => man.run(),
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

/// Ends a command about several things: each failure on its own lines, and exit code 1 if any; 3 if
/// none was reached.
fn finish(mut failures: Vec<Failure>, format: OutputFormat) -> Result<(), Failure> {
    let unreachable = failures.iter().all(|failure| failure.exit == Exit::Unreachable);
    let exit = if unreachable { Exit::Unreachable } else { Exit::Failed };
    let Some(last) = failures.pop() else { return Ok(()) };
    for failure in failures {
        console::say(&failure.shown(format));
    }
    Err(Failure { exit, ..last })
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
    fn what_can_be_tried_again_is_told_by_the_exit_code() {
        let failure = |exit| Failure::new(exit, "test", "failed");
        let exit = |failures: &[Exit]| {
            let failures = failures.iter().map(|exit| failure(*exit)).collect();
            finish(failures, OutputFormat::Text).map_err(|failure| failure.exit)
        };
        assert_eq!(exit(&[]), Ok(()));
        assert_eq!(exit(&[Exit::Unreachable, Exit::Unreachable]), Err(Exit::Unreachable));
        assert_eq!(exit(&[Exit::Failed, Exit::Unreachable]), Err(Exit::Failed));
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
