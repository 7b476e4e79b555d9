//! A word beside the data that is no error: a warning, or how a command went.
//!
//! ```text
//! warning: orders-0 has no offset 99; the nearest is 12
//! ```

use std::fmt;

use crate::command::OutputFormat;
use crate::console;
use crate::failure::{object, with_hints};

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Something may not be as it was meant.
    Warning,
    /// How it went.
    Note,
}

/// A word that ends nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    kind: Kind,
    code: &'static str,
    message: String,
    hints: Vec<String>,
}

impl Remark {
    /// Something may not be as it was meant; `code` is a stable word for scripts.
    pub(crate) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { kind: Kind::Warning, code, message: message.into(), hints: Vec::new() }
    }

    /// How it went; `code` is a stable word for scripts.
    pub(crate) fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self { kind: Kind::Note, code, message: message.into(), hints: Vec::new() }
    }

    /// The same remark with one more line.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// As it goes to stderr: lines, or one JSON object.
    pub(crate) fn shown(&self, format: OutputFormat) -> String {
        match format {
            OutputFormat::Text => self.to_string(),
            OutputFormat::Json => {
                let kind = match self.kind {
                    Kind::Warning => "warning",
                    Kind::Note => "note",
                };
                object(kind, self.code, &self.message, None, &self.hints)
            }
        }
    }

    /// Says it.
    pub(crate) fn say(&self, format: OutputFormat) {
        console::say(&self.shown(format));
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Warning => "warning: ",
            Kind::Note => "",
        };
        f.write_str(&with_hints(kind, &self.message, &self.hints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_lines_for_people_and_one_object_for_programs() {
        let warning =
            Remark::warning("offset_outside", "t-0 has no offset 9\u{1b}").hint("so be it");
        assert_eq!(
            warning.shown(OutputFormat::Text),
            "warning: t-0 has no offset 9\\u{1b}\n  so be it"
        );
        assert_eq!(
            warning.shown(OutputFormat::Json),
            r#"{"hint":"so be it","message":"t-0 has no offset 9\u001b","warning":"offset_outside"}"#
        );
        let note = Remark::note("end_reached", "3 records");
        assert_eq!(note.shown(OutputFormat::Text), "3 records");
        assert_eq!(
            note.shown(OutputFormat::Json),
            r#"{"message":"3 records","note":"end_reached"}"#
        );
    }
}
