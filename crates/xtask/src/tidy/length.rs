//! The length ratchet: files of at most 500 lines, functions of at most 70.
//!
//! What was longer when it was measured stands in a list with its length. An entry may shrink and
//! vanish; `cargo xtask tidy --tighten` lowers the numbers. It never raises one: that is done by hand,
//! and a reviewer asks why.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;

use super::Finding;
use super::rust_text::{code_only, find_word, line_of};
use crate::tree::Tree;

const LIST: &str = "crates/xtask/ratchet.txt";
const LIST_HEAD: &str = "# Files over 500 lines and functions over 70, with their length. These numbers may only shrink:
# `cargo xtask tidy --tighten` lowers them.
";
const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut allowed = match allowed(tree) {
        Ok(allowed) => allowed,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    for (name, measured) in measure(tree) {
        let limit = allowed.remove(&name);
        let over = measured.lines > measured.limit;
        let text = match limit {
            Some(limit) if measured.lines > limit => {
                format!("grew from {limit} to {} lines; split it", measured.lines)
            }
            Some(_) if !over => format!("is short enough now; `{TIGHTEN}`"),
            Some(limit) if measured.lines < limit => {
                format!("shrank from {limit} to {} lines; `{TIGHTEN}`", measured.lines)
            }
            None if over => {
                format!("has {} lines, more than {}; split it", measured.lines, measured.limit)
            }
            _ => continue,
        };
        findings.push(Finding::at(
            &measured.path,
            measured.line,
            format!("{} {text}", measured.what),
        ));
    }
    for name in allowed.keys() {
        findings.push(Finding::of(LIST, format!("`{name}` is gone; `{TIGHTEN}`")));
    }
    findings
}

const TIGHTEN: &str = "cargo xtask tidy --tighten";

/// Lowers the list's numbers to what was measured and drops what is short enough or gone.
pub(super) fn tighten(root: &Path, tree: &mut Tree) -> anyhow::Result<()> {
    let allowed = allowed(tree).map_err(|finding| anyhow::anyhow!("{finding}"))?;
    let measured = measure(tree);
    let mut list = LIST_HEAD.to_owned();
    for (name, limit) in allowed {
        if let Some(measured) =
            measured.get(&name).filter(|measured| measured.lines > measured.limit)
        {
            writeln!(list, "{} {name}", measured.lines.min(limit))?;
        }
    }
    std::fs::write(root.join(LIST), &list).context("write the ratchet's list")?;
    tree.files.insert(LIST.to_owned(), list);
    Ok(())
}

fn allowed(tree: &Tree) -> Result<BTreeMap<String, usize>, Finding> {
    let mut allowed = BTreeMap::new();
    let text = tree.files.get(LIST).map_or("", String::as_str);
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let entry =
            line.split_once(' ').and_then(|(lines, name)| Some((name, lines.parse().ok()?)));
        let (name, lines) =
            entry.ok_or_else(|| Finding::at(LIST, index + 1, "is not `LINES PATH[::FUNCTION]`"))?;
        allowed.insert(name.to_owned(), lines);
    }
    Ok(allowed)
}

struct Measured {
    path: String,
    what: String,
    line: usize,
    lines: usize,
    limit: usize,
}

/// All files and functions by name. Of functions with one name in one file, the longest.
fn measure(tree: &Tree) -> BTreeMap<String, Measured> {
    let mut all = BTreeMap::new();
    for (path, text) in tree.rust_files() {
        let lines = text.lines().count();
        let what = "file".to_owned();
        let file = Measured { path: path.to_owned(), what, line: 0, lines, limit: FILE_LINES };
        all.insert(path.to_owned(), file);
        for (name, line, lines) in functions(text) {
            let key = format!("{path}::{name}");
            if all.get(&key).is_none_or(|known| known.lines < lines) {
                let what = format!("function `{name}`");
                let path = path.to_owned();
                all.insert(key, Measured { path, what, line, lines, limit: FUNCTION_LINES });
            }
        }
    }
    for (path, text) in tree.all_files().filter(|(path, _)| is_other_source(path)) {
        let lines = text.lines().count();
        let what = "file".to_owned();
        let file = Measured { path: path.to_owned(), what, line: 0, lines, limit: FILE_LINES };
        all.insert(path.to_owned(), file);
    }
    all
}

fn is_other_source(path: &str) -> bool {
    [".py", ".go", ".js", ".sh"].iter().any(|end| path.ends_with(end))
}

/// Name, line and number of lines (from `fn` to the closing brace) of each function with a body.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let code = code_only(text);
    let mut found = Vec::new();
    for at in find_word(&code, "fn") {
        let rest = &code[at + 2..];
        let name: String = rest
            .trim_start()
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        if name.is_empty() {
            continue; // a function pointer's type
        }
        if let Some(length) = body_end(rest) {
            let line = line_of(&code, at);
            let lines = 1 + rest[..length].bytes().filter(|&b| b == b'\n').count();
            found.push((name, line, lines));
        }
    }
    found
}

/// Where the body that follows a signature ends; `None` for one that ends in a semicolon.
fn body_end(rest: &str) -> Option<usize> {
    let mut braces = 0_usize;
    let mut brackets = 0_usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces = braces.checked_sub(1)?;
                if braces == 0 && brackets == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}
