//! What a lane's script reports, and the verdict on each id.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, bail};

use super::plan::Id;

/// The last word of a suite about one id in one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// It ran and its assertions held.
    Passed,
    /// It ran and failed, with the first line of the reason.
    Failed(String),
    /// It left itself out. That shows nothing.
    Skipped(String),
}

/// Reports by full id.
pub(super) type Reports = BTreeMap<String, Report>;

/// Reads a script's `results.tsv`: suite, name, status, seconds, reason. The last line for an id counts.
pub(super) fn read_reports(text: &str) -> anyhow::Result<Reports> {
    let mut reports = Reports::new();
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [suite, name, status, _seconds, rest @ ..] = fields.as_slice() else {
            bail!("line {} of the results is not `suite, name, status, seconds`", index + 1);
        };
        let reason = rest.first().copied().unwrap_or_default().trim().to_owned();
        let report = match *status {
            "passed" => Report::Passed,
            "failed" => Report::Failed(reason),
            "skipped" | "internals" => Report::Skipped(reason),
            other => {
                return Err(anyhow::anyhow!("no status is called `{other}`"))
                    .with_context(|| format!("line {} of the results", index + 1));
            }
        };
        reports.insert(format!("{suite}/{name}"), report);
    }
    Ok(reports)
}

/// What is said of an id in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Passed on the first try, or only on the second.
    Passed { second_try: bool },
    /// Failed, or did not run, twice.
    Failed(String),
    /// Not expected to pass before the capability is there.
    Marked { capability: String, passes: bool },
}

/// How much a verdict is to be worried about: of two runs the worse one counts.
fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Marked { passes: true, .. } => 0,
        Verdict::Passed { second_try: false } => 1,
        Verdict::Passed { second_try: true } => 2,
        Verdict::Marked { passes: false, .. } => 3,
        Verdict::Failed(_) => 4,
    }
}

/// The verdict on two runs of the same id.
pub(super) fn worse(one: Verdict, other: Verdict) -> Verdict {
    if rank(&other) > rank(&one) { other } else { one }
}

/// The verdict on an id after its tries. What was not reported did not run, and what was skipped shows
/// nothing: neither is a pass.
pub(super) fn judge(id: &Id, first: &Reports, second: &Reports) -> Verdict {
    let passed = |reports: &Reports| reports.get(&id.full) == Some(&Report::Passed);
    if let Some(capability) = &id.mark {
        return Verdict::Marked { capability: capability.clone(), passes: passed(first) };
    }
    if passed(first) || passed(second) {
        return Verdict::Passed { second_try: !passed(first) };
    }
    Verdict::Failed(match second.get(&id.full).or_else(|| first.get(&id.full)) {
        None => "did not run".to_owned(),
        Some(Report::Skipped(why)) => format!("skipped: {why}"),
        Some(Report::Failed(why)) => why.clone(),
        Some(Report::Passed) => unreachable!("a pass was seen above"),
    })
}

/// Whether an id runs once more: it should have passed and did not.
pub(super) fn runs_again(id: &Id, first: &Reports) -> bool {
    id.mark.is_none() && first.get(&id.full) != Some(&Report::Passed)
}

/// How many ids got which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: usize,
    pub(super) second_try: usize,
    pub(super) failed: usize,
    pub(super) marked: usize,
    pub(super) marked_but_passes: usize,
}

impl Count {
    /// Counts one more.
    pub(super) fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed { second_try } => {
                self.passed += 1;
                self.second_try += usize::from(*second_try);
            }
            Verdict::Failed(_) => self.failed += 1,
            Verdict::Marked { passes, .. } => {
                self.marked += 1;
                self.marked_but_passes += usize::from(*passes);
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} marked", self.passed, self.failed, self.marked)?;
        if self.second_try > 0 {
            write!(f, "; {} passed on the second try", self.second_try)?;
        }
        if self.marked_but_passes > 0 {
            write!(f, "; {} of the marked pass", self.marked_but_passes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(mark: Option<&str>) -> Id {
        Id { suite: "kgo", full: "kgo/T".to_owned(), mark: mark.map(str::to_owned) }
    }

    fn reports(line: &str) -> Reports {
        read_reports(line).unwrap()
    }

    #[test]
    fn a_skip_and_a_test_that_did_not_run_have_failed() {
        let skipped = reports("kgo\tT\tskipped\t0\tno such feature");
        let none = Reports::new();
        let verdict = judge(&id(None), &skipped, &none);
        assert_eq!(verdict, Verdict::Failed("skipped: no such feature".to_owned()));
        assert_eq!(judge(&id(None), &none, &none), Verdict::Failed("did not run".to_owned()));
    }

    #[test]
    fn a_pass_on_the_second_try_is_a_pass_that_says_so() {
        let failed = reports("kgo\tT\tfailed\t1.5\twhy");
        let passed = reports("kgo\tT\tpassed\t0.1\t");
        assert_eq!(judge(&id(None), &passed, &failed), Verdict::Passed { second_try: false });
        assert_eq!(judge(&id(None), &failed, &passed), Verdict::Passed { second_try: true });
        assert_eq!(judge(&id(None), &failed, &failed), Verdict::Failed("why".to_owned()));
        assert!(runs_again(&id(None), &failed) && runs_again(&id(None), &Reports::new()));
        assert!(!runs_again(&id(None), &passed) && !runs_again(&id(Some("admin")), &failed));
    }

    #[test]
    fn a_marked_id_that_passes_is_noticed() {
        let passed = reports("kgo\tT\tpassed\t0.1\t");
        let verdict = judge(&id(Some("admin")), &passed, &Reports::new());
        assert_eq!(verdict, Verdict::Marked { capability: "admin".to_owned(), passes: true });
        let mut count = Count::default();
        count.add(&verdict);
        assert_eq!(count.to_string(), "0 passed, 0 failed, 1 marked; 1 of the marked pass");
    }

    #[test]
    fn of_two_runs_the_worse_counts() {
        let passed = Verdict::Passed { second_try: false };
        let failed = Verdict::Failed("why".to_owned());
        assert_eq!(worse(passed.clone(), failed.clone()), failed);
        assert_eq!(worse(failed.clone(), passed), failed);
    }

    #[test]
    fn a_line_that_says_nothing_known_is_refused() {
        assert!(read_reports("kgo\tT\tperhaps\t0\t").is_err());
        assert!(read_reports("kgo T passed").is_err());
    }
}
