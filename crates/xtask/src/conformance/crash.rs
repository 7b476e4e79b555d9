//! `--crash`: kgo's chains of groups, which count every key and offset, while the broker is killed with
//! SIGKILL and started again every 8 seconds.

use anyhow::{Context as _, ensure};

use super::plan::{Catalogue, FOLDER, Id};
use super::suite::lane_of;
use crate::ci::Context;
use crate::ci::process::run as call;

/// The suite whose tests account for every record.
const SUITE: &str = "kgo";
/// Records through each chain, unless `KGO_TEST_RECORDS` says otherwise: enough for some ten kills.
const RECORDS: &str = "300000";
/// Those tests; what one of them holds begins with its name.
const TESTS: [&str; 2] = ["TestGroupETL/", "TestTxnEtl/"];

/// Runs the chains that wait for nothing; whether all of them came to their end with nothing lost, doubled
/// or wrong.
pub(super) fn run(context: &Context) -> anyhow::Result<bool> {
    let root = context.root();
    let catalogue = Catalogue::read(root)?;
    let chains = chains(&catalogue);
    ensure!(!chains.is_empty(), "every chain waits for a capability to come");
    let lane = lane_of(SUITE).expect("kgo belongs to a lane");
    let tools = (lane.provision)(context)?;
    let folder = root.join("target/conformance/crash");
    let lists = folder.join("lists");
    std::fs::create_dir_all(&lists).with_context(|| format!("make {}", lists.display()))?;
    let names: Vec<&str> = chains.iter().map(|id| id.name()).collect();
    std::fs::write(lists.join(format!("{SUITE}.txt")), names.join("\n") + "\n")
        .context("write the list of chains")?;
    println!("--- {} chains while the broker is killed", chains.len());
    let script = root.join(FOLDER).join(lane.name).join("crash");
    let records = std::env::var("KGO_TEST_RECORDS").unwrap_or_else(|_| RECORDS.to_owned());
    let result = call(root, script)
        .env("KGO_TEST_RECORDS", records)
        .arg(root.join(FOLDER).join("launch"))
        .arg(folder.join("out"))
        .arg(&lists)
        .paths_first(&tools)?
        .wait();
    if let Err(error) = &result {
        println!("    {error:#}");
    }
    let log = std::fs::read(folder.join("out/broker.log")).context("read the broker's log")?;
    let log = String::from_utf8_lossy(&log);
    let panics = panics(&log);
    for line in &panics {
        println!("  FAULT  {line}");
    }
    Ok(result.is_ok() && panics.is_empty())
}

fn chains(catalogue: &Catalogue) -> Vec<&Id> {
    let counts = |id: &&Id| {
        let accounts = TESTS.iter().any(|test| id.name().starts_with(test));
        id.suite == SUITE && id.mark.is_none() && accounts
    };
    catalogue.ids.iter().filter(counts).collect()
}

/// Lines that tell of a panic: a kill is no excuse for one.
fn panics(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("panicked at")).collect()
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
    fn a_panic_in_the_log_is_found() {
        assert_eq!(panics("ready\nthread 'x' panicked at y\nready\n").len(), 1);
        assert!(panics("ready\n").is_empty());
    }
}
