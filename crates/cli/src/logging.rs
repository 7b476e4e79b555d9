//! Log lines: short text for a person at a terminal, JSON for everything else.
//!
//! JSON lines carry `ts`, `level`, `target`, `msg` and the event's fields under their own names, so
//! that a field has one name in logs, metrics and the API.

use std::fmt::{self, Write as _};

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::log_levels::LogLevels;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `12:03:11 INFO segment rolled topic=demo`.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging to stderr; the way to change its levels. Called once.
pub(crate) fn start(format: Format, level: LevelFilter) -> LogLevels {
    let (filter, levels) = LogLevels::new(level);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .event_format(Lines { format });
    tracing_subscriber::registry().with(filter).with(lines).init();
    levels
}

struct Lines {
    format: Format,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level();
        let line = match self.format {
            Format::Text => fields.text(OffsetDateTime::now_utc(), level.as_str()),
            Format::Json => {
                let target = event.metadata().target();
                fields.json(OffsetDateTime::now_utc(), level.as_str(), target)
            }
        };
        writeln!(writer, "{line}")
    }
}

/// What makes a value one that is written in quotation marks.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, ' ' | '"' | '=')
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn text(&self, now: OffsetDateTime, level: &str) -> String {
        let (hour, minute, second) = now.to_hms();
        let mut line = format!("{hour:02}:{minute:02}:{second:02} {level} {}", self.message);
        for (name, value) in &self.others {
            let _ = match value.as_str() {
                // What clients call themselves is among the values: no byte of it may move the cursor.
                Some(text) if !text.is_empty() && !text.contains(is_special) => {
                    write!(line, " {name}={text}")
                }
                _ => write!(line, " {name}={value}"),
            };
        }
        line
    }

    fn json(&self, now: OffsetDateTime, level: &str, target: &str) -> String {
        let ts = now.format(&Rfc3339).unwrap_or_default();
        let mut line = format!(
            "{{\"ts\":\"{ts}\",\"level\":\"{}\",\"target\":{},\"msg\":{}",
            level.to_ascii_lowercase(),
            Value::from(target),
            Value::from(self.message.as_str()),
        );
        for (name, value) in &self.others {
            let _ = write!(line, ",{}:{value}", Value::from(*name));
        }
        line.push('}');
        line
    }

    fn push(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => self.others.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, Value::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        Fields {
            message: "segment rolled".to_owned(),
            others: vec![
                ("topic", Value::from("demo")),
                ("partition", Value::from(0)),
                ("why", Value::from("it is \"full\"")),
            ],
        }
    }

    #[test]
    fn text_lines_read_like_a_sentence_with_facts() {
        let now = OffsetDateTime::from_unix_timestamp(43_391).expect("in range");
        assert_eq!(
            fields().text(now, "INFO"),
            r#"12:03:11 INFO segment rolled topic=demo partition=0 why="it is \"full\"""#
        );
    }

    #[test]
    fn text_lines_keep_control_characters_from_the_terminal() {
        let fields = Fields {
            message: "client".to_owned(),
            others: vec![("client_id", Value::from("\u{1b}[2Jx"))],
        };
        let line = fields.text(OffsetDateTime::UNIX_EPOCH, "WARN");
        assert_eq!(line, r#"00:00:00 WARN client client_id="\u001b[2Jx""#);
    }

    #[test]
    fn json_lines_are_json_with_the_fields_own_names() {
        let line = fields().json(OffsetDateTime::UNIX_EPOCH, "WARN", "strandline::x");
        let value: Value = serde_json::from_str(&line).expect("json");
        assert_eq!(value["ts"], "1970-01-01T00:00:00Z");
        assert_eq!(value["level"], "warn");
        assert_eq!(value["msg"], "segment rolled");
        assert_eq!(value["partition"], 0);
        assert_eq!(value["why"], "it is \"full\"");
    }
}
