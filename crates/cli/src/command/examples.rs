//! `strandline examples`: the examples of all commands, on one page.
//!
//! They are those of each command's help, so that there is one list of them.

use clap::{Args, Command, CommandFactory};

use super::Cli;
use crate::console;
use crate::failure::{Exit, Failure};

/// Prints examples of all commands, or of those that are about a word.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline examples\n  strandline examples group")]
pub(crate) struct Examples {
    /// A word: produce, group, offsets, ...
    #[arg(value_name = "TOPIC")]
    word: Option<String>,
}

/// A command with its examples.
struct Sheet {
    /// `topic create`.
    name: String,
    about: String,
    examples: Vec<String>,
}

impl Examples {
    pub(super) fn run(self) -> Result<(), Failure> {
        let sheets = sheets();
        let word = self.word.unwrap_or_default().to_lowercase();
        let found: Vec<&Sheet> = sheets.iter().filter(|sheet| sheet.is_about(&word)).collect();
        if found.is_empty() {
            let message = format!("no example is about \"{word}\"");
            return Err(Failure::new(Exit::Failed, "no_example", message)
                .hint("all of them: strandline examples"));
        }
        let texts: Vec<String> = found.iter().map(|sheet| sheet.text()).collect();
        console::data(texts.join("\n").as_bytes());
        Ok(())
    }
}

impl Sheet {
    fn is_about(&self, word: &str) -> bool {
        let in_text = |text: &str| text.to_lowercase().contains(word);
        in_text(&self.name) || in_text(&self.about) || self.examples.iter().any(|one| in_text(one))
    }

    fn text(&self) -> String {
        format!("# {}\n{}\n", self.about, self.examples.join("\n"))
    }
}

/// Every command that does something, with its examples.
fn sheets() -> Vec<Sheet> {
    fn walk(command: &Command, path: &str, sheets: &mut Vec<Sheet>) {
        for child in command.get_subcommands() {
            let name = format!("{path} {}", child.get_name()).trim_start().to_owned();
            if !child.has_subcommands() {
                sheets.push(Sheet {
                    about: child.get_about().map(ToString::to_string).unwrap_or_default(),
                    examples: examples(child),
                    name: name.clone(),
                });
            }
            walk(child, &name, sheets);
        }
    }
    let mut sheets = Vec::new();
    walk(&Cli::command(), "", &mut sheets);
    sheets
}

/// The lines of a command's help that call it.
pub(super) fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.split("\n\n").filter(|part| is_examples(part)).flat_map(str::lines);
    lines.skip(1).map(|line| line.trim().to_owned()).collect()
}

/// What a command's help says beside its examples, a paragraph each.
pub(super) fn notes(command: &Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let parts = help.split("\n\n").filter(|part| !part.is_empty() && !is_examples(part));
    parts.map(|part| part.lines().map(str::trim).collect::<Vec<_>>().join(" ")).collect()
}

fn is_examples(part: &str) -> bool {
    part.starts_with("Example:\n") || part.starts_with("Examples:\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_command_line_that_parses() {
        for sheet in sheets() {
            for example in &sheet.examples {
                let words =
                    words_of(example).unwrap_or_else(|| panic!("{example:?} is no command"));
                let parsed = Cli::command().try_get_matches_from(words);
                if let Err(error) = parsed {
                    panic!("{example}\n{error}");
                }
            }
        }
    }

    /// The words of the call of strandline in a line of shell; `None` where there is none.
    fn words_of(line: &str) -> Option<Vec<String>> {
        let call = line.split(" | ").find(|part| part.starts_with("strandline "))?;
        let mut words = Vec::new();
        let mut word = String::new();
        let mut quoted = false;
        for c in call.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(std::mem::take(&mut word)),
                '>' | '<' if !quoted => break,
                c => word.push(c),
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        Some(words)
    }

    #[test]
    fn what_help_says_beside_examples_is_no_example() {
        let command = Command::new("x").after_help(
            "Examples:\n  strandline x a\n  strandline x b\n\nSTATE is a word; strandline \
             explain says what it means.\n\nAnd more.",
        );
        assert_eq!(examples(&command), ["strandline x a", "strandline x b"]);
        assert_eq!(
            notes(&command),
            ["STATE is a word; strandline explain says what it means.", "And more."]
        );
        assert_eq!(examples(&Command::new("x")), [""; 0]);
        assert_eq!(notes(&Command::new("x")), [""; 0]);
    }

    #[test]
    fn a_word_finds_its_commands() {
        let about = |word: &str| sheets().iter().filter(|sheet| sheet.is_about(word)).count();
        assert!(about("seek") > 0);
        assert_eq!(about("no such thing"), 0);
        assert_eq!(about(""), sheets().len());
    }
}
