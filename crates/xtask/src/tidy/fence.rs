//! The pure crates stay pure: no async runtime, clock, randomness or I/O, by dependency or by path.
//!
//! Determinism is what makes them replayable from a seed. Tests of these crates may do as they like.

use super::Finding;
use super::rust_text::{code_only, find_word, is_test_path, line_of, without_tests};
use crate::tree::Tree;

/// Crates whose every decision is a pure function.
pub(crate) const PURE: &[&str] = &["model", "records", "wire", "partition", "coordination"];

/// Packages that must not be built with a pure crate at all.
const RUNTIMES: &[&str] =
    &["tokio", "tokio-util", "async-std", "smol", "mio", "socket2", "hyper", "axum", "reqwest"];

/// Packages that a pure crate must not name itself. (A library below may hold one for a feature that
/// we do not call: `uuid` does.)
const DIRECT: &[&str] = &[
    "rand",
    "fastrand",
    "getrandom",
    "rustix",
    "libc",
    "nix",
    "parking_lot",
    "tempfile",
    "chrono",
];

const PATHS: &[(&str, &str)] = &[
    ("SystemTime::now", "take `now: Timestamp` as an argument"),
    ("Instant::now", "take `now` as an argument"),
    ("OffsetDateTime::now_utc", "take `now: Timestamp` as an argument"),
    ("std::fs", "leave I/O to an engine or the broker"),
    ("std::net", "leave I/O to the server"),
    ("std::process", "leave it to the command line"),
    ("std::env", "take a setting as an argument"),
    ("std::thread", "leave threads to the broker"),
    ("tokio::", "leave the async part to the broker"),
    ("rand::", "take ids and random bytes as arguments"),
    ("Uuid::new_v4", "take the id as an argument"),
    ("RandomState", "use an ordered map"),
];

const HASHED: &[(&str, &str)] = &[
    ("HashMap", "use BTreeMap: a hash map iterates in a new order every run"),
    ("HashSet", "use BTreeSet: a hash set iterates in a new order every run"),
    ("hashbrown::", "use BTreeMap: a hash map iterates in a new order every run"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for &name in PURE {
        let Some(krate) = tree.crates.get(name) else { continue };
        let manifest = format!("crates/{name}/Cargo.toml");
        for package in RUNTIMES.iter().filter(|package| krate.closure.contains(**package)) {
            findings
                .push(Finding::of(&manifest, format!("a pure crate is built with `{package}`")));
        }
        for package in DIRECT.iter().filter(|package| krate.outside.contains(**package)) {
            findings.push(Finding::of(&manifest, format!("a pure crate depends on `{package}`")));
        }
        sources(tree, name, PATHS, &mut findings);
        sources(tree, name, HASHED, &mut findings);
    }
    findings
}

fn sources(tree: &Tree, name: &str, banned: &[(&str, &str)], findings: &mut Vec<Finding>) {
    let folder = format!("crates/{name}/");
    let files = tree.rust_files().filter(|(path, _)| path.starts_with(&folder));
    for (path, text) in files.filter(|(path, _)| !is_test_path(path)) {
        let code = code_only(text);
        let code = without_tests(&code);
        for (word, instead) in banned {
            for at in find_word(code, word) {
                let line = line_of(code, at);
                findings.push(Finding::at(
                    path,
                    line,
                    format!("`{word}` in a pure crate: {instead}"),
                ));
            }
            let Some(module) = word.strip_prefix("std::") else { continue };
            for at in grouped(code, module) {
                let line = line_of(code, at);
                let what = format!("`{word}` in a pure crate: {instead}");
                findings.push(Finding::at(path, line, what));
            }
        }
    }
}

/// How a group of imports begins.
const OPENED: &str = "use std::{";

/// Where `use std::{…}` names a module among others.
fn grouped(code: &str, module: &str) -> Vec<usize> {
    let names = |group: &str| {
        let mut depth = 0_usize;
        let top = group.chars().map_while(|letter| {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => return None,
                '}' => depth -= 1,
                _ => return Some(if depth == 0 { letter } else { ' ' }),
            }
            Some(' ')
        });
        let top: String = top.collect();
        top.split(',').any(|item| item.split("::").next().is_some_and(|name| name.trim() == module))
    };
    let starts = code.match_indices(OPENED).map(|(at, _)| at);
    starts.filter(|at| names(&code[at + OPENED.len()..])).collect()
}
