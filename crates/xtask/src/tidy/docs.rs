//! Documents: links lead somewhere, decisions have their five headings, crates say what they are.

use std::collections::BTreeMap;

use super::Finding;
use super::rust_text::line_of;
use crate::tree::Tree;

const ADR_FOLDER: &str = "docs/adr/";
const ADR_HEADINGS: &[&str] = &["Status", "Context", "Decision", "Consequences", "Rejected"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.markdown_files() {
        one_title(path, text, &mut findings);
        links(tree, path, text, &mut findings);
    }
    decisions(tree, &mut findings);
    for (path, text) in tree.rust_files() {
        mentions(tree, path, text, &mut findings);
    }
    for root in tree.crates.values().flat_map(|krate| &krate.roots) {
        if root.ends_with("src/lib.rs") || root.ends_with("src/main.rs") {
            opening_sentence(tree, root, &mut findings);
        }
    }
    findings
}

fn one_title(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let titles = prose(text).filter(|(_, line)| line.starts_with("# ")).count();
    if titles != 1 {
        findings.push(Finding::of(path, format!("has {titles} titles (`# `) instead of one")));
    }
}

/// The lines outside of code blocks, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside_block = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        inside_block ^= fence;
        (!fence && !inside_block).then_some((index + 1, line))
    })
}

fn links(tree: &Tree, path: &str, text: &str, findings: &mut Vec<Finding>) {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for (number, line) in prose(text) {
        for target in targets(line) {
            let outside = target.contains("://") || target.starts_with("mailto:");
            if outside || target.is_empty() {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.to_owned() } else { join(folder, file) };
            if !tree.exists(&file) {
                findings.push(Finding::at(path, number, format!("link `{target}` leads nowhere")));
            } else if !anchor.is_empty()
                && tree.markdown_files().any(|(path, _)| path == file)
                && !has_anchor(tree, &file, anchor)
            {
                findings.push(Finding::at(
                    path,
                    number,
                    format!("no heading `#{anchor}` in {file}"),
                ));
            }
        }
    }
}

/// `target` of each `[text](target)` in a line.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'`' => in_code = !in_code,
            b']' if !in_code => {
                if let Some(rest) = line[at + 1..].strip_prefix('(') {
                    let target = rest.split([')', ' ']).next().unwrap_or_default();
                    found.push(target);
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether one of a document's headings makes that anchor.
fn has_anchor(tree: &Tree, file: &str, anchor: &str) -> bool {
    let text = tree.files.get(file).map_or("", String::as_str);
    prose(text).any(|(_, line)| {
        let heading = line.trim_start_matches('#');
        heading.len() < line.len() && slug(heading.trim()) == anchor
    })
}

/// The anchor of a heading: lower case, spaces to dashes, punctuation gone.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// `folder/target`, with `.` and `..` taken out.
pub(super) fn join(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let steps = folder.split('/').filter(|_| !target.starts_with('/')).chain(target.split('/'));
    for step in steps {
        match step {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            step => parts.push(step),
        }
    }
    parts.join("/")
}

fn decisions(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut numbers = BTreeMap::new();
    for (path, text) in tree.markdown_files().filter(|(path, _)| path.starts_with(ADR_FOLDER)) {
        let name = &path[ADR_FOLDER.len()..];
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            findings.push(Finding::of(path, "is not named `NNNN-title.md`"));
            continue;
        }
        if let Some(other) = numbers.insert(number, path) {
            findings.push(Finding::of(path, format!("has the number of {other}")));
        }
        for heading in ADR_HEADINGS {
            if !prose(text).any(|(_, line)| line.trim_end() == format!("## {heading}")) {
                findings.push(Finding::of(path, format!("has no heading `## {heading}`")));
            }
        }
    }
}

/// Documents that Rust comments name.
fn mentions(tree: &Tree, path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (at, _) in text.match_indices("docs/") {
        let comment = text[..at].rsplit('\n').next().unwrap_or_default().trim_start();
        let within_a_path = comment.ends_with(|c: char| c.is_alphanumeric() || c == '/');
        if !comment.starts_with("//") || within_a_path {
            continue;
        }
        let name: String = text[at..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "/._-".contains(*c))
            .collect();
        let name = name.trim_end_matches('.');
        // A decision may be named by its number alone.
        let by_number =
            name.starts_with(ADR_FOLDER) && tree.paths.iter().any(|p| p.starts_with(name));
        if !tree.exists(name) && !by_number {
            let line = line_of(text, at);
            findings.push(Finding::at(path, line, format!("`{name}` is not there")));
        }
    }
}

fn opening_sentence(tree: &Tree, root: &str, findings: &mut Vec<Finding>) {
    let Some(text) = tree.files.get(root) else { return };
    let paragraph: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let sentence = paragraph.join(" ");
    if !sentence.ends_with('.') {
        findings.push(Finding::of(root, "opens with one sentence that says what the crate is"));
    } else if sentence.contains(". ") {
        findings.push(Finding::of(
            root,
            "opens with more than one sentence; leave a line after the first",
        ));
    }
}
