//! The crate table in ARCHITECTURE.md against what the manifests say.
//!
//! A row is `` | `crate` | one line | may use | ``. "May use" lists crates by folder name, in any
//! order; a remark in parentheses is for people. Two words stand for many: `all pure crates` and
//! `everything above` (all earlier rows). `–` is nothing. Tests may use what they like.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::fence::PURE;
use crate::tree::Tree;

const DOCUMENT: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.files.get(DOCUMENT) else {
        return vec![Finding::of(DOCUMENT, "is missing; the crate table stands there")];
    };
    let (table, mut findings) = parse(text);
    if table.is_empty() {
        findings.push(Finding::of(DOCUMENT, "has no table `| crate | one line | may use |`"));
        return findings;
    }
    for name in table.keys().filter(|name| !tree.crates.contains_key(*name)) {
        findings.push(Finding::of(DOCUMENT, format!("row `{name}` names no crate; remove it")));
    }
    for (name, krate) in &tree.crates {
        let Some(allowed) = table.get(name) else {
            findings.push(Finding::of(DOCUMENT, format!("crate `{name}` has no row; add one")));
            continue;
        };
        for used in krate.uses.difference(allowed) {
            findings.push(Finding::of(
                &format!("crates/{name}/Cargo.toml"),
                format!(
                    "`{name}` may not use `{used}`; a new edge is an ADR and a word in {DOCUMENT}"
                ),
            ));
        }
    }
    findings
}

type Table = BTreeMap<String, BTreeSet<String>>;

fn parse(text: &str) -> (Table, Vec<Finding>) {
    let mut table = Table::new();
    let mut findings = Vec::new();
    let mut inside = false;
    let mut earlier = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let cells = cells(line);
        let [name, _, may_use] = cells.as_slice() else {
            inside = false;
            continue;
        };
        if *name == "crate" && *may_use == "may use" {
            inside = true;
            continue;
        }
        if !inside || name.starts_with("--") || name.starts_with(":-") {
            continue;
        }
        let name = name.trim_matches('`').to_owned();
        let allowed = allowed(may_use, &earlier);
        if allowed.contains(&name) {
            findings.push(Finding::at(DOCUMENT, index + 1, format!("`{name}` may use itself")));
        }
        earlier.insert(name.clone());
        table.insert(name, allowed);
    }
    (table, findings)
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map(|inner| inner.split('|').map(str::trim).collect()).unwrap_or_default()
}

fn allowed(cell: &str, earlier: &BTreeSet<String>) -> BTreeSet<String> {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for letter in cell.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    for word in plain.split(',').map(|word| word.trim().trim_matches('`')) {
        match word {
            "" | "–" | "-" => {}
            "all pure crates" => names.extend(PURE.iter().map(|&name| name.to_owned())),
            "everything above" => names.extend(earlier.iter().cloned()),
            name => {
                names.insert(name.to_owned());
            }
        }
    }
    names
}
