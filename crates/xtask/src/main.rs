//! The project's toolbox: `cargo xtask tidy`, `ci`, `conformance` and `bench`.
//!
//! Everything that guards the tree is written here, in Rust, and run the same way by a person and by CI.
//! The toolbox knows the shape of the tree and how to call other programs. Of Kafka it knows the names
//! of its APIs and of its clients' tests.

#![expect(clippy::print_stdout, reason = "a toolbox talks to the person who runs it")]

mod bench;
mod ci;
mod conformance;
mod tidy;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

const USAGE: &str = "usage: cargo xtask COMMAND

  ci [--full]        run every check, as CI does; `ci --list` names the steps,
                     `ci STEP ...` runs some of them
  tidy [--tighten]   check the tree: crate edges, fences, ratchets, words, docs
                     --tighten lowers the ratchet's numbers to what is there
  conformance [LANE ...]
                     run the tests that others wrote for Kafka's clients against the
                     release build; --fast, --twice, --only PATTERN, --record,
                     --crash, --storage file|postgres
  compat             write docs/compat.md and docs/compat/ from the kept results and
                     the API table
  bench [ARG ...]    compare with reference brokers in alternated rounds; arguments
                     are those of `strandline-bench compare`";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let root = root();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci", rest @ ..] => ci::run(root, rest),
        ["conformance", rest @ ..] => conformance::run(root, rest),
        ["compat"] => conformance::compat::run(&root),
        ["bench", rest @ ..] => bench::run(&root, rest),
        ["tidy"] => tidy::run(&root, tidy::Mode::Check),
        ["tidy", "--tighten"] => tidy::run(&root, tidy::Mode::Tighten),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        [] => bail!("no command\n{USAGE}"),
        [unknown, ..] => bail!("unknown command or arguments: {unknown}\n{USAGE}"),
    }
}

/// The workspace's folder: two above this crate's.
fn root() -> PathBuf {
    // Cargo's word of now comes first: a copied or moved tree brings programs that were built elsewhere.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.ancestors().nth(2).expect("crates/xtask lies two below the root").to_path_buf()
}
