//! `cargo xtask ci`: every check of the project, as CI and a person run it.
//!
//! The steps run in order and stop at the first that fails. A step brings what it needs (see
//! [`provision`]) or fails with what is missing: none is ever left out without a word, and the summary
//! names those that did not run.

pub(crate) mod process;
pub(crate) mod provision;
mod steps;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;

use steps::{STEPS, Step, When};

/// What every step knows.
#[derive(Debug)]
pub(crate) struct Context {
    /// The workspace's folder.
    root: PathBuf,
    /// Whether the long form of each check was asked for.
    full: bool,
}

impl Context {
    /// What a command outside of CI knows, which calls the same helpers.
    pub(crate) fn new(root: PathBuf, full: bool) -> Self {
        Self { root, full }
    }

    /// The workspace's folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

const USAGE: &str = "usage: cargo xtask ci [--full | --list | STEP ...]

  without arguments   all steps, each with the sample that fits in CI
  --full              all steps in full, with those that only then run
  STEP ...            these steps alone (with --full: in full)
  --list              name the steps";

/// Runs `cargo xtask ci` with the words that follow it.
pub(crate) fn run(root: PathBuf, words: &[&str]) -> anyhow::Result<ExitCode> {
    let full = words.contains(&"--full");
    let named: Vec<&str> = words.iter().copied().filter(|&word| word != "--full").collect();
    if named == ["--list"] {
        for step in STEPS {
            let when = if step.when == When::FullOnly { "  (only with --full)" } else { "" };
            println!("{:<14} {}{when}", step.name, step.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let plan = plan(full, &named)?;
    let context = Context { root, full };
    Ok(if run_all(&context, &plan) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn plan(full: bool, named: &[&str]) -> anyhow::Result<Vec<&'static Step>> {
    if let Some(unknown) = named.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        bail!("no step is called `{unknown}`\n{USAGE}");
    }
    let chosen = |step: &&Step| {
        if named.is_empty() {
            full || step.when == When::Always
        } else {
            named.contains(&step.name)
        }
    };
    Ok(STEPS.iter().filter(chosen).collect())
}

/// Whether all steps passed.
fn run_all(context: &Context, plan: &[&Step]) -> bool {
    let began = Instant::now();
    let mut done: Vec<(&str, Duration, Outcome)> = Vec::new();
    for step in plan {
        let failed_before = done.iter().any(|(_, _, outcome)| *outcome == Outcome::Failed);
        if failed_before {
            done.push((step.name, Duration::ZERO, Outcome::NotRun));
            continue;
        }
        println!("\n==> {}: {}", step.name, step.what);
        let began = Instant::now();
        let outcome = match (step.run)(context) {
            Ok(()) => Outcome::Passed,
            Err(error) => {
                println!("{} failed: {error:#}", step.name);
                Outcome::Failed
            }
        };
        println!("<== {}: {:.1} s", step.name, began.elapsed().as_secs_f64());
        done.push((step.name, began.elapsed(), outcome));
    }
    summarize(&done, began.elapsed())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    NotRun,
}

/// Prints a line for each step, the total last; whether all passed.
fn summarize(done: &[(&str, Duration, Outcome)], total: Duration) -> bool {
    println!();
    for (name, took, outcome) in done {
        let word = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::NotRun => "not run",
        };
        println!("{name:<14} {word:<8} {:>8.1} s", took.as_secs_f64());
    }
    println!("{:<14} {:<8} {:>8.1} s", "total", "", total.as_secs_f64());
    let count = |wanted| done.iter().filter(|(_, _, outcome)| *outcome == wanted).count();
    let (passed, failed) = (count(Outcome::Passed), count(Outcome::Failed));
    // The form that readers of a CI log, people or not, look for.
    match count(Outcome::NotRun) {
        0 => println!("steps: {passed} passed, {failed} failed"),
        not_run => println!("steps: {passed} passed, {failed} failed, {not_run} skipped"),
    }
    failed == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(full: bool, named: &[&str]) -> Vec<&'static str> {
        plan(full, named).expect("known names").iter().map(|step| step.name).collect()
    }

    #[test]
    fn the_full_run_holds_every_step_and_the_ordinary_one_only_those_for_always() {
        assert_eq!(names(true, &[]).len(), STEPS.len());
        assert!(names(false, &[]).iter().all(|name| names(true, &[]).contains(name)));
        assert!(STEPS.iter().any(|step| step.when == When::FullOnly));
    }

    #[test]
    fn named_steps_run_alone_and_in_the_list_order() {
        assert_eq!(names(false, &["tidy", "format"]), ["format", "tidy"]);
        assert!(plan(false, &["no-such-step"]).is_err());
    }

    #[test]
    fn a_failed_step_fails_the_run_and_the_rest_is_said_not_to_have_run() {
        let step = |name, run| Step { name, what: "", when: When::Always, run };
        let (good, bad) = (step("good", |_| Ok(())), step("bad", |_| bail!("as it should")));
        let context = Context { root: PathBuf::new(), full: false };
        assert!(run_all(&context, &[&good, &good]));
        assert!(!run_all(&context, &[&good, &bad, &good]));
        let done =
            [("bad", Duration::ZERO, Outcome::Failed), ("x", Duration::ZERO, Outcome::NotRun)];
        assert!(!summarize(&done, Duration::ZERO));
    }
}
