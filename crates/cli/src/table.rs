//! Columns for people: no borders, two blanks between, names in capitals, `-` for nothing.

/// The longest value that others are padded to, in characters: a name of Kafka's longest, 249, must
/// not push what stands beside short names off the screen. What is longer takes what it needs.
const PADDED_CHARS_MAX: usize = 64;

/// Rows under their column names.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

/// Which side of its column a value leans on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

impl Table {
    /// A table of these columns, without rows.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            rows: vec![columns.iter().map(|(name, _)| (*name).to_owned()).collect()],
            right: columns.iter().map(|(_, align)| *align == Align::Right).collect(),
        }
    }

    /// Adds a row; an empty value is shown as `-`.
    pub(crate) fn row(&mut self, values: impl IntoIterator<Item = String>) {
        let shown = |value: String| if value.is_empty() { "-".to_owned() } else { plain(&value) };
        self.rows.push(values.into_iter().map(shown).collect());
    }

    /// The lines, each with its end.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            let values = self.rows.iter().filter_map(|row| row.get(column));
            let lengths = values.map(|value| value.chars().count());
            lengths.filter(|length| *length <= PADDED_CHARS_MAX).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((value, width), right) in row.iter().zip(&widths).zip(&self.right) {
                if !line.is_empty() {
                    line += "  ";
                }
                line +=
                    &if *right { format!("{value:>width$}") } else { format!("{value:<width$}") };
            }
            text += line.trim_end();
            text += "\n";
        }
        text
    }
}

/// A text of a peer (a group, a client id) as one that moves no cursor.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { plain.extend(c.escape_default()) } else { plain.push(c) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lean_left_and_numbers_right() {
        let mut table = Table::new(&[("TOPIC", Align::Left), ("PARTITIONS", Align::Right)]);
        table.row(["a-long-name".to_owned(), "6".to_owned()]);
        table.row([String::new(), "100".to_owned()]);
        assert_eq!(
            table.render(),
            "TOPIC        PARTITIONS\n\
             a-long-name           6\n\
             -                   100\n"
        );
    }

    #[test]
    fn a_very_long_name_moves_its_own_line_only() {
        let mut table = Table::new(&[("TOPIC", Align::Left), ("RECORDS", Align::Right)]);
        let long = "x".repeat(249);
        table.row([long.clone(), "7".to_owned()]);
        table.row(["orders".to_owned(), "12".to_owned()]);
        assert_eq!(
            table.render(),
            format!(
                "TOPIC   RECORDS\n\
                 {long}        7\n\
                 orders       12\n"
            )
        );
        let mut table = Table::new(&[("TOPIC", Align::Left), ("RECORDS", Align::Right)]);
        table.row(["y".repeat(64), "7".to_owned()]);
        assert!(table.render().starts_with(&format!("TOPIC{}  RECORDS\n", " ".repeat(59))));
    }

    #[test]
    fn control_characters_stay_off_the_terminal() {
        let mut table = Table::new(&[("GROUP", Align::Left)]);
        table.row(["\u{1b}[2Jx\n".to_owned()]);
        assert_eq!(table.render(), "GROUP\n\\u{1b}[2Jx\\n\n");
    }
}
