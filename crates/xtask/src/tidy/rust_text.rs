//! Just enough of Rust's grammar: where code ends and comments and literals begin.

/// `source` with the insides of comments, strings and character literals replaced by spaces. Lines and
/// columns (in bytes) stay what they were.
pub(crate) fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let hidden = if rest.starts_with(b"//") {
            rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if let Some(length) = raw_string(bytes, at) {
            length
        } else if rest[0] == b'"' {
            string(rest)
        } else if rest[0] == b'\'' {
            character(rest)
        } else {
            0
        };
        if hidden == 0 {
            out.push(bytes[at]);
            at += 1;
        } else {
            out.extend(rest[..hidden].iter().map(|&b| if b == b'\n' { b } else { b' ' }));
            at += hidden;
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

/// `code` (see [`code_only`]) up to its `#[cfg(test)]` module, which stands last in a file.
pub(crate) fn without_tests(code: &str) -> &str {
    code.find("#[cfg(test)]\nmod tests").map_or(code, |at| &code[..at])
}

/// Whether the path is that of test code.
pub(crate) fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples"))
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of the raw string that begins at `at`, if one does.
fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let inside_word = at > 0 && is_word(bytes[at - 1]) && bytes[at - 1] != b'b';
    let rest = bytes[at..].strip_prefix(b"r").filter(|_| !inside_word)?;
    let hashes = rest.iter().take_while(|&&b| b == b'#').count();
    let text = rest[hashes..].strip_prefix(b"\"")?;
    let mut end = vec![b'"'];
    end.extend(std::iter::repeat_n(b'#', hashes));
    let length = text.windows(end.len()).position(|window| window == end)?;
    Some(1 + hashes + 1 + length + end.len())
}

/// The length of a character literal, 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest.get(1) {
        Some(b'\\') => rest.iter().skip(3).position(|&b| b == b'\'').map_or(0, |end| end + 4),
        Some(&first) => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xE0 => 2,
                0xE0..0xF0 => 3,
                _ => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
        }
        None => 0,
    }
}

/// Where `word` stands in `code` as a whole word or path.
pub(crate) fn find_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let ends_in_word = word.as_bytes().last().is_some_and(|&b| is_word(b));
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).is_none_or(|before| !is_word(code.as_bytes()[before]));
        let after = code.as_bytes().get(at + word.len()).is_none_or(|&b| !is_word(b));
        before && (after || !ends_in_word)
    })
}

/// The line, counted from 1, of a position.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
