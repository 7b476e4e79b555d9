//! The same requests, good, odd and hostile, to Apache Kafka and to Strandline: decoded answers are
//! compared field by field, and every difference is either a rule or a failure.
//!
//! ```text
//! differential [--kafka ADDRESS] [--strandline ADDRESS] [--storage STORAGE] [--only PART,PART]
//! ```
//!
//! A broker whose address is not given (by flag, or by `STRANDLINE_DIFF_KAFKA` and
//! `STRANDLINE_DIFF_STRANDLINE`) is started here, both with the same properties, and both must be
//! empty. `--storage postgres` starts a PostgreSQL server as well, for ours to keep topics and metadata in.
//! `--only` names parts of the script. Two addresses of Apache Kafka compare it with itself, which must find nothing.
//!
//! # Invariants
//! - What a broker makes up (ids, ports, times) is compared by the name that the script knows it by.
//! - Error texts are compared for presence only.

#![expect(clippy::print_stdout, reason = "a tool of the command line prints what it found")]

mod broker;
mod peer;
mod postgres;
mod rule;
mod run;
mod script;
mod socket;
mod tree;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use crate::broker::Broker;
use crate::peer::Peer;
use crate::postgres::Postgres;
use crate::rule::RULES;
use crate::run::{Difference, Run};

const USAGE: &str = "usage: differential [--kafka ADDRESS] [--strandline ADDRESS] [--storage file|postgres] [--only PART,PART]";

/// Kinds of differences that are printed; the rest is counted.
const PRINTED_MAX: usize = 200;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<bool> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        match (flag.as_str(), arguments.next()) {
            ("--kafka" | "--strandline" | "--storage" | "--only", Some(value)) => {
                options.insert(flag, value)
            }
            _ => bail!(USAGE),
        };
    }
    let given = |flag: &str, variable: &str| {
        options.get(flag).cloned().or_else(|| std::env::var(variable).ok())
    };
    let kafka = match given("--kafka", "STRANDLINE_DIFF_KAFKA") {
        Some(address) => Peer::at(address),
        None => Peer::start_kafka()?,
    };
    let storage = options.get("--storage").map(String::as_str);
    let ours = match (given("--strandline", "STRANDLINE_DIFF_STRANDLINE"), storage) {
        (Some(address), None) => Peer::at(address),
        (None, None | Some("file")) => Peer::start_strandline(&[])?,
        (None, Some("postgres")) => {
            let database = Postgres::start()?;
            Peer::start_strandline(&database.properties())?.with(database)
        }
        _ => bail!(USAGE),
    };
    let begun = Instant::now();
    let (kafka, ours) = (Broker::new(kafka.address()), Broker::new(ours.address()));
    let mut run = Run::new(kafka, ours);
    script::run(&mut run, options.get("--only").map(String::as_str))?;
    report(&run);
    println!("took {:.1} s", begun.elapsed().as_secs_f64());
    Ok(run.differences.is_empty())
}

fn report(run: &Run) {
    let mut kinds: BTreeMap<(&str, String, &str, &str), Vec<&Difference>> = BTreeMap::new();
    for difference in &run.differences {
        let Difference { api, path, kafka, ours, .. } = difference;
        kinds.entry((api, without_keys(path), kafka, ours)).or_default().push(difference);
    }
    for ((api, path, kafka, ours), all) in kinds.iter().take(PRINTED_MAX) {
        println!("{:4} × {api} {path}: kafka {kafka}, strandline {ours}", all.len());
        let first = all.first().expect("a kind has a difference");
        println!("       first: v{} {}: {}", first.version, first.case, first.path);
    }
    println!("{} cases, {} fields", run.cases, run.fields);
    for (rule, used) in RULES.iter().zip(run.used) {
        println!("{used:6} × {}: {}", rule.name, rule.because);
    }
    println!("{} differences of {} kinds without a rule", run.differences.len(), kinds.len());
}

/// A path whose elements have no names: `topics[].error_code`.
fn without_keys(path: &str) -> String {
    let mut depth = 0_usize;
    let kept = |char: &char| {
        let inside = depth > 0;
        match char {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => return !inside,
        }
        true
    };
    path.chars().filter(kept).collect()
}
