//! The format of Kafka's `server.properties`: that of `java.util.Properties`.
//!
//! Comments begin with `#` or `!`; the key ends at the first unescaped `=`, `:` or blank; a line
//! that ends in an odd number of backslashes goes on in the next; `\t`, `\n`, `\r`, `\f` and
//! `\uXXXX` are escapes, any other escaped character stands for itself. Unlike Java we read UTF-8
//! and say where things stand.

/// Where an entry stands. Lines and columns count from 1; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line that the key is on.
    pub(crate) line: usize,
    /// Where the key begins.
    pub(crate) key_column: usize,
    /// Where the value begins, if it does on the same line, else where that line ends.
    pub(crate) value_column: usize,
    /// The whole line.
    pub(crate) text: String,
}

/// A key and its value, unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// The value; empty when there is none.
    pub(crate) value: String,
    /// Where it stands.
    pub(crate) position: Position,
}

/// A `\u` without four hexadecimal digits: the one thing that Java's format refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadEscape {
    /// The line it begins on.
    pub(crate) position: Position,
}

/// The entries of a file in their order, double ones included.
pub(crate) fn parse(contents: &str) -> Result<Vec<Entry>, BadEscape> {
    let mut entries = Vec::new();
    let mut lines = contents.lines().enumerate();
    while let Some((index, first)) = lines.next() {
        let content = first.trim_start_matches(is_blank);
        if content.is_empty() || content.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = content.to_owned();
        while ends_in_odd_backslashes(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(is_blank));
        }
        let indent = first.chars().count() - content.chars().count();
        entries.push(entry(index + 1, first, indent, &logical)?);
    }
    Ok(entries)
}

fn entry(line: usize, text: &str, indent: usize, logical: &str) -> Result<Entry, BadEscape> {
    let (key, value) = split(logical);
    let before_value = logical.len() - value.len();
    let value_column = indent + logical[..before_value].chars().count() + 1;
    let position = Position {
        line,
        key_column: indent + 1,
        value_column: value_column.min(text.chars().count().max(1)),
        text: text.to_owned(),
    };
    match (unescape(key), unescape(value)) {
        (Some(key), Some(value)) => Ok(Entry { key, value, position }),
        _ => Err(BadEscape { position }),
    }
}

/// Java's blanks: space, tab, form feed.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

fn ends_in_odd_backslashes(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The key and the value, still escaped.
fn split(logical: &str) -> (&str, &str) {
    let mut escaped = false;
    let key_end = logical
        .char_indices()
        .find(|(_, c)| {
            let ends = !escaped && (is_blank(*c) || matches!(c, '=' | ':'));
            escaped = !escaped && *c == '\\';
            ends
        })
        .map_or(logical.len(), |(at, _)| at);
    let (key, rest) = logical.split_at(key_end);
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_blank))
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            None => {}
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let is_hex = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
                let code =
                    if is_hex { u32::from_str_radix(&digits, 16).ok()? } else { return None };
                // Half of a surrogate pair is no character by itself.
                plain.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(contents: &str) -> Vec<(String, String)> {
        let entries = parse(contents).expect("good escapes");
        entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    fn pair(line: &str) -> (String, String) {
        let mut pairs = pairs(line);
        assert_eq!(pairs.len(), 1, "{line}");
        pairs.remove(0)
    }

    #[test]
    fn entries_are_split_as_java_splits_them() {
        for (line, key, value) in [
            ("a=b", "a", "b"),
            ("a:b", "a", "b"),
            ("a b", "a", "b"),
            ("  a  =  b ", "a", "b "),
            ("a", "a", ""),
            ("a=", "a", ""),
            ("=b", "", "b"),
            ("a==b", "a", "=b"),
            ("a\tb=c", "a", "b=c"),
            (r"a\=b=c", "a=b", "c"),
            (r"a\ b c", "a b", "c"),
            (r"a=\u0041\t\\x\q", "a", "A\t\\xq"),
            ("a=b # no comment", "a", "b # no comment"),
        ] {
            assert_eq!(pair(line), (key.to_owned(), value.to_owned()), "{line:?}");
        }
    }

    #[test]
    fn lines_go_on_after_an_odd_number_of_backslashes() {
        assert_eq!(pair("a=b,\\\n   c"), ("a".to_owned(), "b,c".to_owned()));
        assert_eq!(pair("a=b\\"), ("a".to_owned(), "b".to_owned()));
        assert_eq!(pairs("a=b\\\\\nc=d").len(), 2);
    }

    #[test]
    fn comments_and_empty_lines_are_skipped() {
        let contents = "# one\n\n  ! two\r\nlisteners=x\r\n   \n";
        assert_eq!(pairs(contents), [("listeners".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn entries_know_where_they_stand() {
        let entries = parse("\n  key = value\n").expect("good");
        let position = &entries[0].position;
        assert_eq!((position.line, position.key_column, position.value_column), (2, 3, 9));
        assert_eq!(position.text, "  key = value");
        let entries = parse("key=\\\n  value").expect("good");
        assert_eq!(entries[0].position.value_column, 5);
    }

    #[test]
    fn a_broken_unicode_escape_is_refused() {
        for line in [r"a=\u00", r"a=\u00zz", r"\u=a", r"a=\u+041"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
