//! A fault in a setting, shown where it stands.
//!
//! ```text
//! error: server.properties:14:17: unknown key "log.retention.mss"
//!   14 | log.retention.mss=604800000
//!      |                 ^ did you mean log.retention.ms?
//! ```

use std::fmt;

use super::properties::Position;

/// Where a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In the properties file.
    File {
        /// The file as the user named it.
        path: String,
        /// Where in it.
        position: Position,
    },
    /// In a variable of the environment.
    Environment {
        /// The variable.
        variable: String,
    },
    /// In a `-c key=value`.
    Assignment {
        /// The argument as it was typed.
        argument: String,
    },
    /// In a flag of its own, such as `--port`.
    Flag {
        /// The flag with its dashes.
        flag: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, position } => write!(f, "{path}:{}", position.line),
            Self::Environment { variable } => write!(f, "environment {variable}"),
            Self::Assignment { argument } => write!(f, "-c {argument}"),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}

/// What is wrong, where, and what may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// The setting at fault.
    pub(crate) origin: Origin,
    /// The column that the caret stands under, for a fault in a file.
    pub(crate) column: usize,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File { path, position } => {
                let line = position.line.to_string();
                // The caret must stand under the character, so tabs count as one blank on both lines.
                let text = position.text.replace('\t', " ");
                writeln!(f, "{path}:{line}:{}: {}", self.column, self.message)?;
                writeln!(f, "  {line} | {text}")?;
                let margin = " ".repeat(line.len());
                write!(f, "  {margin} | {:>width$}", "^", width = self.column)?;
            }
            origin => {
                write!(f, "{origin}: {}", self.message)?;
                if self.hint.is_some() {
                    write!(f, "\n ")?;
                }
            }
        }
        match &self.hint {
            Some(hint) => write!(f, " {hint}"),
            None => Ok(()),
        }
    }
}

/// The first column, counted from 1, in which `wrong` differs from `right`.
pub(super) fn first_difference(wrong: &str, right: &str) -> usize {
    let same = wrong.chars().zip(right.chars()).take_while(|(a, b)| a == b).count();
    same.min(wrong.chars().count().saturating_sub(1)) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_a_file_is_shown_under_its_line() {
        let diagnostic = Diagnostic {
            origin: Origin::File {
                path: "server.properties".to_owned(),
                position: Position {
                    line: 14,
                    key_column: 1,
                    value_column: 19,
                    text: "log.retention.mss=604800000".to_owned(),
                },
            },
            column: first_difference("log.retention.mss", "log.retention.ms"),
            message: "unknown key \"log.retention.mss\"".to_owned(),
            hint: Some("did you mean log.retention.ms?".to_owned()),
        };
        assert_eq!(
            diagnostic.to_string(),
            "server.properties:14:17: unknown key \"log.retention.mss\"\n\
             \x20 14 | log.retention.mss=604800000\n\
             \x20    |                 ^ did you mean log.retention.ms?"
        );
    }

    #[test]
    fn a_fault_elsewhere_names_its_place() {
        let diagnostic = Diagnostic {
            origin: Origin::Environment { variable: "STRANDLINE_NODE_IDD".to_owned() },
            column: 1,
            message: "unknown key \"node.idd\"".to_owned(),
            hint: Some("did you mean STRANDLINE_NODE_ID?".to_owned()),
        };
        assert_eq!(
            diagnostic.to_string(),
            "environment STRANDLINE_NODE_IDD: unknown key \"node.idd\"\n  did you mean \
             STRANDLINE_NODE_ID?"
        );
    }

    #[test]
    fn the_first_difference_is_inside_the_wrong_word() {
        assert_eq!(first_difference("log.retention.mss", "log.retention.ms"), 17);
        assert_eq!(first_difference("num.partition", "num.partitions"), 13);
        assert_eq!(first_difference("xum", "num"), 1);
    }
}
