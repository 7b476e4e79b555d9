//! Each check on samples: one that it accepts, and those that it must not.

use std::collections::BTreeSet;

use super::{Check, Finding};
use crate::tree::{Crate, Outside, Tree};

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.files.insert((*path).to_owned(), (*text).to_owned());
        tree.paths.insert((*path).to_owned());
    }
    tree
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

impl Tree {
    fn with_crate(mut self, name: &str, uses: &[&str]) -> Self {
        let roots = vec![format!("crates/{name}/src/lib.rs")];
        let krate = Crate { roots, uses: names(uses), ..Crate::default() };
        self.crates.insert(name.to_owned(), krate);
        self
    }
}

fn shown(check: Check, tree: &Tree) -> Vec<String> {
    check(tree).iter().map(Finding::to_string).collect()
}

#[track_caller]
fn finds(check: Check, tree: &Tree, expected: &[&str]) {
    assert_eq!(shown(check, tree), expected);
}

#[track_caller]
fn finds_nothing(check: Check, files: &[(&str, &str)]) {
    finds(check, &tree(files), &[]);
}

#[track_caller]
fn finds_one(check: Check, path: &str, text: &str, expected: &str) {
    finds(check, &tree(&[(path, text)]), &[expected]);
}

const TABLE: &str = "# A\n\n| crate | one line | may use |\n| --- | --- | --- |\n\
    | `model` | words | – |\n| `storage` | traits | model |\n| `cli` | all | everything above |\n";

fn table_tree() -> Tree {
    tree(&[("ARCHITECTURE.md", TABLE)])
        .with_crate("model", &[])
        .with_crate("storage", &["model"])
        .with_crate("cli", &["model", "storage"])
}

#[test]
fn edges_of_the_table_are_allowed() {
    finds(super::crates::check, &table_tree(), &[]);
}

#[test]
fn an_edge_that_the_table_lacks_is_found() {
    let tree = table_tree().with_crate("model", &["storage"]);
    let expected = "crates/model/Cargo.toml: `model` may not use `storage`; \
        a new edge is an ADR and a word in ARCHITECTURE.md";
    finds(super::crates::check, &tree, &[expected]);
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_found() {
    let mut tree = table_tree().with_crate("console", &[]);
    tree.crates.remove("cli");
    let expected = [
        "ARCHITECTURE.md: row `cli` names no crate; remove it",
        "ARCHITECTURE.md: crate `console` has no row; add one",
    ];
    finds(super::crates::check, &tree, &expected);
}

#[test]
fn a_remark_in_parentheses_and_all_pure_crates_are_understood() {
    let text = "| crate | one line | may use |\n|---|---|---|\n| `model` | w | – |\n\
        | `broker` | b | all pure crates, `storage` (traits, types) |\n";
    let tree = tree(&[("ARCHITECTURE.md", text)])
        .with_crate("model", &[])
        .with_crate("broker", &["model", "wire", "coordination", "storage"]);
    finds(super::crates::check, &tree, &[]);
}

#[test]
fn a_missing_table_is_found() {
    let tree = tree(&[("ARCHITECTURE.md", "# A\n")]);
    let expected = "ARCHITECTURE.md: has no table `| crate | one line | may use |`";
    finds(super::crates::check, &tree, &[expected]);
}

fn pure_tree(name: &str, text: &str) -> Tree {
    tree(&[(&format!("crates/{name}/src/lib.rs"), text)]).with_crate(name, &[])
}

#[test]
fn a_clock_in_a_pure_crate_is_found() {
    let tree = pure_tree("partition", "fn f() -> Instant {\n    std::time::Instant::now()\n}\n");
    let expected = "crates/partition/src/lib.rs:2: `Instant::now` in a pure crate: \
        take `now` as an argument";
    finds(super::fence::check, &tree, &[expected]);
}

#[test]
fn what_comments_strings_and_tests_say_is_no_use_of_it() {
    let text = "// Instant::now is not called here.\nconst A: &str = \"std::fs \\\" tokio::\";\n\
        const B: &str = r#\"rand:: \" \"#;\nfn f<'a>(x: &'a u8) -> (char, char) { ('\"', '\\'') }\n\
        #[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    finds(super::fence::check, &pure_tree("partition", text), &[]);
}

#[test]
fn hash_maps_are_found_in_every_pure_crate() {
    let text = "use std::collections::HashMap;\n";
    for name in super::fence::PURE {
        let found = shown(super::fence::check, &pure_tree(name, text));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

#[test]
fn modules_are_found_in_a_group_of_imports_too() {
    let text = "use std::{\n    collections::BTreeMap,\n    fs::{self, File},\n    net,\n};\n";
    let expected = [
        "crates/records/src/lib.rs:1: `std::fs` in a pure crate: leave I/O to an engine or the broker",
        "crates/records/src/lib.rs:1: `std::net` in a pure crate: leave I/O to the server",
    ];
    finds(super::fence::check, &pure_tree("records", text), &expected);
}

#[test]
fn a_runtime_built_with_a_pure_crate_is_found() {
    let mut tree = pure_tree("wire", "");
    let krate = tree.crates.get_mut("wire").expect("just made");
    krate.closure = names(&["bytes", "tokio"]);
    krate.outside = names(&["bytes", "rand"]);
    let expected = [
        "crates/wire/Cargo.toml: a pure crate is built with `tokio`",
        "crates/wire/Cargo.toml: a pure crate depends on `rand`",
    ];
    finds(super::fence::check, &tree, &expected);
}

#[test]
fn an_impure_crate_may_use_the_clock() {
    finds(super::fence::check, &pure_tree("broker", "fn f() { Instant::now(); }"), &[]);
}

fn packages(list: &[(&str, &str, &str)]) -> Tree {
    let rules = "[licenses]\nallow = [\n  \"MIT\",\n  \"Zlib\",\n]\nskip = [\n  { name = \"twice\", reason = \"x\" },\n]\n";
    let mut tree = tree(&[("deny.toml", rules)]);
    let both = [("twice", "1.0.0", "MIT"), ("twice", "2.0.0", "MIT")];
    for (name, version, license) in both.iter().chain(list) {
        tree.packages.push(Outside {
            name: (*name).to_owned(),
            version: (*version).to_owned(),
            license: (*license).to_owned(),
            source: "registry+https://github.com/rust-lang/crates.io-index".to_owned(),
        });
    }
    tree
}

#[test]
fn licences_that_can_be_met_are_allowed() {
    let good = ["MIT", "MIT/Apache-2.0", "Apache-2.0 OR MIT", "(Zlib OR GPL-3.0) AND MIT"];
    for license in good {
        finds(super::packages::check, &packages(&[("a", "1.0.0", license)]), &[]);
    }
    for license in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "(Zlib OR MIT) AND GPL-3.0"] {
        let expected =
            format!("Cargo.lock: a 1.0.0 is under `{license}`, which deny.toml does not allow");
        finds(super::packages::check, &packages(&[("a", "1.0.0", license)]), &[&expected]);
    }
}

#[test]
fn two_versions_of_a_package_are_found() {
    let tree = packages(&[("a", "1.0.0", "MIT"), ("a", "2.0.0", "MIT")]);
    let expected =
        "Cargo.lock: a is built in {\"1.0.0\", \"2.0.0\"}; agree on one, or say why in deny.toml";
    finds(super::packages::check, &tree, &[expected]);
}

#[test]
fn a_package_from_elsewhere_is_found() {
    let mut tree = packages(&[("a", "1.0.0", "MIT")]);
    tree.packages[2].source = "git+https://example.org/a".to_owned();
    let expected = "Cargo.lock: a 1.0.0 comes from git+https://example.org/a";
    finds(super::packages::check, &tree, &[expected]);
}

fn function(lines: usize) -> String {
    format!("fn long(x: [u8; 4]) {{\n{}}}\n", "    x();\n".repeat(lines - 2))
}

#[test]
fn files_and_functions_within_the_limit_pass() {
    finds_nothing(super::length::check, &[("a.rs", &function(70)), ("b.py", &"x\n".repeat(500))]);
}

#[test]
fn a_function_over_the_limit_is_found() {
    let expected = "a.rs:1: function `long` has 71 lines, more than 70; split it";
    finds_one(super::length::check, "a.rs", &function(71), expected);
}

#[test]
fn a_file_over_the_limit_is_found() {
    let expected = "a.rs: file has 501 lines, more than 500; split it";
    finds_one(super::length::check, "a.rs", &"\n".repeat(501), expected);
}

#[test]
fn the_ratchet_holds_what_is_listed_and_only_lets_it_shrink() {
    let ratchet = "crates/xtask/ratchet.txt";
    let check = |list: &str, lines: usize| {
        shown(super::length::check, &tree(&[(ratchet, list), ("a.rs", &"\n".repeat(lines))]))
    };
    assert!(check("510 a.rs\n", 510).is_empty());
    assert_eq!(check("510 a.rs\n", 511), ["a.rs: file grew from 510 to 511 lines; split it"]);
    let shrank = "a.rs: file shrank from 510 to 505 lines; `cargo xtask tidy --tighten`";
    assert_eq!(check("510 a.rs\n", 505), [shrank]);
    let short = "a.rs: file is short enough now; `cargo xtask tidy --tighten`";
    assert_eq!(check("510 a.rs\n", 400), [short]);
    let gone = "crates/xtask/ratchet.txt: `b.rs` is gone; `cargo xtask tidy --tighten`";
    assert_eq!(check("510 b.rs\n", 1), [gone]);
}

#[test]
fn files_that_modules_name_are_reached() {
    let tree = tree(&[
        ("crates/a/src/lib.rs", "mod one;\npub(crate) mod two;\n#[cfg(test)] mod tests;\n"),
        ("crates/a/src/one.rs", "mod inner;\n"),
        ("crates/a/src/one/inner.rs", ""),
        ("crates/a/src/two/mod.rs", "#[path = \"other.rs\"]\nmod named;\n"),
        ("crates/a/src/two/other.rs", ""),
        ("crates/a/src/tests.rs", ""),
    ])
    .with_crate("a", &[]);
    finds(super::reach::check, &tree, &[]);
}

#[test]
fn a_file_that_no_module_names_is_found() {
    let tree = tree(&[("crates/a/src/lib.rs", "// mod dead;\n"), ("crates/a/src/dead.rs", "")])
        .with_crate("a", &[]);
    let expected = "crates/a/src/dead.rs: is reached by no `mod` line of any crate; remove it";
    finds(super::reach::check, &tree, &[expected]);
}

#[test]
fn unfinished_code_is_found() {
    let macro_name = concat!("todo", "!");
    let text =
        format!("fn f() {{\n    {macro_name}()\n}}\n// {}(#3): say more\n", concat!("TO", "DO"));
    finds_one(
        super::words::check,
        "a.rs",
        &text,
        &format!("a.rs:2: `{macro_name}`: write it, or leave the caller out too"),
    );
}

#[test]
fn a_note_without_an_issue_is_found() {
    let word = concat!("TO", "DO");
    let expected = format!("a.rs:1: `{word}` names its issue: `{word}(#12)`");
    finds_one(super::words::check, "a.rs", &format!("// {word}: later\n"), &expected);
}

#[test]
fn a_file_named_after_nothing_is_found() {
    let expected = "crates/a/src/utils.rs: name the file after what it holds: one noun";
    finds_one(super::words::check, "crates/a/src/utils.rs", "", expected);
}

#[test]
fn a_hidden_character_is_found() {
    finds_nothing(super::text::check, &[("a.md", "plain – “text”\twith\nlines\n")]);
    finds_one(super::text::check, "a.md", "a\nb\u{202e}c\n", "a.md:2: hidden character U+202E");
    finds_one(super::text::check, "a.md", "a\r\n", "a.md:1: hidden character U+000D");
}

#[test]
fn a_machine_path_is_found() {
    let folder = concat!("/wo", "rk/");
    finds_nothing(super::text::check, &[("a.md", &format!("frame{folder}x target{folder}\n"))]);
    let expected = format!("a.md:1: `{folder}` is a folder of one machine; use a relative path");
    finds_one(super::text::check, "a.md", &format!("see `{folder}x`\n"), &expected);
}

#[test]
fn links_lead_somewhere() {
    let files = [
        ("README.md", "# R\n[a](docs/a.md#two-words) [b](docs) `x[0](y)` [c](https://e.org/z)\n"),
        ("docs/a.md", "# A\n## Two words\n[up](../README.md) [here](#two-words)\n"),
    ];
    finds_nothing(super::docs::check, &files);
    let broken = [("docs/a.md", "# A\n[x](b.md)\n[y](#none)\n```\n[z](no.md)\n```\n")];
    let expected =
        ["docs/a.md:2: link `b.md` leads nowhere", "docs/a.md:3: no heading `#none` in docs/a.md"];
    finds(super::docs::check, &tree(&broken), &expected);
}

#[test]
fn a_document_that_code_names_is_there() {
    let code = "//! See docs/adr/0002-x.md, docs/adr/0002 and docs/y.md.\n";
    let adr = "# X\n## Status\n## Context\n## Decision\n## Consequences\n## Rejected\n";
    let tree = tree(&[("a.rs", code), ("docs/adr/0002-x.md", adr)]);
    finds(super::docs::check, &tree, &["a.rs:1: `docs/y.md` is not there"]);
}

#[test]
fn a_decision_says_what_was_rejected() {
    let text = "# X\n## Status\n## Context\n## Decision\n## Consequences\n";
    let expected = "docs/adr/0001-x.md: has no heading `## Rejected`";
    finds_one(super::docs::check, "docs/adr/0001-x.md", text, expected);
}

#[test]
fn a_crate_opens_with_one_sentence() {
    let check = |text: &str| shown(super::docs::check, &pure_tree("a", text));
    assert!(check("//! What this is.\n//!\n//! More. And more.\n").is_empty());
    let none = "crates/a/src/lib.rs: opens with one sentence that says what the crate is";
    assert_eq!(check("mod x;\n"), [none]);
    let two =
        "crates/a/src/lib.rs: opens with more than one sentence; leave a line after the first";
    assert_eq!(check("//! What this is. And more.\n"), [two]);
}

#[test]
fn the_changelog_has_a_place_for_what_comes() {
    finds_nothing(super::changelog::check, &[("CHANGELOG.md", "# C\n\n## Unreleased\n")]);
    let expected = "CHANGELOG.md: has no heading `## Unreleased`";
    finds_one(super::changelog::check, "CHANGELOG.md", "# C\n", expected);
}

#[test]
fn the_table_of_compatibility_is_that_of_its_sources() {
    let mut tree = Tree::read(&crate::root()).unwrap();
    assert!(super::compat::check(&tree).is_empty());
    tree.files.get_mut("tests/conformance/results.tsv").unwrap().clear();
    let stale = "docs/compat.md: is not what its sources say; run `cargo xtask compat`";
    let older = "docs/compat/results.md: is not what its sources say; run `cargo xtask compat`";
    finds(super::compat::check, &tree, &[stale, older]);
    tree.files.remove("tests/conformance/marks.txt");
    let gone = "docs/compat.md: cannot be made: tests/conformance/marks.txt is not in the tree";
    finds(super::compat::check, &tree, &[gone]);
}
