//! docs/compat.md says what the lists, marks, kept results and served versions say.

use super::Finding;
use crate::conformance::compat::{DOCUMENT, complaint};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    complaint(&tree.files).map(|text| Finding::of(DOCUMENT, text)).into_iter().collect()
}
