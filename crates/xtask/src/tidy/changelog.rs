//! CHANGELOG.md has a place for what is not yet released.

use super::Finding;
use crate::tree::Tree;

const DOCUMENT: &str = "CHANGELOG.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let there = tree
        .files
        .get(DOCUMENT)
        .is_some_and(|text| text.lines().any(|line| line.trim_end() == "## Unreleased"));
    if there { Vec::new() } else { vec![Finding::of(DOCUMENT, "has no heading `## Unreleased`")] }
}
