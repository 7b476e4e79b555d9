//! How `consume` writes records.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::PlacedRecord;
use super::json::record_to_json;
use super::span::moment;
use super::template::{self, Encoding, Field, Piece};

/// The form of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// A line for people: place, time, key and value.
    Text,
    /// A JSON object on a line.
    Json,
    /// The value and the end of the line.
    Value,
    /// The value's bytes and nothing else.
    Raw,
    /// A `%` template.
    Template(Template),
}

/// A `%` template that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "text" => Self::Text,
            "json" => Self::Json,
            "value" => Self::Value,
            "raw" => Self::Raw,
            _ if text.contains('%') => Self::Template(Template(template::parse(text)?)),
            _ => {
                return Err(
                    "write text, json, value, raw or a template such as '%k=%v\\n'".to_owned()
                );
            }
        })
    }
}

impl OutputFormat {
    /// Appends a record; `index` counts from 0.
    pub(crate) fn write(&self, record: &PlacedRecord<'_>, index: u64, out: &mut Vec<u8>) {
        match self {
            Self::Text => out.extend_from_slice(text(record).as_bytes()),
            Self::Json => out.extend_from_slice(record_to_json(record).as_bytes()),
            Self::Value | Self::Raw => out.extend_from_slice(record.value.unwrap_or_default()),
            Self::Template(Template(pieces)) => {
                for piece in pieces {
                    match piece {
                        Piece::Literal(bytes) => out.extend_from_slice(bytes),
                        Piece::Field(field, encoding) => {
                            encode(&part(record, *field, index), *encoding, out);
                        }
                    }
                }
            }
        }
        if matches!(self, Self::Text | Self::Json | Self::Value) {
            out.push(b'\n');
        }
    }
}

fn text(record: &PlacedRecord<'_>) -> String {
    let place = format!("{}-{}@{}", record.topic, record.partition, record.offset);
    let time = moment(record.timestamp).unwrap_or_else(|| "-".to_owned());
    let mut line = format!("{place}  {time}  {}  {}", shown(record.key), shown(record.value));
    for (name, value) in record.headers {
        line += &format!("  {}:{}", shown(Some(name)), shown(value.as_deref()));
    }
    line
}

/// Bytes for people: `-` for null, what is not printable as an escape, so that no record can move
/// the cursor of a terminal.
fn shown(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return "-".to_owned() };
    match std::str::from_utf8(bytes) {
        Ok("") => "\"\"".to_owned(),
        Ok(text) => text
            .chars()
            .flat_map(|c| {
                let escaped: String =
                    if c.is_control() { c.escape_default().collect() } else { c.to_string() };
                escaped.chars().collect::<Vec<_>>()
            })
            .collect(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

fn part(record: &PlacedRecord<'_>, field: Field, index: u64) -> Vec<u8> {
    let length = |bytes: Option<&[u8]>| match bytes {
        Some(bytes) => bytes.len().to_string().into_bytes(),
        // kgo's and kcat's word for null.
        None => b"-1".to_vec(),
    };
    match field {
        Field::Topic => record.topic.as_bytes().to_vec(),
        Field::TopicLength => length(Some(record.topic.as_bytes())),
        Field::Partition => record.partition.to_string().into_bytes(),
        Field::Offset => record.offset.to_string().into_bytes(),
        Field::Timestamp => record.timestamp.to_string().into_bytes(),
        Field::Key => record.key.unwrap_or_default().to_vec(),
        Field::KeyLength => length(record.key),
        Field::Value => record.value.unwrap_or_default().to_vec(),
        Field::ValueLength => length(record.value),
        Field::Headers => headers(record),
        Field::HeaderCount => record.headers.len().to_string().into_bytes(),
        Field::Index => index.to_string().into_bytes(),
    }
}

/// `name=value,name=value`, as kcat writes them.
fn headers(record: &PlacedRecord<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, (name, value)) in record.headers.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value.as_deref().unwrap_or(b"NULL"));
    }
    out
}

fn encode(bytes: &[u8], encoding: Encoding, out: &mut Vec<u8>) {
    match encoding {
        Encoding::Plain => out.extend_from_slice(bytes),
        Encoding::Hex => {
            for byte in bytes {
                out.extend_from_slice(format!("{byte:02x}").as_bytes());
            }
        }
        Encoding::Base64 => out.extend_from_slice(BASE64.encode(bytes).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &str, value: Option<&[u8]>) -> String {
        let headers = vec![(b"a".to_vec(), Some(b"1".to_vec())), (b"b".to_vec(), None)];
        let record = PlacedRecord {
            topic: "demo",
            partition: 0,
            offset: 17,
            timestamp: 1_000,
            key: Some(b"k"),
            value,
            headers: &headers,
        };
        let mut out = Vec::new();
        format.parse::<OutputFormat>().expect("a format").write(&record, 4, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn records_are_written_in_every_form() {
        for (format, text) in [
            ("text", "demo-0@17  1970-01-01T00:00:01Z  k  hello  a:1  b:-\n"),
            ("value", "hello\n"),
            ("raw", "hello"),
            (
                r"%t-%p@%o %d %k=%v [%h] %K/%V/%H #%i\n",
                "demo-0@17 1000 k=hello [a=1,b=NULL] 1/5/2 #4\n",
            ),
            ("%v{hex}.%v{base64}", "68656c6c6f.aGVsbG8="),
            ("%s", "hello"),
        ] {
            assert_eq!(written(format, Some(b"hello")), text, "{format}");
        }
        assert_eq!(written("%v:%V", None), ":-1");
    }

    #[test]
    fn text_keeps_control_characters_from_the_terminal() {
        let line = written("text", Some(b"\x1b[2Jx"));
        assert!(line.contains("\\u{1b}[2Jx"), "{line}");
        let line = written("text", Some(b"\xff\x00"));
        assert!(line.contains("\\xff\\x00"), "{line}");
    }

    #[test]
    fn another_word_is_refused() {
        assert!("xml".parse::<OutputFormat>().is_err());
    }
}
