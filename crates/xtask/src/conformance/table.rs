//! The table of results: what each id gave, when, and at which commit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::outcome::Verdict;
use crate::ci::process::run;

/// The table that is kept with the source.
pub(crate) const KEPT: &str = "tests/conformance/results.tsv";

const HEAD: &str =
    "# What each id gave when it last ran, when, and at which commit (`+`: with changes on top).
# Written by `cargo xtask conformance --record`; docs/compat.md is made from it.
";

/// Rows by full id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) rows: BTreeMap<String, Row>,
}

/// One id's last result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The words of [`word`].
    pub(super) result: String,
    /// The day of the run, as `YYYY-MM-DD`.
    pub(super) date: String,
    /// The commit that ran.
    pub(super) commit: String,
}

/// When and what a run is about.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    date: String,
    commit: String,
}

impl Stamp {
    /// Today, and the commit that is checked out.
    pub(super) fn now(root: &Path) -> anyhow::Result<Self> {
        let date = run(root, "date").words("-u +%F").output()?;
        let commit = run(root, "git").words("rev-parse --short=12 HEAD").output()?;
        let changes = run(root, "git").words("status --porcelain").output()?;
        let mark = if changes.is_empty() { "" } else { "+" };
        Ok(Self { date: date.trim().to_owned(), commit: format!("{}{mark}", commit.trim()) })
    }
}

/// A verdict in the table's words.
pub(super) fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed { second_try: false } => "PASS".to_owned(),
        Verdict::Passed { second_try: true } => "PASS (second try)".to_owned(),
        Verdict::Failed(_) => "FAIL".to_owned(),
        Verdict::Marked { capability, passes: false } => format!("marked: {capability}"),
        Verdict::Marked { capability, passes: true } => format!("marked: {capability} (passes)"),
    }
}

impl Table {
    /// Reads a table's text.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut rows = BTreeMap::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            ensure!(fields.len() == 4, "line {} is not `id, result, date, commit`", index + 1);
            let [id, result, date, commit] = [0, 1, 2, 3].map(|at: usize| fields[at].to_owned());
            rows.insert(id, Row { result, date, commit });
        }
        Ok(Self { rows })
    }

    /// The table as text.
    pub(super) fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (id, row) in &self.rows {
            writeln!(text, "{id}\t{}\t{}\t{}", row.result, row.date, row.commit)
                .expect("a string takes all");
        }
        text
    }

    /// Puts new verdicts in the place of old ones, and forgets ids that are on no list.
    pub(super) fn put(
        &mut self,
        verdicts: &BTreeMap<String, Verdict>,
        stamp: &Stamp,
        known: &dyn Fn(&str) -> bool,
    ) {
        self.rows.retain(|id, _| known(id));
        for (id, verdict) in verdicts {
            let (date, commit) = (stamp.date.clone(), stamp.commit.clone());
            self.rows.insert(id.clone(), Row { result: word(verdict), date, commit });
        }
    }

    /// Reads the kept table; an empty one when there is none yet.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let path = root.join(KEPT);
        if !path.exists() {
            return Ok(Self::default());
        }
        Self::parse(&std::fs::read_to_string(path).context("read the table of results")?)
            .context(KEPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_back_and_keeps_what_did_not_run() {
        let stamp = Stamp { date: "2026-11-30".to_owned(), commit: "abc+".to_owned() };
        let mut table = Table::default();
        let passed = Verdict::Passed { second_try: false };
        let verdicts = |id: &str, verdict| BTreeMap::from([(id.to_owned(), verdict)]);
        table.put(&verdicts("kgo/A", Verdict::Failed("x".to_owned())), &stamp, &|_| true);
        table.put(&verdicts("kgo/B", passed.clone()), &stamp, &|_| true);
        assert_eq!(Table::parse(&table.text()).unwrap(), table);
        table.put(&verdicts("kgo/A", passed), &stamp, &|id| id != "kgo/B");
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows["kgo/A"].result, "PASS");
    }

    #[test]
    fn a_line_with_a_field_missing_is_refused() {
        assert!(Table::parse("kgo/A\tPASS\t2026-11-30\n").is_err());
    }
}
