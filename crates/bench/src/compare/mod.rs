//! The comparison: contenders in alternation, ratios of medians, bars and aims.

pub mod database;
mod database_run;
pub mod report;
mod rows;
pub mod run;
pub mod suite;
mod upkeep;
pub mod workload;

use std::io::Write;

use anyhow::{Result, ensure};

use self::report::{Outcome, Report, SideOutcome};
use self::run::Runner;
use self::workload::{Shape, Side, Workload};
use crate::contender::{Contender, Programs};
use crate::measure::machine::Machine;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of workloads; all when empty.
    pub only: Vec<String>,
    /// How many rounds of each.
    pub rounds: usize,
    /// The programs.
    pub programs: Programs,
    /// Whether the sitting has a network of its own.
    pub own_network: bool,
}

/// Runs the suite, or a part of it; progress goes to `progress`.
pub fn compare(options: &Options, progress: &mut impl Write) -> Result<Report> {
    let mut suite = suite::all();
    for name in &options.only {
        ensure!(
            suite.iter().any(|workload| workload.name == name),
            "no such workload. name=`{name}`, names=`{}`",
            suite.iter().map(|workload| workload.name).collect::<Vec<_>>().join(" ")
        );
    }
    suite.retain(|workload| {
        options.only.is_empty() || options.only.iter().any(|name| name == workload.name)
    });
    let machine = Machine::ask(options.own_network);
    let mut runner = Runner::new(options.programs.clone());
    let mut workloads = Vec::new();
    for workload in &mut suite {
        if options.programs.kafka.is_some() {
            add_kafka(workload);
            rows::add_kafka(workload);
        }
        workloads.push(alternate(workload, options.rounds, &mut runner, progress)?);
    }
    Ok(Report { machine, workloads })
}

/// Kafka runs what Strandline runs, where the two are compared with a reference.
fn add_kafka(workload: &mut Workload) {
    let ours = |side: &&Side| side.label == "strandline";
    let shape = |side: &Side| {
        use Shape::{Database, Estate, Idle, Start};
        !matches!(side.shape, Start | Idle { .. } | Estate(_) | Database(_))
    };
    if let Some(&ours) = workload.sides.iter().find(ours).filter(|side| shape(side)) {
        workload.sides.push(Side { label: "kafka", contender: Contender::Kafka, ..ours });
    }
}

/// A contender that fails ends its workload, not the sitting: the report says so.
fn alternate(
    workload: &Workload,
    rounds: usize,
    runner: &mut Runner,
    progress: &mut impl Write,
) -> Result<Outcome> {
    let mut sides: Vec<_> = workload
        .sides
        .iter()
        .map(|side| SideOutcome { label: side.label, samples: Vec::new() })
        .collect();
    let mut error = None;
    'rounds: for round in 1..=rounds.min(workload.rounds_max) {
        for (side, outcome) in workload.sides.iter().zip(&mut sides) {
            writeln!(progress, "{} · round {round} · {}", workload.name, side.label)?;
            match runner.run(side) {
                Ok(sample) => outcome.samples.push(sample),
                Err(failed) => {
                    error = Some(format!("{failed:#}"));
                    break 'rounds;
                }
            }
        }
    }
    Ok(Outcome::judge(workload, sides, error))
}
