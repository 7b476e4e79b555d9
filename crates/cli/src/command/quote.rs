//! Names in commands that are suggested, as a shell takes them.

use std::fmt::Write as _;

/// A name as one word of a POSIX shell; `$'…'` (bash, zsh, ksh) where it holds control characters.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    if !name.chars().any(char::is_control) {
        return format!("'{}'", name.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for c in name.chars() {
        match c {
            '\\' | '\'' => word.extend(['\\', c]),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    write!(word, "\\x{byte:02x}").expect("a string takes all");
                }
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// Names one after another.
pub(crate) fn all_quoted(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" ")
}

/// A command about names, confirmed: what begins like a flag comes after `--`.
pub(crate) fn confirmed(command: &str, names: &[String]) -> String {
    let words = all_quoted(names);
    if names.iter().any(|name| name.starts_with('-')) {
        format!("{command} --yes -- {words}")
    } else {
        format!("{command} {words} --yes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_a_shell_needs() {
        for (name, word) in [
            ("orders.eu-1_x", "orders.eu-1_x"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("$HOME; rm *", "'$HOME; rm *'"),
            ("größe", "'größe'"),
            ("a\nb'\\", r"$'a\x0ab\'\\'"),
            ("\u{85}", r"$'\xc2\x85'"),
        ] {
            assert_eq!(quoted(name), word, "{name:?}");
        }
    }

    #[test]
    fn a_shell_reads_the_name_back() {
        for name in
            ["", "a b", "it's", "$(x) `y` \"z\" \\", "-n", "größe", "a\n\tb'\u{1b}", "!x #y"]
        {
            let script = format!("printf %s {}", quoted(name));
            // `printf %s -n` takes it as text.
            let shell = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), name, "{script}");
        }
    }

    #[test]
    fn what_looks_like_a_flag_comes_last() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(confirmed("x rm", &names(&["a", "b c"])), "x rm a 'b c' --yes");
        assert_eq!(confirmed("x rm", &names(&["a", "-b"])), "x rm --yes -- a -b");
    }
}
