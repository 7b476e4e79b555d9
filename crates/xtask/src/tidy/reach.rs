//! Every Rust file is part of a crate: a file that no `mod` line names is dead, and nothing says so.

use std::collections::BTreeSet;

use super::Finding;
use super::rust_text::code_only;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in tree.crates.values().flat_map(|krate| &krate.roots) {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        walk(tree, root, folder, &mut reached);
    }
    // What lies in `tests/` are programs with manifests of their own, built by the tests that run them.
    tree.rust_files()
        .filter(|(path, _)| !reached.contains(*path) && !path.starts_with("tests/"))
        .map(|(path, _)| Finding::of(path, "is reached by no `mod` line of any crate; remove it"))
        .collect()
}

/// Marks `path` and everything below it; `folder` is where its modules lie.
fn walk(tree: &Tree, path: &str, folder: &str, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.files.get(path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    for module in modules(text) {
        let (file, below) = match module {
            Module::Named(name) => {
                let below = format!("{folder}/{name}");
                let file = format!("{below}.rs");
                let file = if tree.exists(&file) { file } else { format!("{below}/mod.rs") };
                (file, below)
            }
            Module::At(target) => {
                // `#[path]` counts from the folder of the file that holds it.
                let here = path.rsplit_once('/').map_or("", |(here, _)| here);
                let file = super::docs::join(here, &target);
                let below = file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
                (file, below)
            }
        };
        walk(tree, &file, &below, reached);
    }
}

enum Module {
    Named(String),
    At(String),
}

fn modules(text: &str) -> Vec<Module> {
    let code = code_only(text);
    let mut found = Vec::new();
    let mut path_attribute = None;
    for (raw, line) in text.lines().zip(code.lines()) {
        let line = line.trim();
        if line.starts_with("#[path") {
            path_attribute = raw.split('"').nth(1).map(str::to_owned);
        } else if let Some(target) = raw.trim().strip_prefix("include!(\"") {
            found.extend(target.split('"').next().map(|target| Module::At(target.to_owned())));
        } else if let Some(name) = module_name(line) {
            found.push(path_attribute.take().map_or(Module::Named(name), Module::At));
        }
    }
    found
}

/// `x` of the line `pub(crate) mod x;`.
fn module_name(line: &str) -> Option<String> {
    let line = line.strip_suffix(';')?;
    let (before, name) = line.rsplit_once("mod ")?;
    let visibility = before.trim();
    let plain = visibility.is_empty() || visibility.starts_with("pub") || visibility.ends_with(']');
    plain.then(|| name.trim().trim_start_matches("r#").to_owned())
}
