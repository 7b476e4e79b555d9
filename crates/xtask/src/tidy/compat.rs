//! docs/compat.md and the results in docs/compat say what the lists, marks, kept results and served versions say.

use super::Finding;
use crate::conformance::compat::complaints;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    complaints(&tree.files).into_iter().map(|(name, text)| Finding::of(name, text)).collect()
}
