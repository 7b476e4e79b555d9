//! The packages that are built with us: licences, one version of each, one source.
//!
//! The rules stand in deny.toml, which `cargo deny` reads too. It is not part of CI: compiling it takes
//! longer than all other checks of the tree together, and these three need only `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::tree::Tree;

const RULES: &str = "deny.toml";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(rules) = tree.files.get(RULES) else {
        return vec![Finding::of(RULES, "is missing; the allowed licences stand there")];
    };
    let allowed = quoted(between(rules, "allow = [", "]"));
    let skipped: BTreeSet<&str> = between(rules, "skip = [", "\n]")
        .lines()
        .filter_map(|line| quoted(line).into_iter().next())
        .collect();
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &tree.packages {
        versions.entry(&package.name).or_default().insert(&package.version);
        let name = format!("{} {}", package.name, package.version);
        if package.source != REGISTRY {
            findings
                .push(Finding::of("Cargo.lock", format!("{name} comes from {}", package.source)));
        }
        if !is_allowed(&package.license, &allowed) {
            let text =
                format!("{name} is under `{}`, which {RULES} does not allow", package.license);
            findings.push(Finding::of("Cargo.lock", text));
        }
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        if !skipped.contains(name) {
            let text =
                format!("{name} is built in {versions:?}; agree on one, or say why in {RULES}");
            findings.push(Finding::of("Cargo.lock", text));
        }
    }
    for name in skipped {
        if versions.get(name).is_none_or(|versions| versions.len() < 2) {
            findings
                .push(Finding::of(RULES, format!("{name} has one version now; do not skip it")));
        }
    }
    findings
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = text.split_once(start).map_or("", |(_, rest)| rest);
    rest.split_once(end).map_or("", |(inner, _)| inner)
}

/// The strings in quotation marks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// Whether an SPDX expression can be satisfied with allowed licences alone.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words, allowed)
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut good = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        good |= all_of(words, allowed);
    }
    good
}

fn all_of(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut good = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        good &= one(words, allowed);
    }
    good
}

fn one(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let good = any_of(words, allowed);
        return good && words.next() == Some(")");
    }
    let good = words.next().is_some_and(|licence| allowed.contains(&licence));
    // An exception only ever permits more.
    if words.next_if_eq(&"WITH").is_some() {
        return words.next().is_some() && good;
    }
    good
}
