//! `cargo xtask tidy`: the rules of the tree that the compiler does not know.
//!
//! Each check is a pure function from the [`Tree`] to [`Finding`]s; a finding names a place, what is
//! wrong there and what to do instead. All checks run always, so that one run shows everything.

mod changelog;
mod compat;
mod crates;
mod docs;
mod fence;
mod length;
mod packages;
mod reach;
mod rust_text;
mod text;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use crate::tree::Tree;

/// What `tidy` does with the ratchet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only look.
    Check,
    /// Lower the numbers of the ratchet to what is there, then look.
    Tighten,
}

/// Something that must not stay as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    /// A finding about a line, counted from 1.
    fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }

    /// A finding about a whole file.
    fn of(path: &str, text: impl Into<String>) -> Self {
        Self::at(path, 0, text)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: &[(&str, Check)] = &[
    ("crate table", crates::check),
    ("fences", fence::check),
    ("packages", packages::check),
    ("lengths", length::check),
    ("reachable files", reach::check),
    ("words", words::check),
    ("text", text::check),
    ("documents", docs::check),
    ("changelog", changelog::check),
    ("compatibility", compat::check),
];

/// Runs all checks over the tree at `root` and prints what they find.
pub(crate) fn run(root: &Path, mode: Mode) -> anyhow::Result<ExitCode> {
    let mut tree = Tree::read(root)?;
    if mode == Mode::Tighten {
        length::tighten(root, &mut tree)?;
    }
    let mut count = 0;
    for (name, check) in CHECKS {
        for finding in check(&tree) {
            println!("tidy ({name}): {finding}");
            count += 1;
        }
    }
    if count == 0 {
        println!("tidy: {} files, {} checks, nothing found", tree.paths.len(), CHECKS.len());
        Ok(ExitCode::SUCCESS)
    } else {
        println!("tidy: {count} findings");
        Ok(ExitCode::FAILURE)
    }
}
