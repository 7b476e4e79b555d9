//! What the documents about compatibility are made from.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::apis;
use super::pattern::{Section, sections};
use super::plan::{Catalogue, FOLDER, Id, ReadFile};
use super::storage::Storage;
use super::table::{Row, Table, kept};

/// The lists with their marks, the features, the served versions and the kept results of one storage.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) storage: Storage,
    pub(super) catalogue: Catalogue,
    pub(super) features: Vec<Section>,
    pub(super) served: BTreeMap<String, (i16, i16)>,
    pub(super) results: Table,
}

impl Facts {
    /// Reads all of them, through what gives the text of a file by its path from the root.
    pub(super) fn read(read: &ReadFile<'_>, storage: Storage) -> anyhow::Result<Self> {
        let kept = kept(storage);
        Ok(Self {
            storage,
            catalogue: Catalogue::from_files(read)?,
            features: sections(&read(&format!("{FOLDER}/features.txt"))?)
                .context("features.txt")?,
            served: apis::served(&read(apis::TABLE)?)?,
            results: Table::parse(&read(kept)?).context(kept)?,
        })
    }

    /// The kept result of an id.
    pub(super) fn row(&self, id: &Id) -> Option<&Row> {
        self.results.rows.get(&id.full)
    }

    /// The last day on which a suite ran.
    pub(super) fn last_day(&self, suite: &str) -> &str {
        let ids = self.catalogue.ids.iter().filter(|id| id.suite == suite);
        let days = ids.filter_map(|id| self.row(id)).map(|row| row.date.as_str());
        days.max().unwrap_or("never")
    }

    /// The ids of a suite, counted.
    pub(super) fn count(&self, suite: &str) -> Cell {
        let mut cell = Cell::default();
        for id in self.catalogue.ids.iter().filter(|id| id.suite == suite) {
            cell.add(id.mark.is_some(), self.row(id));
        }
        cell
    }
}

/// How many tests there are of a kind, and what they gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// Passed, also on the second try.
    pub(super) passed: usize,
    /// Of the passed: on the second try only.
    pub(super) second_try: usize,
    /// Of the passed: in every one of several rounds.
    pub(super) twice: usize,
    /// Everything that neither passed nor waits: what has no result has not passed.
    pub(super) failed: usize,
    /// Marked: a capability is missing.
    pub(super) waiting: usize,
}

impl Cell {
    /// Counts an id: a mark of today says more than what an older run gave.
    pub(super) fn add(&mut self, is_marked: bool, row: Option<&Row>) {
        match row {
            _ if is_marked => self.waiting += 1,
            Some(row) if row.is_pass() => {
                self.passed += 1;
                self.second_try += usize::from(row.is_second_try());
                self.twice += usize::from(row.rounds > 1);
            }
            Some(_) | None => self.failed += 1,
        }
    }

    /// How many ids were counted.
    pub(super) fn all(self) -> usize {
        self.passed + self.failed + self.waiting
    }

    /// Both counted together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            second_try: self.second_try + other.second_try,
            twice: self.twice + other.twice,
            failed: self.failed + other.failed,
            waiting: self.waiting + other.waiting,
        }
    }

    /// What passed, of all.
    pub(super) fn short(self) -> String {
        if self.all() == 0 { "–".to_owned() } else { format!("{} / {}", self.passed, self.all()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_neither_passed_nor_waits_has_failed() {
        let row = |result: &str, rounds| Row {
            result: result.to_owned(),
            date: "2026-11-30".to_owned(),
            commit: "abc".to_owned(),
            rounds,
            reason: String::new(),
        };
        let mut cell = Cell::default();
        for (result, rounds) in [
            ("PASS", 2),
            ("PASS (second try)", 1),
            ("FAIL", 1),
            ("marked: a capability that came since", 1),
            ("marked: a capability that came since (passes)", 1),
        ] {
            cell.add(false, Some(&row(result, rounds)));
        }
        cell.add(false, None);
        cell.add(true, Some(&row("FAIL", 1)));
        cell.add(true, None);
        let expected = Cell { passed: 2, second_try: 1, twice: 1, failed: 4, waiting: 2 };
        assert_eq!(cell, expected);
        assert_eq!((cell.all(), cell.short().as_str()), (8, "2 / 8"));
        assert_eq!(cell.and(cell).all(), 16);
        assert_eq!(Cell::default().short(), "–");
    }

    #[test]
    fn what_passed_failed_and_waits_is_every_id() {
        let read = |path: &str| super::super::plan::read_file(&crate::root(), path);
        let mut facts = Facts::read(&read, Storage::File).unwrap();
        for results in [facts.results.clone(), Table::default()] {
            facts.results = results;
            let all = super::super::suite::suites()
                .fold(Cell::default(), |sum, suite| sum.and(facts.count(suite.name)));
            assert_eq!(all.all(), 805);
        }
    }
}
