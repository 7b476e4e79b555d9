//! The reference brokers as a process: `strandline-null` and its mode `--journal`.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use clap::Parser;
use rustix::process::{Signal, set_parent_process_death_signal};
use strandline_bench::null::{NullOptions, serve};
use strandline_bench::{ideal, ports};

/// The least that a Kafka client accepts as a broker: a ceiling to measure against. Not for data.
#[derive(Parser)]
struct Args {
    /// Where files go; must exist.
    #[arg(long)]
    data: PathBuf,
    /// 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where the port is written once it is open.
    #[arg(long)]
    ports_file: Option<PathBuf>,
    /// Partitions of a topic that is created by being named.
    #[arg(long, default_value_t = 1)]
    partitions: usize,
    /// Answer when the records are on disk, not when they are written.
    #[arg(long)]
    sync: bool,
    /// Be the ideal shared journal: one thread, Produce only, one write and one sync per turn.
    #[arg(long)]
    journal: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))?;
    if let Some(path) = &args.ports_file {
        ports::write(path, listener.local_addr()?.port())?;
    }
    if args.journal {
        ideal::serve(&listener, &args.data, args.sync)?;
    } else {
        serve(
            &listener,
            NullOptions { data: args.data, partitions: args.partitions, sync: args.sync },
        )?;
    }
    Ok(())
}
