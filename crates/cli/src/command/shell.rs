//! `strandline completion` and `strandline man`: what shells and manuals need, made from the
//! definitions of the commands themselves.

use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::roff::{Roff, bold, roman};

use super::Cli;
use super::examples::{examples, notes};
use crate::console;
use crate::failure::{Exit, Failure};

/// Prints the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline completion bash > \
                  /etc/bash_completion.d/strandline\n  strandline completion zsh")]
pub(crate) struct Completion {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the manual, a page for each command.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline man /usr/local/share/man/man1\n  strandline man --markdown"
)]
pub(crate) struct Man {
    /// The folder to write the pages to.
    #[arg(value_name = "DIR", required_unless_present = "markdown")]
    folder: Option<PathBuf>,
    /// Prints all of it as Markdown instead.
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

impl Completion {
    pub(super) fn run(self) {
        console::data(&script(self.shell));
    }
}

impl Man {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Some(folder) = &self.folder else {
            console::data(markdown().as_bytes());
            return Ok(());
        };
        write_pages(folder).map_err(|error| {
            let message = format!("cannot write the manual to {}: {error}", folder.display());
            Failure::new(Exit::Failed, "not_written", message)
        })
    }
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "strandline", &mut script);
    script
}

fn write_pages(folder: &Path) -> std::io::Result<()> {
    fn walk(command: &Command, folder: &Path) -> std::io::Result<()> {
        for child in command.get_subcommands() {
            walk(child, folder)?;
        }
        // Its page is named after it with the commands above it, as those who build it name it.
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        std::fs::write(folder.join(format!("{name}.1")), page(command)?)
    }
    std::fs::create_dir_all(folder)?;
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    walk(&cli, folder)
}

/// A page of the manual.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let manual = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    manual.render_options_section(&mut page)?;
    if command.has_subcommands() {
        manual.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    let notes = notes(command);
    if !notes.is_empty() {
        rest.control("SH", ["NOTES"]);
        for note in notes {
            rest.control("PP", []).text([roman(note)]);
        }
    }
    rest.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_CODES {
        rest.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    rest.control("SH", ["EXAMPLES"]).control("nf", []);
    for example in first_examples(command) {
        rest.text([roman(example)]);
    }
    rest.control("fi", []);
    rest.to_writer(&mut page)?;
    if command.get_version().is_some() {
        manual.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// A command's examples; of one that only has commands below it the first of each.
fn first_examples(command: &Command) -> Vec<String> {
    if !command.has_subcommands() {
        return examples(command);
    }
    let children = command.get_subcommands();
    children.filter_map(|child| first_examples(child).into_iter().next()).collect()
}

/// How every command ends.
const EXIT_CODES: [(&str, &str); 5] = [
    ("0", "done"),
    ("1", "at least one item failed"),
    ("2", "usage, configuration, or a confirmation is missing"),
    ("3", "not reached or not ready: trying again makes sense"),
    ("4", "a check is not satisfied"),
];

const INTRODUCTION: &str = "\
# Commands

<!-- Rendered by `strandline man --markdown` from crates/cli/src/command; do not edit. -->

Every command that talks to a broker takes `-b ADDRESSES` (or `STRANDLINE_BOOTSTRAP`) and works with
any Kafka broker; `client list`, `deletions`, `topic undelete`, `topic retention` and `topic segments`
ask a Strandline broker over HTTP, at `--http-url URL` (or `STRANDLINE_HTTP`).
Data goes to stdout, every other word to stderr.
With `--format json` both are JSON, and times are RFC 3339 in UTC.

With it each line on stderr is one object: `{\"error\": WORD, \"message\": TEXT}`, with `hint` for what
to do about it and `kafka_code` where a broker answered with one; also for a command line that can't be
read. What is no error has `warning` or `note` in place of `error`.
WORD is Kafka's name of the error in small letters (`topic_already_exists`), or a word of ours
(`unreachable`, `usage`, `no_match`); `unknown_topic`, `invalid_topic` and `unknown_group` stand for
`UNKNOWN_TOPIC_OR_PARTITION`, `INVALID_TOPIC_EXCEPTION` and `GROUP_ID_NOT_FOUND`.
The `--format` of `produce` is that of its input; what it says is text.

| exit code | meaning |
| --- | --- |
";

/// `docs/commands.md`.
fn markdown() -> String {
    fn walk(command: &Command, path: &str, text: &mut String) {
        for child in command.get_subcommands() {
            let name = format!("{path} {}", child.get_name());
            if child.has_subcommands() {
                walk(child, &name, text);
            } else {
                *text += &section(child, &name);
            }
        }
    }
    let mut text = INTRODUCTION.to_owned();
    for (code, meaning) in EXIT_CODES {
        text += &format!("| {code} | {meaning} |\n");
    }
    walk(&Cli::command(), "strandline", &mut text);
    text
}

fn section(command: &Command, name: &str) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("\n## `{name}`\n\n{about}.\n");
    let arguments: Vec<&Arg> = command.get_arguments().filter(|one| !one.is_hide_set()).collect();
    if !arguments.is_empty() {
        text += "\n| argument | meaning |\n| --- | --- |\n";
    }
    for argument in arguments {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.replace('|', "\\|").replace('\n', " ");
        text += &format!("| `{}` | {help} |\n", written(argument).replace('|', "\\|"));
    }
    let examples = examples(command);
    if !examples.is_empty() {
        text += &format!("\n```sh\n{}\n```\n", examples.join("\n"));
    }
    for note in notes(command) {
        text += &format!("\n{note}\n");
    }
    text
}

/// How an argument is written: `-p, --partitions N`, `NAME...`.
fn written(argument: &Arg) -> String {
    let values: Vec<String> = if argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().map(ToString::to_string).collect()
    } else {
        Vec::new()
    };
    let values = values.join(" ");
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|short| format!("-{short}")));
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    if names.is_empty() {
        return values;
    }
    format!("{} {values}", names.join(", ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command with its path of names.
    fn commands() -> Vec<Vec<String>> {
        fn walk(command: &Command, path: &[String], all: &mut Vec<Vec<String>>) {
            for child in command.get_subcommands() {
                let mut path = path.to_vec();
                path.push(child.get_name().to_owned());
                walk(child, &path, all);
                all.push(path);
            }
        }
        let mut all = Vec::new();
        walk(&Cli::command(), &[], &mut all);
        assert!(all.len() > 20);
        all
    }

    #[test]
    fn every_command_has_a_page_of_the_manual() {
        let folder = tempfile::tempdir().expect("a folder");
        write_pages(folder.path()).expect("written");
        for path in commands() {
            let page = folder.path().join(format!("strandline-{}.1", path.join("-")));
            let text = std::fs::read_to_string(&page)
                .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            for section in ["SYNOPSIS", "\"EXIT STATUS\"", "EXAMPLES"] {
                assert!(text.contains(&format!(".SH {section}")), "{} {section}", page.display());
            }
            let examples = text.split(".SH EXAMPLES").nth(1).expect("a section");
            assert!(examples.contains("strandline "), "{}: no example", page.display());
        }
    }

    #[test]
    fn every_shell_completes_every_command_and_option() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = String::from_utf8(script(shell)).expect("text");
            for path in commands() {
                let word = path.last().expect("a name");
                assert!(script.contains(word), "{shell} does not know {}", path.join(" "));
            }
            assert!(script.contains("bootstrap"), "{shell}");
        }
    }

    /// `UPDATE_EXPECT=1 cargo test -p strandline-cli` rewrites the file.
    #[test]
    fn the_committed_reference_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, markdown()).expect("write the reference");
        }
        let committed = std::fs::read_to_string(path).expect("docs/commands.md is committed");
        assert!(committed == markdown(), "docs/commands.md is stale; run with UPDATE_EXPECT=1");
    }
}
