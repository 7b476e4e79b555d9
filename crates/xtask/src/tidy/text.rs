//! Rules for every text file: no hidden characters, no path of one particular machine.

use super::Finding;
use super::rust_text::line_of;
use crate::tree::Tree;

/// Folders of somebody's machine. `/var/lib` and the like belong to packaging and may be named.
const MACHINE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/t", "mp/"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Recorded inputs are bytes that happen to be UTF-8.
    for (path, text) in tree.all_files().filter(|(path, _)| !path.contains("/corpus/")) {
        for (at, letter) in text.char_indices().filter(|(_, letter)| is_hidden(*letter)) {
            let line = line_of(text, at);
            let code = u32::from(letter);
            findings.push(Finding::at(path, line, format!("hidden character U+{code:04X}")));
        }
        for folder in MACHINE {
            for (at, _) in text.match_indices(folder) {
                if begins_a_path(&text[..at]) {
                    let line = line_of(text, at);
                    let text =
                        format!("`{folder}` is a folder of one machine; use a relative path");
                    findings.push(Finding::at(path, line, text));
                }
            }
        }
    }
    findings
}

/// Control characters but newline and tab, and those that reorder or hide text.
fn is_hidden(letter: char) -> bool {
    matches!(letter, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Whether a slash after `before` is the root of a path, not a step within one. The data folder of
/// Kafka's own example configuration is nobody's.
fn begins_a_path(before: &str) -> bool {
    if before.ends_with("log.dirs=") {
        return false;
    }
    let last = before.chars().next_back();
    !last.is_some_and(|last| last.is_alphanumeric() || "_-.~}/)*$".contains(last))
}
