//! `strandline-bench compare`: Strandline beside what is possible, in alternated rounds.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use strandline_bench::compare::{self, Options};
use strandline_bench::contender::Programs;
use strandline_bench::drive::batches::{self, Batches};
use strandline_bench::drive::fetch::{self, Fetch};
#[cfg(feature = "librdkafka")]
use strandline_bench::drive::librdkafka::Client;
use strandline_bench::drive::setup;
use strandline_bench::drive::unbatched::{self, Unbatched};
use strandline_bench::namespace::{self, Network};

/// Measures Strandline beside reference brokers that do the least possible.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts the contenders, alternates them in rounds and reports ratios of medians.
    Compare(Compare),
    /// Puts one load on a broker that runs already, to profile it.
    Load(LoadArgs),
}

#[derive(Parser)]
struct Compare {
    /// Only these workloads.
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<String>,
    /// Rounds of each workload.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Where the report goes as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The release build of Strandline; default: beside this program.
    #[arg(long, value_name = "FILE")]
    strandline: Option<PathBuf>,
    /// A script that starts Apache Kafka as `SCRIPT start DIR PORT key=value...`; then it takes part.
    #[arg(long, value_name = "SCRIPT")]
    kafka: Option<PathBuf>,
    /// Where the contenders keep their data; default: the folder for temporary files.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// End with an error when a bar is missed.
    #[arg(long)]
    enforce: bool,
}

#[derive(Parser)]
struct LoadArgs {
    /// What to do.
    #[arg(value_enum)]
    kind: LoadKind,
    /// The broker.
    #[arg(long)]
    broker: SocketAddr,
    /// The topic; created when missing.
    #[arg(long, default_value = "bench")]
    topic: String,
    /// Partitions of the topic.
    #[arg(long, default_value_t = 1)]
    partitions: usize,
    /// Connections of `unbatched`.
    #[arg(long, default_value_t = 100)]
    connections: usize,
    /// Bytes of a record's value.
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,
    /// Records of `batches` and `fetch`.
    #[arg(long, default_value_t = 4_000_000)]
    records: u64,
    /// Bytes of values in a batch.
    #[arg(long, default_value_t = 1_000_000)]
    batch_bytes: usize,
    /// Seconds of `unbatched`.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LoadKind {
    Unbatched,
    Batches,
    Fetch,
    #[cfg(feature = "librdkafka")]
    Produce,
    #[cfg(feature = "librdkafka")]
    Consume,
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().command {
        Command::Compare(args) => run_compare(args),
        Command::Load(args) => {
            run_load(args)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run_compare(args: Compare) -> anyhow::Result<ExitCode> {
    let own_network = match namespace::enter()? {
        Network::Done(code) => return Ok(code),
        Network::Own => true,
        Network::Shared(why) => {
            writeln!(io::stderr(), "no network namespace of our own: {why}")?;
            false
        }
    };
    let here = std::env::current_exe()?;
    let beside = |name: &str| here.with_file_name(name);
    let options = Options {
        only: args.only,
        rounds: args.rounds,
        programs: Programs {
            null: beside("strandline-null"),
            strandline: args.strandline.unwrap_or_else(|| beside("strandline")),
            kafka: args.kafka,
            scratch: args.scratch.unwrap_or_else(std::env::temp_dir),
            properties: Vec::new(),
        },
        own_network,
    };
    let report = compare::compare(&options, &mut io::stderr())?;
    write!(io::stdout(), "{}", report.text())?;
    if let Some(path) = args.json {
        let json = serde_json::to_vec_pretty(&report)?;
        fs::write(&path, json).with_context(|| format!("write `{}`", path.display()))?;
    }
    let missed = args.enforce && !report.bars_hold();
    Ok(if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_load(args: LoadArgs) -> anyhow::Result<()> {
    let LoadArgs { broker, topic, partitions, value_bytes, records, .. } = args;
    setup::create_topic(broker, &topic, partitions, &[])?;
    let load = match args.kind {
        LoadKind::Unbatched => unbatched::run(&Unbatched {
            broker,
            topic,
            partitions,
            connections: args.connections,
            value_bytes,
            warm_up: Duration::from_millis(500),
            duration: Duration::from_secs(args.seconds),
        })?,
        LoadKind::Batches => batches::run(&Batches {
            broker,
            topic,
            partitions,
            value_bytes,
            batch_bytes: args.batch_bytes,
            records,
        })?,
        LoadKind::Fetch => {
            fetch::run(&Fetch { broker, topic, max_bytes: 8 * 1024 * 1024, records })?
        }
        #[cfg(feature = "librdkafka")]
        LoadKind::Produce => client(broker, topic, partitions, value_bytes, records).produce()?,
        #[cfg(feature = "librdkafka")]
        LoadKind::Consume => client(broker, topic, partitions, value_bytes, records).consume()?,
    };
    writeln!(
        io::stdout(),
        "{} records, {:.0}/s, {:.3} GB/s, latency {:?}",
        load.records,
        load.rate(),
        load.bytes_rate() / 1e9,
        load.latency
    )?;
    Ok(())
}

#[cfg(feature = "librdkafka")]
const fn client(
    broker: SocketAddr,
    topic: String,
    partitions: usize,
    value_bytes: usize,
    records: u64,
) -> Client {
    Client { broker, topic, partitions, value_bytes, records }
}
