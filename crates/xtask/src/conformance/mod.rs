//! `cargo xtask conformance`: the tests that others wrote for Kafka's clients, against our broker.
//!
//! The suites come as packages at pinned versions; `tests/conformance/` holds the lists of what passes
//! on Apache Kafka, one script for each lane, and the marks on what waits for a capability to come. This
//! module brings what the scripts need, starts and watches the broker, runs failed tests once more,
//! and judges.

mod apis;
mod broker;
pub(crate) mod compat;
mod crash;
mod facts;
mod outcome;
mod pattern;
mod plan;
mod results;
pub(crate) mod storage;
mod suite;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::ci::Context;
use crate::ci::process::run as call;
use broker::Broker;
use outcome::{Count, Reports, Verdict, judge, read_reports, runs_again, worse};
use plan::{Catalogue, Choice, FOLDER, Id};
use storage::{Storage, Store};
use suite::{BrokerFor, LANES, Lane, Tools};
use table::{Outcome, Stamp, Table};

const USAGE: &str =
    "usage: cargo xtask conformance [LANE ...] [--fast] [--unmarked] [--twice] [--only PATTERN]
                               [--storage STORAGE] [--record]
       cargo xtask conformance --crash [--storage STORAGE]

  LANE            python, go, rust, java, java-apps; all without
  --fast          what CI runs at each change; nothing that is marked
  --unmarked      nothing that waits for a capability to come
  --twice         two rounds, the second without what is marked; of two results the worse one counts
  --only PATTERN  only ids like this (`*` stands for any text): 'kgo/Test*ETL*'
  --crash         instead of the lanes: chains of groups whose every record is counted, while the
                  broker is killed and restarted every 8 s
  --storage STORAGE
                  where the brokers keep topics and metadata: `file` (without this option), or
                  `postgres`, in a server that the run starts
  --record        keep the results in tests/conformance/results.tsv (results-postgres.tsv) and write
                  docs/compat.md and docs/compat/ anew";

/// What a run is asked to do.
#[derive(Debug, Default)]
struct Options {
    choice: Choice,
    twice: bool,
    record: bool,
    crash: bool,
    storage: Storage,
}

/// The suites that CI runs on PostgreSQL too.
const ON_POSTGRES: [&str; 2] = ["kafka-python", "kgo"];

/// Verdicts of one round by full id.
type Verdicts = BTreeMap<String, Verdict>;

/// What all rounds gave, by full id.
type Outcomes = BTreeMap<String, Outcome>;

/// Runs `cargo xtask conformance` with the words that follow it.
pub(crate) fn run(root: PathBuf, words: &[&str]) -> anyhow::Result<ExitCode> {
    let options = options(words)?;
    let context = Context::new(root, false);
    call(context.root(), "cargo")
        .words("build --locked --release --package strandline-cli")
        .wait()?;
    let good = if options.crash {
        crash::run(&context, options.storage)?
    } else {
        run_lanes(&context, &options)?
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The part that runs at each change; fails unless all of it passes.
pub(crate) fn run_fast(context: &Context) -> anyhow::Result<()> {
    let choice = Choice { fast: true, ..Choice::default() };
    pass(context, &Options { choice, ..Options::default() })
}

/// The suites of the fast part that run at each change with everything in PostgreSQL too.
pub(crate) fn run_fast_on_postgres(context: &Context) -> anyhow::Result<()> {
    for suite in ON_POSTGRES {
        let only = Some(format!("{suite}/*"));
        let choice = Choice { fast: true, only, ..Choice::default() };
        pass(context, &Options { choice, storage: Storage::Postgres, ..Options::default() })?;
    }
    Ok(())
}

fn pass(context: &Context, options: &Options) -> anyhow::Result<()> {
    if !run_lanes(context, options)? {
        bail!("see the lines above");
    }
    Ok(())
}

fn options(words: &[&str]) -> anyhow::Result<Options> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--fast" => options.choice.fast = true,
            "--unmarked" => options.choice.unmarked = true,
            "--twice" => options.twice = true,
            "--record" => options.record = true,
            "--crash" => options.crash = true,
            "--storage" => {
                let name = words.next().with_context(|| format!("--storage what?\n{USAGE}"))?;
                options.storage = Storage::named(name)?;
            }
            "--only" => {
                let pattern = words.next().with_context(|| format!("--only what?\n{USAGE}"))?;
                options.choice.only = Some((*pattern).to_owned());
            }
            name => match LANES.iter().find(|lane| lane.name == name) {
                Some(lane) => options.choice.lanes.push(lane.name),
                None => bail!("no lane is called `{name}`\n{USAGE}"),
            },
        }
    }
    let Options { choice, twice, record, crash, storage: _ } = &options;
    let narrows =
        choice.fast || choice.unmarked || choice.only.is_some() || !choice.lanes.is_empty();
    if *crash && (narrows || *twice || *record) {
        bail!("--crash stands alone\n{USAGE}");
    }
    Ok(options)
}

/// Whether everything that should pass did.
fn run_lanes(context: &Context, options: &Options) -> anyhow::Result<bool> {
    let root = context.root();
    let catalogue = Catalogue::read(root)?;
    let stamp = Stamp::now(root)?;
    let folder = root.join("target/conformance").join(options.storage.folder());
    let store = Store::start(context, options.storage, &folder)?;
    let mut outcomes = Outcomes::new();
    let mut faults = Vec::new();
    for round in 1..=if options.twice { 2 } else { 1 } {
        for lane in lanes(&options.choice) {
            let mut choice = options.choice.clone();
            choice.unmarked |= round > 1;
            let ids = catalogue.chosen(lane, &choice);
            if ids.is_empty() {
                continue;
            }
            let began = Instant::now();
            println!("--- {}, round {round}: {} ids", lane.name, ids.len());
            let (found, fault) = run_lane(context, lane, &ids, &store, &folder)?;
            say(lane, &ids, &found);
            println!("    {} took {:.0} s", lane.name, began.elapsed().as_secs_f64());
            if let Some(fault) = fault {
                println!("  FAULT  {}: {fault}", lane.name);
                faults.push(lane.name);
            }
            merge(&mut outcomes, found);
        }
    }
    let known = |id: &str| catalogue.ids.iter().any(|known| known.full == id);
    let mut table = Table::default();
    table.put(&outcomes, &stamp, &known);
    let path = folder.join("results.tsv");
    std::fs::write(&path, table.text()).with_context(|| format!("write {}", path.display()))?;
    if options.record {
        let name = table::kept(options.storage);
        let mut kept = Table::read(root, name)?;
        kept.put(&outcomes, &stamp, &known);
        std::fs::write(root.join(name), kept.text()).context("keep the results")?;
        compat::write(root)?;
    }
    let mut count = Count::default();
    for outcome in outcomes.values() {
        count.add(&outcome.verdict);
    }
    println!("conformance: {count}");
    if !faults.is_empty() {
        println!("conformance: the broker failed in {}, whatever passed", faults.join(", "));
    }
    Ok(count.failed == 0 && faults.is_empty())
}

fn lanes(choice: &Choice) -> impl Iterator<Item = &'static Lane> {
    LANES.iter().filter(|lane| choice.lanes.is_empty() || choice.lanes.contains(&lane.name))
}

fn merge(all: &mut Outcomes, found: Verdicts) {
    for (id, verdict) in found {
        let outcome = match all.remove(&id) {
            Some(before) => {
                Outcome { verdict: worse(before.verdict, verdict), rounds: before.rounds + 1 }
            }
            None => Outcome { verdict, rounds: 1 },
        };
        all.insert(id, outcome);
    }
}

/// Runs a lane's ids, those that should have passed once more; the verdicts, and what was wrong with the
/// broker's life.
fn run_lane(
    context: &Context,
    lane: &Lane,
    ids: &[&Id],
    store: &Store,
    folder: &Path,
) -> anyhow::Result<(Verdicts, Option<String>)> {
    let folder = folder.join(lane.name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let tools = (lane.provision)(context)?;
    call(context.root(), script(context, lane)).arg("prepare").paths_first(&tools)?.wait()?;

    let launch = context.root().join(FOLDER).join("launch");
    let broker = match lane.broker {
        BrokerFor::EachTest => None,
        BrokerFor::All { .. } => {
            let file = context.root().join(FOLDER).join(lane.name).join("broker.properties");
            let text = std::fs::read_to_string(file).context("read the broker's properties")?;
            let properties = broker::properties(&text);
            Some(Broker::start(&launch, &folder.join("broker"), &properties, store)?)
        }
    };
    let first = try_ids(context, lane, &tools, ids, store, &folder.join("first"))?;
    let again: Vec<&Id> = ids.iter().copied().filter(|id| runs_again(id, &first)).collect();
    let second = if again.is_empty() {
        Reports::new()
    } else {
        try_ids(context, lane, &tools, &again, store, &folder.join("second"))?
    };
    let fault = broker.map(Broker::stop).transpose()?.flatten();
    let verdicts = ids.iter().map(|id| (id.full.clone(), judge(id, &first, &second)));
    Ok((verdicts.collect(), fault))
}

fn script(context: &Context, lane: &Lane) -> PathBuf {
    context.root().join(FOLDER).join(lane.name).join("run")
}

/// Runs the ids once, their results in `folder`.
fn try_ids(
    context: &Context,
    lane: &Lane,
    tools: &Tools,
    ids: &[&Id],
    store: &Store,
    folder: &Path,
) -> anyhow::Result<Reports> {
    let lists = folder.join("lists");
    std::fs::create_dir_all(&lists).with_context(|| format!("make {}", lists.display()))?;
    for suite in lane.suites {
        let names: Vec<&str> =
            ids.iter().filter(|id| id.suite == suite.name).map(|id| id.name()).collect();
        if !names.is_empty() {
            let list = names.join("\n") + "\n";
            std::fs::write(lists.join(format!("{}.txt", suite.name)), list)
                .context("write a list")?;
        }
    }
    let mut script = call(context.root(), script(context, lane))
        .arg(&lists)
        .arg(folder)
        .paths_first(tools)?
        .env("LAUNCH", context.root().join(FOLDER).join("launch"));
    if let Some((name, value)) = store.variables() {
        script = script.env(name, value);
    }
    let ([a, b, c, d], port) = broker::ADDRESS;
    let host = format!("{a}.{b}.{c}.{d}");
    script = script.env("KAFKA", format!("{host}:{port}"));
    if let BrokerFor::All { sasl_port: Some(port) } = lane.broker {
        script = script.env("SASL", format!("{host}:{port}"));
    }
    // The script's own end says nothing: a test that is missing from its results did not run.
    if let Err(error) = script.wait() {
        println!("    {error:#}");
    }
    let path = folder.join("results.tsv");
    let text = if path.exists() {
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?
    } else {
        String::new()
    };
    read_reports(&text).with_context(|| path.display().to_string())
}

/// Prints what a reader should know of single ids, and a line for each suite.
fn say(lane: &Lane, ids: &[&Id], found: &Verdicts) {
    for suite in lane.suites {
        let mut count = Count::default();
        for id in ids.iter().filter(|id| id.suite == suite.name) {
            let verdict = &found[&id.full];
            count.add(verdict);
            match verdict {
                Verdict::Failed(why) => println!("  FAIL   {}: {why}", id.full),
                Verdict::Passed { second_try: true } => {
                    println!("  again  {}: passed on the second try", id.full);
                }
                Verdict::Marked { capability, passes: true } => {
                    println!("  marked {}: passes without [{capability}]", id.full);
                }
                Verdict::Passed { second_try: false } | Verdict::Marked { passes: false, .. } => {}
            }
        }
        if count != Count::default() {
            println!("    {}: {count}", suite.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_options() {
        let read = options(&["go", "--fast", "--only", "kgo/*", "python", "--twice"]).unwrap();
        assert_eq!(read.choice.lanes, ["go", "python"]);
        assert!(read.choice.fast && read.twice && !read.record);
        assert_eq!(read.choice.only.as_deref(), Some("kgo/*"));
        assert!(options(&["cobol"]).is_err());
        assert!(options(&["--only"]).is_err());
        assert!(options(&["--crash"]).unwrap().crash);
        assert!(options(&["--crash", "go"]).is_err());
        assert_eq!(
            options(&["--crash", "--storage", "postgres"]).unwrap().storage,
            Storage::Postgres
        );
        assert!(options(&["--storage"]).is_err() && options(&["--storage", "tape"]).is_err());
    }

    #[test]
    fn lanes_run_in_their_order_and_all_without_a_name() {
        let choice = Choice { lanes: vec!["java", "python"], ..Choice::default() };
        let names: Vec<_> = lanes(&choice).map(|lane| lane.name).collect();
        assert_eq!(names, ["python", "java"]);
        assert_eq!(lanes(&Choice::default()).count(), LANES.len());
    }

    #[test]
    fn of_two_rounds_the_worse_is_kept() {
        let mut all = Outcomes::new();
        let one = |verdict| Verdicts::from([("kgo/A".to_owned(), verdict)]);
        let failed = Verdict::Failed("why".to_owned());
        merge(&mut all, one(failed.clone()));
        merge(&mut all, one(Verdict::Passed { second_try: false }));
        assert_eq!(all["kgo/A"], Outcome { verdict: failed, rounds: 2 });
    }
}
