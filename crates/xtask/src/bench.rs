//! `cargo xtask bench`: builds what takes part, then compares in alternated rounds.
//!
//! librdkafka is compiled here and nowhere else. See docs/bench/README.md for the workloads and how
//! to read the report.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

/// Builds the broker and the bench, and runs `strandline-bench compare` with `arguments`.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<ExitCode> {
    cargo(root, &["--package", "strandline-cli"])?;
    cargo(root, &["--package", "strandline-bench", "--features", "librdkafka"])?;
    let compared = Command::new(root.join("target/release/strandline-bench"))
        .arg("compare")
        .args(arguments)
        .current_dir(root)
        .status()
        .context("start strandline-bench")?;
    Ok(if compared.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let built = Command::new("cargo")
        .args(["build", "--release"])
        .args(arguments)
        .current_dir(root)
        .status()
        .context("start cargo")?;
    ensure!(built.success(), "cargo build {} failed", arguments.join(" "));
    Ok(())
}
