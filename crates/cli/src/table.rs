//! Columns for people: no borders, two blanks between, names in capitals, `-` for nothing.

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
            values.map(|value| value.chars().count()).max().unwrap_or(0)
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
    fn control_characters_stay_off_the_terminal() {
        let mut table = Table::new(&[("GROUP", Align::Left)]);
        table.row(["\u{1b}[2Jx\n".to_owned()]);
        assert_eq!(table.render(), "GROUP\n\\u{1b}[2Jx\\n\n");
    }
}
