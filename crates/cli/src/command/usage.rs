//! Command lines that can't be read, for programs: an object, as every other error is.
//!
//! Such a line has no format yet, so whether JSON is wanted is read off its words.

use std::ffi::OsString;

use clap::CommandFactory;

use super::Cli;
use crate::failure::Failure;

/// Whether the words of a command line, the program's name first, ask for JSON.
pub(crate) fn asks_for_json(words: &[OsString]) -> bool {
    let words: Vec<&str> = words
        .iter()
        .skip(1)
        .map(|word| word.to_str().unwrap_or_default())
        .take_while(|word| *word != "--")
        .collect();
    let cli = Cli::command();
    let command = words.iter().find_map(|word| cli.find_subcommand(word));
    let flags: &[&str] = match command.map(clap::Command::get_name) {
        // Its format is that of what it reads.
        None | Some("produce") => &[],
        Some("consume") => &["--format", "-f"],
        Some(_) => &["--format"],
    };
    words.iter().enumerate().any(|(index, word)| {
        flags.iter().any(|flag| match word.strip_prefix(flag) {
            Some("") => words.get(index + 1) == Some(&"json"),
            Some("=json") => true,
            Some("json") => *flag == "-f",
            _ => false,
        })
    })
}

/// What is wrong with a command line, as every other failure is told.
pub(crate) fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let (first, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let message = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let hints = rest.lines().map(str::trim).filter(|line| !line.is_empty());
    hints.fold(Failure::usage(message), Failure::hint)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn asks(line: &str) -> bool {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        asks_for_json(&words)
    }

    #[test]
    fn a_line_that_can_not_be_read_still_says_which_format_it_wants() {
        for line in [
            "strandline group seek x --to zz --format json",
            "strandline group seek x --to zz --format=json",
            "strandline -b h:1 topic --format json nonsense",
            "strandline consume x -f json -n many",
            "strandline consume x -fjson -n many",
            "strandline consume x --format json -n many",
        ] {
            assert!(asks(line), "{line}");
        }
        for line in [
            "strandline group seek x --to zz",
            "strandline group seek x --format text --to json",
            "strandline topic create x -- --format json",
            "strandline topic create -f json --nonsense",
            "strandline produce x -f json --nonsense",
            "strandline produce x --format json --nonsense",
            "strandline --format json",
        ] {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_one_message_and_the_way_on() {
        let failure = |line: &str| {
            let error = Cli::try_parse_from(line.split(' ')).expect_err("no good line");
            usage_failure(&error)
        };
        let bad = failure("strandline group seek x --to zz");
        assert_eq!(bad.code, "usage");
        assert!(bad.message.starts_with("invalid value 'zz' for '--to <PLACE>': "), "{bad:?}");
        assert!(bad.hints.iter().any(|hint| hint.contains("--help")), "{bad:?}");
        let missing = failure("strandline topic trim x");
        assert!(
            missing.message.ends_with("required arguments were not provided: --before <PLACE>"),
            "{missing:?}"
        );
        let unknown = failure("strandline topic list --formt json");
        assert!(unknown.hints.iter().any(|hint| hint.contains("'--format'")), "{unknown:?}");
    }
}
