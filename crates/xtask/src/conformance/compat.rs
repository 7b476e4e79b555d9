//! `docs/compat.md`, made from the table of served versions and the kept results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use super::apis::{KAFKA, LEFT_OUT};
use super::facts::{Cell, Facts};
use super::pattern::section_of;
use super::plan::{Id, ReadFile, read_file};
use super::results;
use super::storage::Storage;
use super::suite::suites;

/// The document.
const DOCUMENT: &str = "docs/compat.md";

/// Runs `cargo xtask compat`.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    write(root)?;
    println!("wrote {DOCUMENT} and the results in docs/compat");
    Ok(ExitCode::SUCCESS)
}

/// Writes the documents anew.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for (name, text) in generate(&|path| read_file(root, path))? {
        let path = root.join(name);
        let folder = path.parent().context("a document stands in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("make the folder of {name}"))?;
        std::fs::write(&path, text).with_context(|| format!("write {name}"))?;
    }
    Ok(())
}

/// The documents as they should be, by name.
fn generate(read: &ReadFile<'_>) -> anyhow::Result<[(&'static str, String); 3]> {
    let facts = Facts::read(read, Storage::File)?;
    let postgres = Facts::read(read, Storage::Postgres)?;
    Ok([
        (DOCUMENT, document(&facts, &postgres)?),
        (results::name(Storage::File), results::document(&facts)?),
        (results::name(Storage::Postgres), results::document(&postgres)?),
    ])
}

/// What is wrong with the documents in these files, by their paths from the root.
pub(crate) fn complaints(files: &BTreeMap<String, String>) -> Vec<(&'static str, String)> {
    let read =
        |path: &str| files.get(path).cloned().with_context(|| format!("{path} is not in the tree"));
    match generate(&read) {
        Err(error) => vec![(DOCUMENT, format!("cannot be made: {error:#}"))],
        Ok(documents) => documents
            .into_iter()
            .filter(|(name, text)| files.get(*name) != Some(text))
            .map(|(name, _)| {
                (name, "is not what its sources say; run `cargo xtask compat`".to_owned())
            })
            .collect(),
    }
}

fn document(facts: &Facts, postgres: &Facts) -> anyhow::Result<String> {
    let mut text = String::from(
        "# Compatibility\n\n\
         Made by `cargo xtask compat` from the table of served versions and from the results of the suites in `tests/conformance/`: do not edit.\n\
         [The results](compat/results.md) stand there one by one, with date and commit.\n\n",
    );
    clients(facts, &mut text)?;
    on_postgres(postgres, &mut text)?;
    features(facts, &mut text)?;
    waiting(facts, &mut text)?;
    apis(facts, &mut text)?;
    Ok(text)
}

fn clients(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str(
        "## Clients\n\n\
         The tests that each client's own project runs against Apache Kafka, unchanged, against Strandline.\n\
         All of them pass on Apache Kafka 4.4.0.\n\
         A skip counts as a failure, and so does a test that did not run or has no result.\n\n\
         | client | suite | tests | pass | fail | wait for a capability | last run |\n\
         | --- | --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    let mut sum = Cell::default();
    for suite in suites() {
        let cell = facts.count(suite.name);
        sum = sum.and(cell);
        let last = facts.last_day(suite.name);
        writeln!(
            text,
            "| {} | `{}` | {} | {} | {} | {} | {last} |",
            suite.client,
            suite.name,
            cell.all(),
            cell.passed,
            cell.failed,
            cell.waiting
        )?;
    }
    writeln!(
        text,
        "| all | | {} | {} | {} | {} | |\n",
        sum.all(),
        sum.passed,
        sum.failed,
        sum.waiting
    )?;
    Ok(())
}

/// The suites once more, with another storage below.
fn on_postgres(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str(
        "### With everything in PostgreSQL\n\n\
         The same tests with topics and metadata in PostgreSQL ([one by one](compat/results-postgres.md)).\n\n\
         | suite | pass | fail | wait for a capability | last run |\n\
         | --- | ---: | ---: | ---: | --- |\n",
    );
    let mut sum = Cell::default();
    for suite in suites() {
        let cell = facts.count(suite.name);
        sum = sum.and(cell);
        let Cell { passed, failed, waiting, .. } = cell;
        let last = facts.last_day(suite.name);
        writeln!(text, "| `{}` | {passed} | {failed} | {waiting} | {last} |", suite.name)?;
    }
    let Cell { passed, failed, waiting, .. } = sum;
    writeln!(text, "| all | {passed} | {failed} | {waiting} | |\n")?;
    Ok(())
}

fn features(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str("## Clients and features\n\nTests that pass, of all there are.\n\n| feature |");
    for suite in suites() {
        write!(text, " {} |", suite.client)?;
    }
    text.push_str("\n| --- |");
    suites().for_each(|_| text.push_str(" ---: |"));
    text.push('\n');
    let mut cells: BTreeMap<(&str, &str), Cell> = BTreeMap::new();
    for id in &facts.catalogue.ids {
        let feature = section_of(&facts.features, &id.full)
            .with_context(|| format!("features.txt has no feature for {}", id.full))?;
        let cell = cells.entry((&feature.name, id.suite)).or_default();
        cell.add(id.mark.is_some(), facts.row(id));
    }
    for feature in &facts.features {
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

fn waiting(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str("## What tests wait for\n\n| capability to come | tests | what is missing |\n| --- | ---: | --- |\n");
    for mark in &facts.catalogue.marks {
        let waits = |id: &&Id| id.mark.as_deref() == Some(mark.name.as_str());
        let count = facts.catalogue.ids.iter().filter(waits).count();
        writeln!(text, "| {} | {count} | {} |", mark.name, mark.text)?;
    }
    text.push('\n');
    Ok(())
}

fn apis(facts: &Facts, text: &mut String) -> anyhow::Result<()> {
    text.push_str(
        "## APIs\n\n\
         What clients and tools may send, with the stable versions of Kafka 4.4.\n\
         What is not served is not advertised.\n\n\
         | key | API | Kafka | served | status |\n\
         | ---: | --- | --- | --- | --- |\n",
    );
    for api in KAFKA {
        let versions = |(first, last): (i16, i16)| format!("{first}–{last}");
        let served = facts.served.get(api.name).copied();
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            api.key,
            api.name,
            versions((api.first, api.last)),
            served.map_or_else(String::new, versions),
            api.status(served)
        )?;
    }
    text.push_str(
        "\nLeft out are the keys of Kafka 4.4 that no client and no tool sends to a broker:\n\n",
    );
    for group in LEFT_OUT {
        let names: Vec<String> =
            group.apis.iter().map(|(key, name)| format!("{name} ({key})")).collect();
        writeln!(text, "- {}: {}.", group.why, names.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_feature_and_the_document_can_be_made() {
        let read = |storage| Facts::read(&|path| read_file(&crate::root(), path), storage).unwrap();
        let text = document(&read(Storage::File), &read(Storage::Postgres)).unwrap();
        assert!(text.contains("[one by one](compat/results-postgres.md)"));
        assert!(text.contains("| 0 | Produce | 3–13 | 3–13 | all versions |"));
        assert!(text.contains("| 18 | ApiVersions | 0–5 | 0–4 | not 5 |"));
        assert!(text.contains("ControlledShutdown (7)"));
    }
}
