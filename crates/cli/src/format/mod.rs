//! Records as text: JSON lines that can be produced again, `%` templates, aligned lines.

mod input;
mod json;
mod output;
mod span;
mod template;

pub(crate) use input::{InputFormat, InputRecord};
pub(crate) use output::OutputFormat;
pub(crate) use span::{between, millis, moment, now, span};

/// A record with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedRecord<'a> {
    /// Its topic.
    pub(crate) topic: &'a str,
    /// Its partition.
    pub(crate) partition: i32,
    /// Its offset.
    pub(crate) offset: i64,
    /// Milliseconds since the Unix epoch; negative when it has none.
    pub(crate) timestamp: i64,
    /// Its key.
    pub(crate) key: Option<&'a [u8]>,
    /// Its value.
    pub(crate) value: Option<&'a [u8]>,
    /// Its headers, in order; a name may come twice.
    pub(crate) headers: &'a [(Vec<u8>, Option<Vec<u8>>)],
}

/// `1 record`, `2 records`.
pub(crate) fn counted(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}
