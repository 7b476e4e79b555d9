//! `--crash`: kgo's chains of groups, which count every key and offset, while the broker is killed with
//! SIGKILL and started again every 8 seconds.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::plan::{Catalogue, FOLDER, Id};
use super::storage::{Storage, Store};
use super::suite::{Lane, Tools, lane_of};
use crate::ci::Context;
use crate::ci::process::run as call;

/// The suite whose tests account for every record.
const SUITE: &str = "kgo";
/// Records through each chain, unless `KGO_TEST_RECORDS` says otherwise.
const RECORDS: &str = "200000";
/// Kills in a try, unless `CRASH_KILLS` says otherwise.
const KILLS: &str = "10";
/// Those tests; what one of them holds begins with its name.
const TESTS: [&str; 2] = ["TestGroupETL/", "TestTxnEtl/"];
/// How often a chain may begin. These tests end at the first error of a poll, and a member that was joining
/// when the broker was killed is right to report one.
const TRIES_MAX: usize = 4;
/// What the tests say of lost, doubled and wrong records and offsets; there is no second try after that.
const FAULTS: [&str; 8] = [
    "saw double offset",
    "out of order",
    "consumed too much",
    "body not what was expected",
    "produce err",
    "keys != exp",
    "got key ",
    "to have offset 0",
];

/// Runs the chains that wait for nothing; whether all of them came to their end with nothing lost, doubled
/// or wrong.
pub(super) fn run(context: &Context, storage: Storage) -> anyhow::Result<bool> {
    let catalogue = Catalogue::read(context.root())?;
    let chains = chains(&catalogue);
    ensure!(!chains.is_empty(), "every chain waits for a capability to come");
    let lane = lane_of(SUITE).expect("kgo belongs to a lane");
    let tools = (lane.provision)(context)?;
    let folder = context.root().join("target/conformance").join(storage.folder()).join("crash");
    let store = Store::start(context, storage, &folder)?;
    let mut left: Vec<&str> = chains.iter().map(|id| id.name()).collect();
    for number in 1..=TRIES_MAX {
        println!("--- {} chains while the broker is killed, try {number}", left.len());
        let outcome =
            one_try(context, lane, &tools, &left, &store, &folder.join(number.to_string()))?;
        for line in &outcome.faults {
            println!("  FAULT  {line}");
        }
        if !outcome.faults.is_empty() {
            return Ok(false);
        }
        left.retain(|name| !outcome.passed.contains(*name));
        if left.is_empty() {
            return Ok(true);
        }
    }
    println!("not come to their end in {TRIES_MAX} tries: {}", left.join(", "));
    Ok(false)
}

/// What a try showed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    passed: BTreeSet<String>,
    /// Lines that tell of a fault of the broker's.
    faults: Vec<String>,
}

fn one_try(
    context: &Context,
    lane: &Lane,
    tools: &Tools,
    names: &[&str],
    store: &Store,
    folder: &Path,
) -> anyhow::Result<Outcome> {
    let root = context.root();
    let (lists, out) = (folder.join("lists"), folder.join("out"));
    std::fs::create_dir_all(&lists).with_context(|| format!("make {}", lists.display()))?;
    std::fs::write(lists.join(format!("{SUITE}.txt")), names.join("\n") + "\n")
        .context("write the list of chains")?;
    let or = |name, standard: &str| std::env::var(name).unwrap_or_else(|_| standard.to_owned());
    let mut script = call(root, root.join(FOLDER).join(lane.name).join("crash"))
        .arg(root.join(FOLDER).join("launch"))
        .arg(&out)
        .arg(&lists)
        .env("KGO_TEST_RECORDS", or("KGO_TEST_RECORDS", RECORDS))
        .env("CRASH_KILLS", or("CRASH_KILLS", KILLS))
        .paths_first(tools)?;
    if let Some((name, value)) = store.variables() {
        script = script.env(name, value);
    }
    if let Err(error) = script.wait() {
        println!("    {error:#}");
    }
    let read = |name: &str| -> anyhow::Result<String> {
        let path = out.join(name);
        let bytes = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(judge(&read("verdicts")?, &read("tests.log")?, &read("broker.log")?))
}

/// Reads the files that a try leaves: a line `STATUS SECONDS ID` for each chain, and two logs.
fn judge(verdicts: &str, tests: &str, broker: &str) -> Outcome {
    let passed = verdicts.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let status = words.next();
        words.next_back().filter(|_| status == Some("passed")).map(str::to_owned)
    });
    let wrong = |line: &&str| FAULTS.iter().any(|fault| line.contains(fault));
    // A kill is no excuse for a panic in one of the broker's lives.
    let panics = broker.lines().filter(|line| line.contains("panicked at"));
    let faults = tests.lines().filter(wrong).chain(panics).map(|line| line.trim().to_owned());
    Outcome { passed: passed.collect(), faults: faults.collect() }
}

fn chains(catalogue: &Catalogue) -> Vec<&Id> {
    let counts = |id: &&Id| {
        let accounts = TESTS.iter().any(|test| id.name().starts_with(test));
        id.suite == SUITE && id.mark.is_none() && accounts
    };
    catalogue.ids.iter().filter(counts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_tests_that_account_and_wait_for_nothing() {
        let catalogue = Catalogue::read(&crate::root()).unwrap();
        let names: Vec<&str> = chains(&catalogue).iter().map(|id| id.name()).collect();
        assert!(names.contains(&"TestGroupETL/range"), "{names:?}");
        assert!(names.iter().all(|name| !name.contains("848")), "{names:?}");
    }

    #[test]
    fn a_chain_that_met_an_error_may_try_again_but_not_after_a_fault() {
        let verdicts = "passed 9.1 TestGroupETL/range\nfailed 3.2 TestGroupETL/sticky\n";
        let error = "poll got unexpected errs: [{ 0 unable to join group session: x}]\n";
        let outcome = judge(verdicts, error, "ready\n");
        assert_eq!(outcome.passed, BTreeSet::from(["TestGroupETL/range".to_owned()]));
        assert!(outcome.faults.is_empty());
        let fault = "    sendErr group=g: saw double offset t x p1o2\n";
        assert_eq!(judge(verdicts, fault, "").faults, [fault.trim()]);
        assert_eq!(judge(verdicts, "", "thread 'x' panicked at y\n").faults.len(), 1);
    }
}
