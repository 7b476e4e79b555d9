//! The table of results: what each id gave, when, and at which commit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::outcome::Verdict;
use super::storage::Storage;
use crate::ci::process::run;

/// The table that is kept with the source, of runs on a storage.
pub(super) fn kept(storage: Storage) -> &'static str {
    match storage {
        Storage::File => "tests/conformance/results.tsv",
        Storage::Postgres => "tests/conformance/results-postgres.tsv",
    }
}

const HEAD: &str =
    "# What each id gave when it last ran, when, at which commit (`+`: with changes on top), in how many rounds, and why it failed.
# Written by `cargo xtask conformance --record`; docs/compat.md and docs/compat/ are made from it.
";

/// The most characters of a reason that are kept.
const REASON_CHARACTERS: usize = 200;

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
    /// How often the run tried it from the beginning; the worse result counts.
    pub(super) rounds: u32,
    /// Why it failed; empty when it did not.
    pub(super) reason: String,
}

impl Row {
    /// Whether the test passed, if only when it was tried once more.
    pub(super) fn is_pass(&self) -> bool {
        matches!(self.result.as_str(), PASS | SECOND_TRY)
    }

    /// Whether it passed only when it was tried once more.
    pub(super) fn is_second_try(&self) -> bool {
        self.result == SECOND_TRY
    }
}

const PASS: &str = "PASS";
const SECOND_TRY: &str = "PASS (second try)";

/// What an id gave in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The worst of its rounds.
    pub(super) verdict: Verdict,
    /// How many there were.
    pub(super) rounds: u32,
}

/// When and what a run is about.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    date: String,
    commit: String,
    /// The folder that it ran in, which no kept text names.
    root: String,
}

impl Stamp {
    /// Today, and the commit that is checked out.
    pub(super) fn now(root: &Path) -> anyhow::Result<Self> {
        let date = run(root, "date").words("-u +%F").output()?;
        let commit = run(root, "git").words("rev-parse --short=12 HEAD").output()?;
        // What recording itself writes changes nothing of what runs.
        let changes = run(root, "git")
            .words("status --porcelain -- . :!tests/conformance/results*.tsv :!docs/compat*")
            .output()?;
        let mark = if changes.is_empty() { "" } else { "+" };
        let commit = format!("{}{mark}", commit.trim());
        Ok(Self { date: date.trim().to_owned(), commit, root: root.display().to_string() })
    }

    /// A reason as it is kept: one short line without this machine's folders.
    fn kept(&self, reason: &str) -> String {
        let words: Vec<&str> = reason.split_whitespace().collect();
        words.join(" ").replace(&self.root, ".").chars().take(REASON_CHARACTERS).collect()
    }
}

/// A verdict in the table's words.
pub(super) fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed { second_try: false } => PASS.to_owned(),
        Verdict::Passed { second_try: true } => SECOND_TRY.to_owned(),
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
            let [id, result, date, commit, rest @ ..] = fields.as_slice() else {
                bail!("line {} is not `id, result, date, commit, rounds, reason`", index + 1);
            };
            // Rows of before these two were kept came from one round each.
            let rounds = rest.first().copied().unwrap_or("1").parse();
            let rounds = rounds.with_context(|| format!("line {}: the rounds", index + 1))?;
            let reason = rest.get(1).copied().unwrap_or_default();
            let [result, date, commit, reason] =
                [result, date, commit, &reason].map(|s| (*s).to_owned());
            rows.insert((*id).to_owned(), Row { result, date, commit, rounds, reason });
        }
        Ok(Self { rows })
    }

    /// The table as text.
    pub(super) fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (id, row) in &self.rows {
            let Row { result, date, commit, rounds, reason } = row;
            let line = format!("{id}\t{result}\t{date}\t{commit}\t{rounds}\t{reason}");
            writeln!(text, "{}", line.trim_end()).expect("a string takes all");
        }
        text
    }

    /// Puts new outcomes in the place of old ones, and forgets ids that are on no list.
    pub(super) fn put(
        &mut self,
        outcomes: &BTreeMap<String, Outcome>,
        stamp: &Stamp,
        known: &dyn Fn(&str) -> bool,
    ) {
        self.rows.retain(|id, _| known(id));
        for (id, Outcome { verdict, rounds }) in outcomes {
            let reason = match verdict {
                Verdict::Failed(why) => stamp.kept(why),
                Verdict::Passed { .. } | Verdict::Marked { .. } => String::new(),
            };
            let (date, commit) = (stamp.date.clone(), stamp.commit.clone());
            let row = Row { result: word(verdict), date, commit, rounds: *rounds, reason };
            self.rows.insert(id.clone(), row);
        }
    }

    /// Reads a kept table; an empty one when there is none yet.
    pub(super) fn read(root: &Path, name: &str) -> anyhow::Result<Self> {
        let path = root.join(name);
        if !path.exists() {
            return Ok(Self::default());
        }
        Self::parse(&std::fs::read_to_string(path).context("read the table of results")?)
            .with_context(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, verdict: Verdict) -> BTreeMap<String, Outcome> {
        BTreeMap::from([(id.to_owned(), Outcome { verdict, rounds: 2 })])
    }

    #[test]
    fn a_table_reads_back_and_keeps_what_did_not_run() {
        let (date, commit) = ("2026-11-30".to_owned(), "abc+".to_owned());
        let stamp = Stamp { date, commit, root: "/src/x".to_owned() };
        let mut table = Table::default();
        let passed = Verdict::Passed { second_try: false };
        let why = format!("at /src/x/target:\n\tno {}", "x".repeat(300));
        table.put(&one("kgo/A", Verdict::Failed(why)), &stamp, &|_| true);
        table.put(&one("kgo/B", passed.clone()), &stamp, &|_| true);
        assert_eq!(Table::parse(&table.text()).unwrap(), table);
        let failed = &table.rows["kgo/A"];
        assert!(failed.reason.starts_with("at ./target: no xxx"), "{}", failed.reason);
        assert_eq!((failed.reason.len(), failed.rounds, failed.is_pass()), (200, 2, false));
        table.put(&one("kgo/A", passed), &stamp, &|id| id != "kgo/B");
        assert_eq!(table.rows.len(), 1);
        assert!(table.rows["kgo/A"].is_pass() && !table.rows["kgo/A"].is_second_try());
    }

    #[test]
    fn a_line_with_a_field_missing_is_refused_and_an_older_line_is_one_round() {
        assert!(Table::parse("kgo/A\tPASS\t2026-11-30\n").is_err());
        assert!(Table::parse("kgo/A\tPASS\t2026-11-30\tabc\ttwice\n").is_err());
        let older = Table::parse("kgo/A\tPASS (second try)\t2026-11-30\tabc\n").unwrap();
        assert_eq!(older.rows["kgo/A"].rounds, 1);
        assert!(older.rows["kgo/A"].is_pass() && older.rows["kgo/A"].is_second_try());
    }
}
