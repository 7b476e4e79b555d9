//! "Did you mean …?": the known word nearest to a wrong one.

/// The candidate with the fewest edits from `word`, when they are few enough for a typo.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the word may be wrong, but never so much that everything is near.
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits between two words: a letter added, dropped or replaced, or two neighbours swapped.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().map(|c| c.to_ascii_lowercase()).collect();
    let to: Vec<char> = to.chars().map(|c| c.to_ascii_lowercase()).collect();
    let width = to.len() + 1;
    let mut above: Vec<usize> = vec![0; width];
    let mut row: Vec<usize> = (0..width).collect();
    for (i, a) in from.iter().enumerate() {
        let mut next = vec![i + 1; width];
        for (j, b) in to.iter().enumerate() {
            let replaced = row[j] + usize::from(a != b);
            next[j + 1] = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                next[j + 1] = next[j + 1].min(above[j - 1] + 1);
            }
        }
        above = row;
        row = next;
    }
    row[width - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (from, to, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("Log.Dirs", "log.dirs", 0),
        ] {
            assert_eq!(distance(from, to), edits, "{from} -> {to}");
        }
    }

    #[test]
    fn a_typo_finds_its_word_and_nonsense_finds_none() {
        let words = ["log.retention.ms", "log.retention.bytes", "num.partitions"];
        let near = |word| nearest(word, words.into_iter());
        assert_eq!(near("log.retention.mss"), Some("log.retention.ms"));
        assert_eq!(near("num.partition"), Some("num.partitions"));
        assert_eq!(near("log.retentoin.bytes"), Some("log.retention.bytes"));
        assert_eq!(near("shoe.size"), None);
    }
}
