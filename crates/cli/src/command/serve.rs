//! `strandline serve`: runs a broker.

use clap::Args;

use crate::failure::Failure;
use crate::serve::{self, FeatureSpec, Plan, ServeOptions, TopicSpec};

/// Runs a broker.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline serve\n  strandline serve --ephemeral --port 0 \
                        --topic orders:6\n  strandline serve --config server.properties \
                        -c log.retention.ms=7d\n  strandline serve --config server.properties \
                        --dry-run\n\nA dry run ends with 4 where a start would fail, with 3 when \
                        the database does not answer.")]
pub(crate) struct Serve {
    /// The folder for everything that is kept [default: ./strandline-data].
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    data: Option<String>,
    /// Keeps everything in memory: gone when the broker stops.
    #[arg(long)]
    ephemeral: bool,
    /// A file of Kafka's server.properties form.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// A setting that overrides the file and the environment.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Lets unknown keys pass with a warning.
    #[arg(long)]
    lenient_config: bool,
    /// The address to listen on [default: localhost].
    #[arg(long, value_name = "ADDR")]
    bind: Option<String>,
    /// The port for Kafka clients, 0 for a free one [default: 9092].
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// The port for health and metrics, 0 for a free one [default: 9644].
    #[arg(long, value_name = "N")]
    http: Option<u16>,
    /// Creates a topic if there is none of that name.
    #[arg(long = "topic", value_name = "NAME[:PARTITIONS]")]
    topics: Vec<TopicSpec>,
    /// The level of a feature where the folder has none for it yet: in a new one.
    #[arg(long = "feature", value_name = "NAME=LEVEL")]
    features: Vec<FeatureSpec>,
    /// Writes the ports that were taken to a file, as JSON, once the broker is ready.
    #[arg(long, value_name = "FILE")]
    ports_file: Option<String>,
    /// Stops when the process that started it ends.
    #[arg(long)]
    exit_with_parent: bool,
    /// Says what a start would do and whether it would work; changes nothing, serves nobody.
    #[arg(long)]
    dry_run: bool,
    /// Logs what happens, also on a terminal; twice for details.
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = ServeOptions {
            data: self.data,
            ephemeral: self.ephemeral,
            config: self.config,
            assignments: self.assignments,
            lenient: self.lenient_config,
            bind: self.bind,
            port: self.port,
            http: self.http,
            topics: self.topics,
            features: self.features,
            ports_file: self.ports_file,
            exit_with_parent: self.exit_with_parent,
            verbosity: self.verbose,
        };
        let plan = Plan::make(options, std::env::vars_os())?;
        if self.dry_run { serve::dry_run(&plan) } else { serve::run(&plan) }
    }
}
