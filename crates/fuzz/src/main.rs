//! Hostile bytes for every reader of the network and of the disk, on stable Rust.
//!
//! `strandline-fuzz TARGET|all [--seconds N] [--seed N]` mutates good inputs for a while and feeds them
//! to a [`Target`]; a panic, a hang or a runaway allocation ends the run with the input saved in
//! `fuzz/corpus/TARGET/`, where it is tried first from then on. `--keep` saves what was new, too.
//!
//! There is no coverage instrumentation: that needs a nightly compiler. Instead each target says in a
//! number *what kind of answer* an input got, and inputs with a new kind of answer are mutated further.

#![expect(clippy::print_stdout, reason = "a tool talks to the person who runs it")]

mod corpus;
mod driver;
mod mutate;
mod random;
mod target;

use std::process::{Child, Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};

use target::{TARGETS, Target};

const USAGE: &str = "usage: strandline-fuzz TARGET|all [--seconds N] [--seed N] [--keep]
       strandline-fuzz TARGET --replay FILE";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Options::parse(&words).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Options {
    target: String,
    seconds: u64,
    seed: u64,
    keep: bool,
    replay: Option<String>,
}

impl Options {
    fn parse(words: &[String]) -> anyhow::Result<Self> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut words = words.iter();
        let target = words.next().context(USAGE)?.clone();
        let mut options =
            Self { target, seconds: 20, seed: clock.as_secs(), keep: false, replay: None };
        while let Some(word) = words.next() {
            let mut value =
                || words.next().with_context(|| format!("{word} needs a value\n{USAGE}"));
            match word.as_str() {
                "--seconds" => options.seconds = value()?.parse().context("--seconds")?,
                "--seed" => options.seed = value()?.parse().context("--seed")?,
                "--replay" => options.replay = Some(value()?.clone()),
                "--keep" => options.keep = true,
                _ => bail!("unknown argument {word}\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

fn run(options: &Options) -> anyhow::Result<()> {
    if options.target == "all" {
        return run_all(options);
    }
    let target = find(&options.target)?;
    if let Some(file) = &options.replay {
        let input = std::fs::read(file).with_context(|| format!("read {file}"))?;
        println!("{}: answer {:#018x}", target.name, (target.run)(&input));
        return Ok(());
    }
    driver::limit_memory()?;
    let duration = Duration::from_secs(options.seconds);
    let report = driver::fuzz(target, duration, options.seed, options.keep)?;
    println!("{}: {report}, seed {}", target.name, options.seed);
    Ok(())
}

/// Each target in a process of its own, as many at a time as there are cores: an abort or an exhausted
/// stack ends only that one.
fn run_all(options: &Options) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut failed = Vec::new();
    for targets in TARGETS.chunks(cores) {
        let started = targets.iter().map(|target| Ok((target, start(target, options)?)));
        for (target, mut child) in started.collect::<anyhow::Result<Vec<_>>>()? {
            let status = child.wait().with_context(|| format!("wait for {}", target.name))?;
            if !status.success() {
                // An abort could not save its input; the driver wrote it down before it tried it.
                let input = driver::current_input(target);
                println!(
                    "{} ended with {status}; its last input is {}",
                    target.name,
                    input.display()
                );
                failed.push(target.name);
            }
        }
    }
    println!("{} passed, {} failed", TARGETS.len() - failed.len(), failed.len());
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn start(target: &Target, options: &Options) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("find this program")?;
    let (seconds, seed) = (options.seconds.to_string(), options.seed.to_string());
    let mut command = Command::new(program);
    command.args([target.name, "--seconds", &seconds, "--seed", &seed]);
    if options.keep {
        command.arg("--keep");
    }
    command.spawn().with_context(|| format!("start {}", target.name))
}

fn find(name: &str) -> anyhow::Result<&'static Target> {
    let names = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let found = TARGETS.iter().find(|target| target.name == name);
    found.with_context(|| format!("no target is called {name}; there are {}", names()))
}
