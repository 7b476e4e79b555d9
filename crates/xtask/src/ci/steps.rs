//! The steps of CI, in the order in which they run: what is quick and often wrong comes first.

use std::process::ExitCode;

use anyhow::ensure;

use super::process::run;
use super::{Context, provision};
use crate::tidy;

/// One step of CI.
#[derive(Debug)]
pub(super) struct Step {
    /// What it is called on the command line.
    pub(super) name: &'static str,
    /// What it shows.
    pub(super) what: &'static str,
    /// In which runs it takes part.
    pub(super) when: When,
    /// Does it.
    pub(super) run: fn(&Context) -> anyhow::Result<()>,
}

/// In which runs a step takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// In every run.
    Always,
    /// Only with `--full`.
    FullOnly,
}

const fn always(name: &'static str, what: &'static str, run: StepFn) -> Step {
    Step { name, what, when: When::Always, run }
}

const fn only_full(name: &'static str, what: &'static str, run: StepFn) -> Step {
    Step { name, what, when: When::FullOnly, run }
}

type StepFn = fn(&Context) -> anyhow::Result<()>;

/// All steps.
pub(super) const STEPS: &[Step] = &[
    always("format", "the source is formatted", format),
    always("tidy", "the tree keeps its own rules", check_tree),
    always("typos", "words are spelled right", typos),
    always("clippy", "no lint is broken", clippy),
    always("test", "unit, property, transcript, conformance and crash tests", test),
    always("doc-test", "examples in the documentation run", doc_test),
    always("build", "the release build", build),
    always("fuzz", "hostile bytes never panic", fuzz),
    always("differential", "the same answers as Apache Kafka, field by field", differential),
    always("e2e", "real clients against the release build", e2e),
    always(
        "conformance",
        "tests that others wrote for Kafka's clients, the fast part",
        conformance,
    ),
    always(
        "conformance-postgres",
        "kafka-python and kgo of these, with everything in PostgreSQL",
        conformance_postgres,
    ),
    only_full("e2e-postgres", "real clients, with everything in PostgreSQL", e2e_on_postgres),
    only_full("bench-build", "the benches compile, librdkafka with them", bench_build),
];

fn format(context: &Context) -> anyhow::Result<()> {
    run(&context.root, "cargo").words("fmt --all --check").wait()
}

fn check_tree(context: &Context) -> anyhow::Result<()> {
    let code = tidy::run(&context.root, tidy::Mode::Check)?;
    ensure!(code == ExitCode::SUCCESS, "see the findings above");
    Ok(())
}

fn typos(context: &Context) -> anyhow::Result<()> {
    let typos = provision::python(context)?.join("typos");
    run(&context.root, typos).words("--config _typos.toml").wait()
}

fn clippy(context: &Context) -> anyhow::Result<()> {
    let cargo = run(&context.root, "cargo");
    cargo.words("clippy --locked --workspace --all-targets --quiet -- -D warnings").wait()
}

fn test(context: &Context) -> anyhow::Result<()> {
    provision::postgres(context)?;
    let cargo = run(&context.root, "cargo");
    let cargo =
        cargo.words("test --locked --no-fail-fast --workspace --lib --bins --tests --examples");
    crash_cuts(context, cargo).wait()
}

/// How many cuts the crash matrix makes.
fn crash_cuts(context: &Context, command: super::process::Run) -> super::process::Run {
    command.env("STRANDLINE_CRASH_CUTS", if context.full { "10000" } else { "2000" })
}

fn doc_test(context: &Context) -> anyhow::Result<()> {
    run(&context.root, "cargo").words("test --locked --workspace --doc --quiet").wait()
}

fn build(context: &Context) -> anyhow::Result<()> {
    let cargo = run(&context.root, "cargo");
    cargo
        .words("build --locked --release --package strandline-cli --package strandline-fuzz")
        .wait()
}

fn fuzz(context: &Context) -> anyhow::Result<()> {
    let fuzz = run(&context.root, context.root.join("target/release/strandline-fuzz"));
    // The ordinary run repeats itself, so that a change is judged by what it changed. New ground is
    // for the full run, which draws a seed, and for whoever fuzzes by hand.
    fuzz.words(if context.full { "all --seconds 300" } else { "all --seconds 20 --seed 1" }).wait()
}

fn differential(context: &Context) -> anyhow::Result<()> {
    provision::kafka(context)?;
    let compare = || {
        let cargo = run(&context.root, "cargo");
        cargo.words("run --locked --quiet --package strandline-differential --")
    };
    compare().wait()?;
    if context.full {
        provision::postgres(context)?;
        compare().words("--storage postgres").wait()?;
    }
    Ok(())
}

fn e2e(context: &Context) -> anyhow::Result<()> {
    e2e_on(context, "file")
}

fn e2e_on_postgres(context: &Context) -> anyhow::Result<()> {
    e2e_on(context, "postgres")
}

fn e2e_on(context: &Context, storage: &str) -> anyhow::Result<()> {
    let python = provision::python(context)?;
    let go = provision::go(context)?;
    provision::kafka(context)?;
    provision::command(context, "kcat", "kcat")?;
    provision::postgres(context)?;
    provision::command(context, "npm", "nodejs npm")?;
    run(&context.root, python.join("python"))
        .words("-m pytest -c tests/e2e/pytest.ini --rootdir tests/e2e --durations=10 tests/e2e")
        // Most tests wait for clients most of the time. The files keep their order: what builds
        // foreign clients comes early.
        .words("-n 3 --dist loadfile --no-loadscope-reorder")
        .env("GOTOOLCHAIN", "local")
        .env("E2E_STORAGE", storage)
        .path_first(&go)?
        .wait()
}

fn conformance(context: &Context) -> anyhow::Result<()> {
    crate::conformance::run_fast(context)
}

fn conformance_postgres(context: &Context) -> anyhow::Result<()> {
    crate::conformance::run_fast_on_postgres(context)
}

fn bench_build(context: &Context) -> anyhow::Result<()> {
    let cargo = run(&context.root, "cargo");
    cargo
        .words("clippy --locked --package strandline-bench --all-targets --features librdkafka")
        .words("--quiet -- -D warnings")
        .wait()
}
