//! Which ids there are, which of them are marked, and which run now.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

use super::pattern::{Section, matches, section_of, sections};
use super::suite::{LANES, Lane, lane_of};

/// The folder of all that is told here.
pub(super) const FOLDER: &str = "tests/conformance";

/// What a mark may wait for. A test that fails for any other reason shows a fault; `slow creation` is for
/// what only a slower broker passes.
const CAPABILITIES: &[&str] = &[
    "admin",
    "transactions",
    "share groups",
    "KIP-848",
    "streams groups",
    "ACLs",
    "SASL",
    "quotas",
    "compaction",
    "telemetry",
    "metadata.version",
    "second broker",
    "slow creation",
];

/// The frozen lists and the marks on them.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// Every id (`SUITE/NAME`) with the capability that it waits for, in the order of the lists.
    pub(super) ids: Vec<Id>,
    /// The capabilities that something waits for, with what is missing.
    pub(super) marks: Vec<Section>,
    fast: Vec<String>,
}

/// Gives the text of a file by its path from the root.
pub(super) type ReadFile<'a> = dyn Fn(&str) -> anyhow::Result<String> + 'a;

/// The text of a file below `root`.
pub(super) fn read_file(root: &Path, path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"))
}

/// A test that Apache Kafka passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    /// The suite's name, which stands before the first slash.
    pub(super) suite: &'static str,
    /// The whole id.
    pub(super) full: String,
    /// The missing capability of its mark.
    pub(super) mark: Option<String>,
}

impl Id {
    /// The name within the suite.
    pub(super) fn name(&self) -> &str {
        &self.full[self.suite.len() + 1..]
    }
}

/// Which ids a run is about.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    /// Lanes by name; all when empty.
    pub(super) lanes: Vec<&'static str>,
    /// Only what runs at each change, and nothing that is marked.
    pub(super) fast: bool,
    /// Nothing that is marked.
    pub(super) unmarked: bool,
    /// Only ids of this pattern.
    pub(super) only: Option<String>,
}

impl Catalogue {
    /// Reads everything below `root`.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        Self::from_files(&|path| read_file(root, path))
    }

    /// Reads everything, through what gives the text of a file by its path from the root.
    pub(super) fn from_files(read: &ReadFile<'_>) -> anyhow::Result<Self> {
        let mut lists = BTreeMap::new();
        for lane in LANES {
            for suite in lane.suites {
                let path = format!("{FOLDER}/{}/{}.txt", lane.name, suite.name);
                lists.insert(suite.name, read(&path)?);
            }
        }
        let marks = read(&format!("{FOLDER}/marks.txt"))?;
        Self::parse(&lists, &marks, &read(&format!("{FOLDER}/fast.txt"))?)
    }

    fn parse(
        lists: &BTreeMap<&'static str, String>,
        marks: &str,
        fast: &str,
    ) -> anyhow::Result<Self> {
        let marks = sections(marks).context("marks.txt")?;
        for mark in &marks {
            ensure!(
                CAPABILITIES.contains(&mark.name.as_str()),
                "marks.txt: [{}] is no capability to come; a mark waits for one of {CAPABILITIES:?}",
                mark.name
            );
            ensure!(!mark.text.is_empty(), "marks.txt: [{}] has no reason", mark.name);
        }
        let mut ids = Vec::new();
        for suite in super::suite::suites() {
            let list = lists.get(suite.name).map_or("", String::as_str);
            for name in list.lines().filter_map(name_on) {
                let full = format!("{}/{name}", suite.name);
                let mark = section_of(&marks, &full).map(|mark| mark.name.clone());
                ids.push(Id { suite: suite.name, full, mark });
            }
        }
        let fast = fast.lines().filter_map(name_on).map(str::to_owned).collect();
        let catalogue = Self { ids, marks, fast };
        catalogue.refuse_stale_patterns()?;
        Ok(catalogue)
    }

    /// A pattern that no id has is a mark that outlived its test.
    fn refuse_stale_patterns(&self) -> anyhow::Result<()> {
        let marks = self.marks.iter().flat_map(|mark| &mark.patterns).map(String::as_str);
        let fast = self.fast.iter().map(|line| line.trim_start_matches('!'));
        for pattern in marks.chain(fast) {
            if !self.ids.iter().any(|id| matches(pattern, &id.full)) {
                bail!("`{pattern}` is the pattern of no id on the lists");
            }
        }
        Ok(())
    }

    /// Whether an id belongs to the part that runs at each change. The last line that matches decides.
    pub(super) fn is_fast(&self, id: &str) -> bool {
        let last = self.fast.iter().rev().find(|line| matches(line.trim_start_matches('!'), id));
        last.is_some_and(|line| !line.starts_with('!'))
    }

    /// The ids of a lane that a choice names.
    pub(super) fn chosen(&self, lane: &Lane, choice: &Choice) -> Vec<&Id> {
        let ids = self.ids.iter().filter(|id| {
            let here = lane_of(id.suite).is_some_and(|known| known.name == lane.name);
            let fast = !choice.fast || self.is_fast(&id.full);
            let waits = (choice.fast || choice.unmarked) && id.mark.is_some();
            here && fast
                && !waits
                && choice.only.as_deref().is_none_or(|only| matches(only, &id.full))
        });
        ids.collect()
    }
}

/// The id or pattern on a line, without a comment that follows it (`#01` belongs to an id).
fn name_on(line: &str) -> Option<&str> {
    let line = if line.starts_with('#') { "" } else { line };
    let name = line.split_once(" #").map_or(line, |(name, _)| name).trim();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(kgo: &str) -> BTreeMap<&'static str, String> {
        BTreeMap::from([("kgo", kgo.to_owned())])
    }

    const KGO: &str = "# frozen\nTestA\nTestB/x#01  # flaky\nTestC\n";

    #[test]
    fn ids_are_read_with_their_marks() {
        let marks = "[transactions] no coordinator\nkgo/TestB/*\n";
        let read = Catalogue::parse(&lists(KGO), marks, "").unwrap();
        let ids: Vec<_> = read.ids.iter().map(|id| (id.name(), id.mark.as_deref())).collect();
        assert_eq!(ids, [("TestA", None), ("TestB/x#01", Some("transactions")), ("TestC", None)]);
    }

    #[test]
    fn a_mark_that_waits_for_nothing_known_or_has_no_id_is_refused() {
        for (marks, complaint) in [
            ("[flaky] sometimes\nkgo/TestA\n", "no capability to come"),
            ("[transactions]\nkgo/TestA\n", "has no reason"),
            ("[transactions] why\nkgo/TestGone\n", "the pattern of no id"),
        ] {
            let error = Catalogue::parse(&lists(KGO), marks, "").unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn the_fast_part_leaves_out_what_is_marked() {
        let marks = "[transactions] no coordinator\nkgo/TestB/*\n";
        let read = Catalogue::parse(&lists(KGO), marks, "kgo/*\n!kgo/TestC\n").unwrap();
        let lane = lane_of("kgo").unwrap();
        let choice = Choice { fast: true, ..Choice::default() };
        let names = |choice: &Choice| {
            read.chosen(lane, choice).iter().map(|id| id.full.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&choice), ["kgo/TestA"]);
        let unmarked = Choice { unmarked: true, ..Choice::default() };
        assert_eq!(names(&unmarked), ["kgo/TestA", "kgo/TestC"]);
        let only = Choice { only: Some("*TestB*".to_owned()), ..Choice::default() };
        assert_eq!(names(&only), ["kgo/TestB/x#01"]);
    }

    #[test]
    fn the_lists_hold_what_they_promise() {
        let read = Catalogue::read(&crate::root()).unwrap();
        assert_eq!(
            read.ids.len(),
            805,
            "frozen on Apache Kafka; a new version comes with new lists"
        );
        let runs = |id: &&Id| id.suite == "java" && id.mark.is_none() && read.is_fast(&id.full);
        let fast_java = read.ids.iter().filter(runs).count();
        assert!(fast_java >= 100, "{fast_java} of Java's tests run at each change");
    }
}
