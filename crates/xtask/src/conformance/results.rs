//! `docs/compat/results.md` and its sister about PostgreSQL: what each suite gave, when and at which commit, and every id that does not pass.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::facts::{Cell, Facts};
use super::plan::Id;
use super::storage::Storage;
use super::suite::LANES;
use super::table::{Row, kept};

/// The document about runs on a storage.
pub(super) fn name(storage: Storage) -> &'static str {
    match storage {
        Storage::File => "docs/compat/results.md",
        Storage::Postgres => "docs/compat/results-postgres.md",
    }
}

/// The document as it should be.
pub(super) fn document(facts: &Facts) -> anyhow::Result<String> {
    let (title, option) = match facts.storage {
        Storage::File => ("Results of the suites", ""),
        Storage::Postgres => {
            ("Results of the suites with everything in PostgreSQL", " --storage postgres")
        }
    };
    let mut text = format!(
        "# {title}\n\n\
         Made by `cargo xtask compat` from `{}`, which `cargo xtask conformance{option} --record` writes: do not edit.\n\
         [Compatibility](../compat.md) says what they mean; [their README](../../tests/conformance/README.md), how they are run.\n\n\
         An id that fails is tried once more, and \"second try\" counts what passed then only.\n\
         \"Twice\" counts what passed in each of two rounds of one run.\n\
         A commit with `+` had changes on top; numbers in parentheses are ids, where a suite's results come from several commits.\n\n",
        kept(facts.storage),
    );
    suites(facts, &mut text)?;
    failures(facts, &mut text)?;
    second_tries(facts, &mut text)?;
    waiting(facts, &mut text)?;
    Ok(text)
}

fn suites(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str(
        "| lane | suite | ids | pass | twice | second try | fail | wait | date | commit |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |\n",
    );
    let mut sum = Cell::default();
    for lane in LANES {
        for suite in lane.suites {
            let cell = facts.count(suite.name);
            sum = sum.and(cell);
            let ids = facts.catalogue.ids.iter().filter(|id| id.suite == suite.name);
            let rows: Vec<&Row> = ids.filter_map(|id| facts.row(id)).collect();
            let numbers = numbers(cell);
            writeln!(
                text,
                "| {} | `{}` | {numbers} | {} | {} |",
                lane.name,
                suite.name,
                dates(&rows),
                commits(&rows)
            )?;
        }
    }
    writeln!(text, "| all | | {} | | |\n", numbers(sum))?;
    Ok(())
}

fn numbers(cell: Cell) -> String {
    let numbers = [cell.all(), cell.passed, cell.twice, cell.second_try, cell.failed, cell.waiting];
    numbers.map(|number| number.to_string()).join(" | ")
}

/// The first and the last day of these results.
fn dates(rows: &[&Row]) -> String {
    let days = || rows.iter().map(|row| row.date.as_str());
    match (days().min(), days().max()) {
        (Some(first), Some(last)) if first < last => format!("{first} – {last}"),
        (Some(day), _) => day.to_owned(),
        (None, _) => "never".to_owned(),
    }
}

/// The commits of these results; with how many are of each, when there are several.
fn commits(rows: &[&Row]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(&row.commit).or_default() += 1;
    }
    let one = counts.len() == 1;
    let words = counts.iter().map(|(commit, count)| {
        if one { format!("`{commit}`") } else { format!("`{commit}` ({count})") }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// What should have passed and did not, with the reason.
fn failures(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str("## Failed\n\n");
    let failed = |id: &&Id| id.mark.is_none() && !facts.row(id).is_some_and(Row::is_pass);
    let mut none = true;
    for id in facts.catalogue.ids.iter().filter(failed) {
        if none {
            text.push_str("| id | date | commit | reason |\n| --- | --- | --- | --- |\n");
            none = false;
        }
        match facts.row(id) {
            None => writeln!(text, "| `{}` | never | | it has no result |", cell(&id.full))?,
            Some(row) => {
                let reason = if row.result.starts_with("marked") {
                    "it has not run since its mark was taken out"
                } else if row.reason.is_empty() {
                    "it was not kept"
                } else {
                    &row.reason
                };
                let (date, commit) = (&row.date, &row.commit);
                let reason = cell(reason);
                writeln!(text, "| `{}` | {date} | `{commit}` | {reason} |", cell(&id.full))?;
            }
        }
    }
    text.push_str(if none { "None.\n\n" } else { "\n" });
    Ok(())
}

fn second_tries(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str("## Passed on the second try\n\n");
    let second = |id: &&Id| id.mark.is_none() && facts.row(id).is_some_and(Row::is_second_try);
    let ids: Vec<&Id> = facts.catalogue.ids.iter().filter(second).collect();
    list(&ids, text)
}

/// What a mark excuses, below the mark with its reason.
fn waiting(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str("## Waiting for a capability\n");
    for mark in &facts.catalogue.marks {
        let waits = |id: &&Id| id.mark.as_deref() == Some(mark.name.as_str());
        let ids: Vec<&Id> = facts.catalogue.ids.iter().filter(waits).collect();
        writeln!(text, "\n### {} ({})\n\n{}\n", mark.name, ids.len(), mark.text)?;
        list(&ids, text)?;
    }
    // Each list ends with an empty line; the document does not.
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(())
}

fn list(ids: &[&Id], text: &mut String) -> anyhow::Result<()> {
    for id in ids {
        writeln!(text, "- `{}`", id.full)?;
    }
    text.push_str(if ids.is_empty() { "None.\n\n" } else { "\n" });
    Ok(())
}

/// Text that ends no cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::super::plan::read_file;
    use super::super::table::Table;
    use super::*;

    fn facts(results: &str) -> Facts {
        let mut facts =
            Facts::read(&|path| read_file(&crate::root(), path), Storage::File).unwrap();
        facts.results = Table::parse(results).unwrap();
        facts
    }

    #[test]
    fn every_id_that_does_not_pass_is_named_once() {
        let facts = facts(
            "rskafka/client::test_topic_crud\tFAIL\t2026-11-30\tabc\t2\ta | b\n\
             rskafka/client::test_sasl\tmarked: SASL\t2026-11-30\tabc\t1\n",
        );
        let text = document(&facts).unwrap();
        for id in &facts.catalogue.ids {
            let name = format!("`{}`", id.full.replace('|', "\\|"));
            assert_eq!(text.matches(&name).count(), 1, "{name}");
        }
        assert!(
            text.contains("`rskafka/client::test_topic_crud` | 2026-11-30 | `abc` | a \\| b |")
        );
        assert!(
            text.contains("| rust | `rskafka` | 42 | 0 | 0 | 0 | 41 | 1 | 2026-11-30 | `abc` |")
        );
        assert!(text.contains("| all | | 805 | 0 | 0 | 0 | "));
    }

    #[test]
    fn what_passed_is_counted_with_its_days_and_commits() {
        let text = document(&facts(
            "rskafka/client::test_topic_crud\tPASS (second try)\t2026-11-29\tabc\t2\n\
             rskafka/client::test_client_backoff_terminates\tPASS\t2026-11-30\tdef\t1\n",
        ))
        .unwrap();
        let row = "| rust | `rskafka` | 42 | 2 | 1 | 1 | 39 | 1 | 2026-11-29 – 2026-11-30 | `abc` (1), `def` (1) |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("second try\n\n- `rskafka/client::test_topic_crud`\n\n"));
    }
}
