//! What is right and wrong with the storage that a broker would use, before it uses it: for
//! `storage check` and for `serve --dry-run`. Everything is read, nothing is changed.

mod database;
mod folder;

use serde_json::{Value, json};
use strandline_model::config::StorageEngine;

use crate::failure::{Exit, Failure};
use crate::format::counted;
use crate::serve::Plan;
use crate::table::{Align, Table};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As it should be.
    Good,
    /// It works, and somebody should look at it.
    Doubtful,
    /// A start fails, or does not keep what it promises.
    Wrong,
    /// Nobody answered; trying again makes sense.
    Unreached,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Doubtful => "warn",
            Self::Wrong | Self::Unreached => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// Of what: `folder`, `postgres`, `listener`.
    pub(crate) of: &'static str,
    /// A stable word for it.
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) remedy: Option<String>,
}

/// What is asked of a folder that a broker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To know how it is: a broker may be at work.
    Look,
    /// To start: then nobody may be.
    Start,
}

/// Looks at everything that a broker of this plan would keep something in.
pub(crate) async fn storage(plan: &Plan, purpose: Purpose) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(folder) = plan.folder() {
        checks.extend(folder::checks(folder, purpose));
    }
    if let Some(place) = &plan.config.postgres {
        checks.extend(database::checks(place).await);
    }
    for (name, engine) in
        [("records", plan.config.storage_default), ("metadata", plan.config.meta_store)]
    {
        if engine == StorageEngine::Memory {
            checks.push(Check::good("memory", name, "gone when the broker stops"));
        }
    }
    checks
}

impl Check {
    pub(crate) fn good(of: &'static str, name: &'static str, found: impl Into<String>) -> Self {
        Self { of, name, verdict: Verdict::Good, found: found.into(), remedy: None }
    }

    pub(crate) fn doubtful(
        of: &'static str,
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { of, name, verdict: Verdict::Doubtful, found: found.into(), remedy }
    }

    pub(crate) fn wrong(
        of: &'static str,
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { of, name, verdict: Verdict::Wrong, found: found.into(), remedy }
    }
}

/// For people.
pub(crate) fn table(checks: &[Check]) -> Table {
    let mut table = Table::new(&[
        ("RESULT", Align::Left),
        ("STORAGE", Align::Left),
        ("CHECK", Align::Left),
        ("FOUND", Align::Left),
        ("REMEDY", Align::Left),
    ]);
    for check in checks {
        table.row([
            check.verdict.word().to_owned(),
            check.of.to_owned(),
            check.name.to_owned(),
            check.found.clone(),
            check.remedy.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// For programs.
pub(crate) fn json_of(checks: &[Check]) -> Value {
    let each = checks.iter().map(|check| {
        json!({
            "result": check.verdict.word(),
            "storage": check.of,
            "check": check.name,
            "found": check.found,
            "remedy": check.remedy,
        })
    });
    each.collect()
}

/// How a command ends that found this.
pub(crate) fn outcome(checks: &[Check]) -> Result<(), Failure> {
    let wrong: Vec<&Check> = checks
        .iter()
        .filter(|check| matches!(check.verdict, Verdict::Wrong | Verdict::Unreached))
        .collect();
    let Some(first) = wrong.first() else { return Ok(()) };
    let name = format!("{} {}: {}", first.of, first.name, first.found);
    let message = match wrong.len() {
        1 => name,
        more => format!("{}; the first: {name}", counted(more as u64, "fault")),
    };
    let failure = if wrong.iter().all(|check| check.verdict == Verdict::Unreached) {
        Failure::new(Exit::Unreachable, "unreachable", message)
    } else {
        Failure::new(Exit::Unsatisfied, "unfit", message)
    };
    Err(match &first.remedy {
        Some(remedy) => failure.hint(remedy.clone()),
        None => failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_ends_with_four_and_nobody_there_with_three() {
        let good = Check::good("folder", "space", "much");
        let doubtful = Check::doubtful("postgres", "fsync", "off", "turn it on");
        let wrong = Check::wrong("postgres", "rights", "none", "GRANT x TO y;");
        let unreached = Check { verdict: Verdict::Unreached, ..wrong.clone() };
        let exit = |checks: &[&Check]| {
            let checks: Vec<Check> = checks.iter().map(|check| (*check).clone()).collect();
            outcome(&checks).map_err(|failure| failure.exit)
        };
        assert_eq!(exit(&[]), Ok(()));
        assert_eq!(exit(&[&good, &doubtful]), Ok(()));
        assert_eq!(exit(&[&good, &wrong]), Err(Exit::Unsatisfied));
        assert_eq!(exit(&[&good, &unreached]), Err(Exit::Unreachable));
        assert_eq!(exit(&[&wrong, &unreached]), Err(Exit::Unsatisfied));
        let failure = outcome(&[good, wrong]).expect_err("a fault");
        assert_eq!(failure.message, "postgres rights: none");
        assert_eq!(failure.hints, ["GRANT x TO y;"]);
    }
}
