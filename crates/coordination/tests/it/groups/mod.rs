//! Transcripts of the group machine: `tests/scripts/group/*.txt`.
//!
//! A script is a list of blocks; each has commands, a line of dashes, and what they caused. With
//! `UPDATE_EXPECT=1` the second half of each block is written anew: commit only what you understand.
//!
//! ```text
//! join a protocols=range(t)        the reply is called a
//! at 3000                          time goes on to 3 s; deadlines come when they are due
//! restart                          a new machine, from the rows that were kept
//! ```

mod cost;
mod print;
mod script;

use std::fs;
use std::path::{Path, PathBuf};

use script::Script;

#[test]
fn groups_do_what_the_scripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/group");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let run = run(&text);
        if update {
            fs::write(&file, run).unwrap();
        } else {
            assert_eq!(run, text, "{}", file.display());
        }
    }
}

/// The script with what its commands cause.
fn run(text: &str) -> String {
    let mut script = Script::new();
    let mut blocks = Vec::new();
    for block in text.trim_end().split("\n\n") {
        let (commands, _) = block.split_once("\n----").unwrap_or((block, ""));
        let mut caused = String::new();
        for command in commands.lines().filter(|line| !line.starts_with('#')) {
            for line in script.run(command) {
                caused.push('\n');
                caused.push_str(&line);
            }
        }
        let is_comment = commands.lines().all(|line| line.starts_with('#'));
        blocks.push(if is_comment {
            commands.to_owned()
        } else {
            format!("{commands}\n----{caused}")
        });
    }
    blocks.join("\n\n") + "\n"
}
