//! How a command ends when it does not end well: one error, an exit code, a way on.
//!
//! ```text
//! error: topic "ordres" does not exist
//!   did you mean "orders"?   list: strandline topic list
//! ```

use std::borrow::Cow;
use std::fmt;

use crate::command::OutputFormat;
use crate::table::plain;

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// At least one item failed.
    Failed = 1,
    /// Usage, configuration or a missing confirmation.
    Usage = 2,
    /// Not reached, timed out or not ready: trying again makes sense.
    Unreachable = 3,
    /// A check is not satisfied: damage was found.
    Unsatisfied = 4,
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// A stable word for scripts.
    pub(crate) code: Cow<'static, str>,
    /// Kafka's error code, when a broker answered with one.
    pub(crate) kafka_code: Option<i16>,
    /// What happened, without a full stop.
    pub(crate) message: String,
    /// What to do about it, one line each.
    pub(crate) hints: Vec<String>,
}

impl Failure {
    /// A failure without hints.
    pub(crate) fn new(
        exit: Exit,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { exit, code, kafka_code: None, message, hints: Vec::new() }
    }

    /// A mistake in how the command was called.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// A command that shows what it would do was called without a word of consent.
    pub(crate) fn unconfirmed(message: impl Into<String>) -> Self {
        Self::usage(message).hint("the same again with --yes does it, with --dry-run only shows it")
    }

    /// The same failure with one more hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same failure with Kafka's code.
    #[must_use]
    pub(crate) fn kafka_code(mut self, code: i16) -> Self {
        self.kafka_code = Some(code);
        self
    }

    /// As it goes to stderr: lines, or one JSON object.
    pub(crate) fn shown(&self, format: OutputFormat) -> String {
        match format {
            OutputFormat::Text => self.to_string(),
            OutputFormat::Json => {
                object("error", &self.code, &self.message, self.kafka_code, &self.hints)
            }
        }
    }
}

/// One JSON object, as commands with `--format json` print it on stderr: its kind names its code.
pub(crate) fn object(
    kind: &str,
    code: &str,
    message: &str,
    kafka_code: Option<i16>,
    hints: &[String],
) -> String {
    let mut object = serde_json::Map::new();
    object.insert(kind.to_owned(), code.into());
    object.insert("message".to_owned(), message.into());
    if let Some(code) = kafka_code {
        object.insert("kafka_code".to_owned(), code.into());
    }
    if !hints.is_empty() {
        object.insert("hint".to_owned(), hints.join("\n").into());
    }
    serde_json::Value::Object(object).to_string()
}

/// A message with its hints below.
pub(crate) fn with_hints(kind: &str, message: &str, hints: &[String]) -> String {
    // Names of peers are in both: what is no text must not reach the terminal as it is.
    let lines = |text: &str| text.lines().map(plain).collect::<Vec<_>>().join("\n");
    let mut text = format!("{kind}{}", lines(message));
    for hint in hints {
        text += &format!("\n  {}", lines(hint));
    }
    text
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_hints("error: ", &self.message, &self.hints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Failure {
        Failure::new(Exit::Failed, "unknown_topic", "topic \"ordres\" does not exist")
            .kafka_code(3)
            .hint("did you mean \"orders\"?")
    }

    #[test]
    fn text_puts_the_way_on_below_the_error() {
        assert_eq!(
            failure().to_string(),
            "error: topic \"ordres\" does not exist\n  did you mean \"orders\"?"
        );
    }

    #[test]
    fn what_is_no_text_stays_off_the_terminal() {
        let failure = Failure::usage("group \"\u{1b}[2J\"\nsecond line");
        assert_eq!(failure.to_string(), "error: group \"\\u{1b}[2J\"\nsecond line");
    }

    #[test]
    fn json_is_one_object() {
        assert_eq!(
            failure().shown(OutputFormat::Json),
            r#"{"error":"unknown_topic","hint":"did you mean \"orders\"?","kafka_code":3,"message":"topic \"ordres\" does not exist"}"#
        );
    }
}
