//! Patterns over test ids, and files of them in sections.

use anyhow::{Context as _, ensure};

/// Whether `id` is what `pattern` says; each `*` in it stands for any text, also none.
pub(super) fn matches(pattern: &str, id: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == id };
    let Some(left) = id.strip_prefix(head) else { return false };
    // The shortest text for each star but the last leaves the most for what follows.
    (0..=left.len()).filter(|&at| left.is_char_boundary(at)).any(|at| matches(rest, &left[at..]))
}

/// A heading with the patterns below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// What stands in the brackets.
    pub(super) name: String,
    /// What stands behind them.
    pub(super) text: String,
    /// One a line.
    pub(super) patterns: Vec<String>,
}

/// Reads `[name] text` headings and the patterns below each. Lines that begin with `#` are comments.
pub(super) fn sections(text: &str) -> anyhow::Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // Ids may hold brackets too, but none begins with one.
        if let Some(rest) = line.strip_prefix('[') {
            let (name, text) = rest
                .split_once(']')
                .with_context(|| format!("line {}: a heading is `[name] text`", index + 1))?;
            sections.push(Section {
                name: name.trim().to_owned(),
                text: text.trim().to_owned(),
                patterns: Vec::new(),
            });
        } else {
            let section = sections.last_mut();
            let section =
                section.with_context(|| format!("line {}: no heading above it", index + 1))?;
            section.patterns.push(line.to_owned());
        }
    }
    for section in &sections {
        ensure!(!section.patterns.is_empty(), "the section [{}] is empty", section.name);
    }
    Ok(sections)
}

/// The first section with a pattern for `id`.
pub(super) fn section_of<'a>(sections: &'a [Section], id: &str) -> Option<&'a Section> {
    sections.iter().find(|section| section.patterns.iter().any(|pattern| matches(pattern, id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let cases = [
            ("kgo/TestPing", "kgo/TestPing", true),
            ("kgo/TestPing", "kgo/TestPing2", false),
            ("kgo/*", "kgo/", true),
            ("*ETL/*", "kgo/TestGroupETL/range", true),
            ("*/range/*/static", "kgo/T/range/848/static", true),
            ("*/range/*/static", "kgo/T/range/static", false),
            ("java/*#test*[2]", "java/a.B#testSome[2]", true),
            ("java/*#test*[2]", "java/a.B#testSome", false),
            ("a*a", "a", false),
        ];
        for (pattern, id, expected) in cases {
            assert_eq!(matches(pattern, id), expected, "{pattern} {id}");
        }
    }

    #[test]
    fn sections_keep_their_order_and_the_first_match_wins() {
        let text = "# comment\n[a] why a\nx/1\n\n[b] why b\nx/*\n";
        let read = sections(text).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].text, "why a");
        assert_eq!(section_of(&read, "x/1").unwrap().name, "a");
        assert_eq!(section_of(&read, "x/2").unwrap().name, "b");
        assert!(section_of(&read, "y/2").is_none());
    }

    #[test]
    fn lines_without_a_heading_and_empty_sections_are_refused() {
        for bad in ["x/1\n", "[a] why\n", "[a why\nx/1\n", "[a] why\n[b] why\nx\n"] {
            assert!(sections(bad).is_err(), "{bad:?}");
        }
    }
}
