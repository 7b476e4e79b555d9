//! `docs/compat.md`, made from the table of served versions and the kept results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use super::apis::{self, KAFKA};
use super::pattern::{Section, section_of, sections};
use super::plan::{Catalogue, FOLDER, Id, ReadFile, read_file};
use super::suite::suites;
use super::table::{KEPT, Table};

/// The document.
pub(crate) const DOCUMENT: &str = "docs/compat.md";

/// Runs `cargo xtask compat`.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    write(root)?;
    println!("wrote {DOCUMENT}");
    Ok(ExitCode::SUCCESS)
}

/// Writes the document anew.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let text = generate(&|path| read_file(root, path))?;
    std::fs::write(root.join(DOCUMENT), text).with_context(|| format!("write {DOCUMENT}"))
}

/// The document as it should be.
fn generate(read: &ReadFile<'_>) -> anyhow::Result<String> {
    let facts = Facts {
        catalogue: Catalogue::from_files(read)?,
        features: sections(&read(&format!("{FOLDER}/features.txt"))?).context("features.txt")?,
        served: apis::served(&read(apis::TABLE)?)?,
        results: Table::parse(&read(KEPT)?).context(KEPT)?,
    };
    facts.document()
}

/// What is wrong with the document in these files, by their paths from the root.
pub(crate) fn complaint(files: &BTreeMap<String, String>) -> Option<String> {
    let read =
        |path: &str| files.get(path).cloned().with_context(|| format!("{path} is not in the tree"));
    match generate(&read) {
        Err(error) => Some(format!("cannot be made: {error:#}")),
        Ok(text) if files.get(DOCUMENT) != Some(&text) => {
            Some("is not what its sources say; run `cargo xtask compat`".to_owned())
        }
        Ok(_) => None,
    }
}

struct Facts {
    catalogue: Catalogue,
    features: Vec<Section>,
    served: BTreeMap<String, (i16, i16)>,
    results: Table,
}

/// Tests of one cell, and how many of them passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    passed: usize,
    failed: usize,
    waiting: usize,
    all: usize,
}

impl Cell {
    /// Counts an id: a mark of today says more than what an older run gave.
    fn add(&mut self, is_marked: bool, result: Option<&str>) {
        self.all += 1;
        match result {
            _ if is_marked => self.waiting += 1,
            Some(word) if word.starts_with("PASS") => self.passed += 1,
            Some("FAIL") => self.failed += 1,
            Some(_) | None => {} // has not run since it lost its mark, or never
        }
    }

    fn short(self) -> String {
        if self.all == 0 { "–".to_owned() } else { format!("{} / {}", self.passed, self.all) }
    }
}

impl Facts {
    fn document(&self) -> anyhow::Result<String> {
        let mut text = String::from(
            "# Compatibility\n\n\
             Made by `cargo xtask compat` from the table of served versions and from the results of the suites in `tests/conformance/`: do not edit.\n\n",
        );
        self.clients(&mut text)?;
        self.features(&mut text)?;
        self.waiting(&mut text)?;
        self.apis(&mut text)?;
        Ok(text)
    }

    fn result(&self, id: &Id) -> Option<&str> {
        self.results.rows.get(&id.full).map(|row| row.result.as_str())
    }

    fn clients(&self, text: &mut String) -> anyhow::Result<()> {
        text.push_str(
            "## Clients\n\n\
             The tests that each client's own project runs against Apache Kafka, unchanged, against Strandline.\n\
             All of them pass on Apache Kafka 4.4.0.\n\
             A skip counts as a failure, and so does a test that did not run.\n\n\
             | client | suite | tests | pass | fail | wait for a capability | last run |\n\
             | --- | --- | ---: | ---: | ---: | ---: | --- |\n",
        );
        let mut sum = Cell::default();
        for suite in suites() {
            let mut cell = Cell::default();
            let mut last = "never";
            for id in self.catalogue.ids.iter().filter(|id| id.suite == suite.name) {
                cell.add(id.mark.is_some(), self.result(id));
                sum.add(id.mark.is_some(), self.result(id));
                if let Some(row) = self.results.rows.get(&id.full)
                    && (last == "never" || row.date.as_str() > last)
                {
                    last = &row.date;
                }
            }
            writeln!(
                text,
                "| {} | `{}` | {} | {} | {} | {} | {last} |",
                suite.client, suite.name, cell.all, cell.passed, cell.failed, cell.waiting
            )?;
        }
        writeln!(
            text,
            "| all | | {} | {} | {} | {} | |\n",
            sum.all, sum.passed, sum.failed, sum.waiting
        )?;
        Ok(())
    }

    fn features(&self, text: &mut String) -> anyhow::Result<()> {
        text.push_str(
            "## Clients and features\n\nTests that pass, of all there are.\n\n| feature |",
        );
        for suite in suites() {
            write!(text, " {} |", suite.client)?;
        }
        text.push_str("\n| --- |");
        suites().for_each(|_| text.push_str(" ---: |"));
        text.push('\n');
        let mut cells: BTreeMap<(&str, &str), Cell> = BTreeMap::new();
        for id in &self.catalogue.ids {
            let feature = section_of(&self.features, &id.full)
                .with_context(|| format!("features.txt has no feature for {}", id.full))?;
            let cell = cells.entry((&feature.name, id.suite)).or_default();
            cell.add(id.mark.is_some(), self.result(id));
        }
        for feature in &self.features {
            write!(text, "| {} |", feature.name)?;
            for suite in suites() {
                let cell = cells.get(&(feature.name.as_str(), suite.name));
                write!(text, " {} |", cell.copied().unwrap_or_default().short())?;
            }
            text.push('\n');
        }
        text.push('\n');
        Ok(())
    }

    fn waiting(&self, text: &mut String) -> anyhow::Result<()> {
        text.push_str("## What tests wait for\n\n| capability to come | tests | what is missing |\n| --- | ---: | --- |\n");
        for mark in &self.catalogue.marks {
            let waits = |id: &&Id| id.mark.as_deref() == Some(mark.name.as_str());
            let count = self.catalogue.ids.iter().filter(waits).count();
            writeln!(text, "| {} | {count} | {} |", mark.name, mark.text)?;
        }
        text.push('\n');
        Ok(())
    }

    fn apis(&self, text: &mut String) -> anyhow::Result<()> {
        text.push_str(
            "## APIs\n\n\
             What clients and tools may send, with the stable versions of Kafka 4.3.\n\
             What is not served is not advertised.\n\n\
             | key | API | Kafka | served | status |\n\
             | ---: | --- | --- | --- | --- |\n",
        );
        for api in KAFKA {
            let versions = |(first, last): (i16, i16)| format!("{first}–{last}");
            let served = self.served.get(api.name).copied();
            let status = match served {
                None => "not served",
                Some(served) if served == (api.first, api.last) => "all versions",
                Some(_) => "some versions",
            };
            writeln!(
                text,
                "| {} | {} | {} | {} | {status} |",
                api.key,
                api.name,
                versions((api.first, api.last)),
                served.map_or_else(String::new, versions)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_counts_each_result_once() {
        let mut cell = Cell::default();
        for result in ["PASS", "PASS (second try)", "FAIL", "marked: a capability that came since"]
        {
            cell.add(false, Some(result));
        }
        cell.add(false, None);
        cell.add(true, Some("FAIL"));
        assert_eq!(cell, Cell { passed: 2, failed: 1, waiting: 1, all: 6 });
        assert_eq!(cell.short(), "2 / 6");
        assert_eq!(Cell::default().short(), "–");
    }

    #[test]
    fn every_id_has_a_feature_and_the_document_can_be_made() {
        let text = generate(&|path| read_file(&crate::root(), path)).unwrap();
        assert!(text.contains("| 0 | Produce | 3–13 | 3–13 | all versions |"));
    }
}
