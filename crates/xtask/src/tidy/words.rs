//! Words and file names that do not belong on main, each with what to write instead.

use super::Finding;
use super::rust_text::{code_only, find_word, line_of};
use crate::tree::Tree;

/// Names that say nothing of what is in the file.
const FILE_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "manager", "misc"];

/// In code: macros and attributes.
const CODE: &[(&str, &str)] = &[
    (concat!("dbg", "!"), "remove it"),
    (concat!("todo", "!"), "write it, or leave the caller out too"),
    (concat!("unimplemented", "!"), "return an error that says what is not served"),
    (concat!("#[", "ignore"), "assert the behaviour as it is, with `// KNOWN(#n): should be …`"),
    (concat!("#[", "allow("), "use `#[expect(lint, reason = \"…\")]`"),
    (concat!("#![", "allow("), "use `#![expect(lint, reason = \"…\")]`"),
    (concat!("unbounded_", "channel"), "use a bounded channel and say its bound"),
];

/// In comments too.
const ANYWHERE: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "fix it, or file an issue"),
    (concat!("XX", "X"), "say it in a sentence"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in &tree.paths {
        let name = path.rsplit('/').next().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        if name.contains('.') && FILE_NAMES.contains(&stem) {
            findings.push(Finding::of(path, "name the file after what it holds: one noun"));
        }
    }
    for (path, text) in tree.rust_files() {
        let code = code_only(text);
        report(path, &code, CODE, &mut findings);
        report(path, text, ANYWHERE, &mut findings);
        let word = concat!("TO", "DO");
        for at in find_word(text, word).filter(|at| !text[at + word.len()..].starts_with("(#")) {
            let line = line_of(text, at);
            findings.push(Finding::at(
                path,
                line,
                format!("`{word}` names its issue: `{word}(#12)`"),
            ));
        }
    }
    findings
}

fn report(path: &str, text: &str, banned: &[(&str, &str)], findings: &mut Vec<Finding>) {
    for (word, instead) in banned {
        for at in find_word(text, word) {
            let line = line_of(text, at);
            findings.push(Finding::at(path, line, format!("`{word}`: {instead}")));
        }
    }
}
