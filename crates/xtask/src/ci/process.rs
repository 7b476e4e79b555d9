//! Running other programs, with their command line on the log.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// A command that is about to run.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    shown: String,
}

/// Begins a command line; relative paths in it count from `folder`.
pub(crate) fn run(folder: &Path, program: impl AsRef<OsStr>) -> Run {
    let program = program.as_ref();
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    let name = Path::new(program).file_name().unwrap_or(program);
    Run { command, shown: name.to_string_lossy().into_owned() }
}

impl Run {
    /// Adds words that stand apart by spaces.
    pub(crate) fn words(mut self, words: &str) -> Self {
        for word in words.split_whitespace() {
            self = self.arg(word);
        }
        self
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        let argument = argument.as_ref();
        self.shown.push(' ');
        self.shown.push_str(&argument.to_string_lossy());
        self.command.arg(argument);
        self
    }

    /// Sets a variable of the command's environment.
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        let value = value.as_ref();
        self.shown = format!("{key}={} {}", value.to_string_lossy(), self.shown);
        self.command.env(key, value);
        self
    }

    /// Puts a folder before all others in the command's search path.
    pub(crate) fn path_first(self, folder: &Path) -> anyhow::Result<Self> {
        self.paths_first(&[folder.to_path_buf()])
    }

    /// Puts folders before all others in the command's search path.
    pub(crate) fn paths_first(mut self, folders: &[PathBuf]) -> anyhow::Result<Self> {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let folders = folders.iter().cloned().chain(std::env::split_paths(&old));
        self.command.env("PATH", std::env::join_paths(folders).context("join the search path")?);
        Ok(self)
    }

    /// Runs it; fails unless it ends with 0.
    pub(crate) fn wait(mut self) -> anyhow::Result<()> {
        println!("    {}", self.shown);
        let status = self.command.status().with_context(|| format!("start `{}`", self.shown))?;
        ensure!(status.success(), "`{}` ended with {status}", self.shown);
        Ok(())
    }

    /// Runs it quietly; what it printed.
    pub(crate) fn output(mut self) -> anyhow::Result<String> {
        let output = self.command.output().with_context(|| format!("start `{}`", self.shown))?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{}` ended with {}: {error}", self.shown, output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Where a program of that name is found.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
