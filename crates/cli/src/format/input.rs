//! How `produce` reads records.

use std::io::{self, BufRead};
use std::str::FromStr;

use super::json::record_from_json;
use super::template::{self, Encoding, Field, Piece};

/// A record as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputRecord {
    /// Its topic, if the input names one.
    pub(crate) topic: Option<String>,
    /// Its partition, if the input names one.
    pub(crate) partition: Option<i32>,
    /// Milliseconds since the Unix epoch.
    pub(crate) timestamp: Option<i64>,
    /// Its key.
    pub(crate) key: Option<Vec<u8>>,
    /// Its value.
    pub(crate) value: Option<Vec<u8>>,
    /// Its headers, in order.
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The form of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputFormat {
    /// A JSON object on each line.
    Json,
    /// Everything up to the end is one value.
    Raw,
    /// Fields, each up to the literal that follows it.
    Delimited(Delimited),
}

/// Fields with the bytes that end them; the last one's may be empty: the end of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delimited(Vec<(Field, Vec<u8>)>);

impl FromStr for InputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "json" => return Ok(Self::Json),
            "raw" => return Ok(Self::Raw),
            "text" | "value" => return "%v\\n".parse(),
            _ if !text.contains('%') => {
                return Err("write text, json, raw or a template such as '%k=%v\\n'".to_owned());
            }
            _ => {}
        }
        let mut fields: Vec<(Field, Vec<u8>)> = Vec::new();
        for piece in template::parse(text)? {
            match piece {
                Piece::Field(
                    field @ (Field::Topic
                    | Field::Partition
                    | Field::Timestamp
                    | Field::Key
                    | Field::Value),
                    Encoding::Plain,
                ) => fields.push((field, Vec::new())),
                Piece::Field(..) => {
                    return Err("only %t %p %d %k %v can be read, without an encoding".to_owned());
                }
                Piece::Literal(bytes) => match fields.last_mut() {
                    Some((_, delimiter)) => *delimiter = bytes,
                    None => return Err("a template to read with begins with a field".to_owned()),
                },
            }
        }
        let open = fields.iter().rev().skip(1).any(|(_, delimiter)| delimiter.is_empty());
        if open {
            return Err("two fields need something between them".to_owned());
        }
        Ok(Self::Delimited(Delimited(fields)))
    }
}

impl InputFormat {
    /// The next record; `None` at the end of the input. The error is that of the record, not of the
    /// input: reading may go on.
    pub(crate) fn read(
        &self,
        input: &mut impl BufRead,
    ) -> io::Result<Option<Result<InputRecord, String>>> {
        match self {
            Self::Json => {
                let mut line = Vec::new();
                // Blank lines separate nothing from nothing.
                while input.read_until(b'\n', &mut line)? > 0 {
                    if !line.trim_ascii().is_empty() {
                        let text = String::from_utf8(line).map_err(|_| "not UTF-8".to_owned());
                        return Ok(Some(text.and_then(|text| record_from_json(&text))));
                    }
                    line.clear();
                }
                Ok(None)
            }
            Self::Raw => {
                let mut value = Vec::new();
                input.read_to_end(&mut value)?;
                let record = InputRecord { value: Some(value), ..InputRecord::default() };
                let is_empty = record.value.as_ref().is_some_and(Vec::is_empty);
                Ok((!is_empty).then_some(Ok(record)))
            }
            Self::Delimited(Delimited(fields)) => read_delimited(fields, input),
        }
    }
}

fn read_delimited(
    fields: &[(Field, Vec<u8>)],
    input: &mut impl BufRead,
) -> io::Result<Option<Result<InputRecord, String>>> {
    let mut record = InputRecord::default();
    let mut fault = None;
    for (index, (field, delimiter)) in fields.iter().enumerate() {
        let (bytes, ended) = read_until(input, delimiter)?;
        if bytes.is_empty() && ended && index == 0 {
            return Ok(None);
        }
        let is_last = index + 1 == fields.len();
        if ended && !is_last {
            return Ok(Some(Err("the input ends within a record".to_owned())));
        }
        if let Err(error) = record.set(*field, bytes) {
            fault.get_or_insert(error);
        }
    }
    Ok(Some(fault.map_or(Ok(record), Err)))
}

/// Bytes up to the delimiter, which is taken too; and whether the input ended instead.
fn read_until(input: &mut impl BufRead, delimiter: &[u8]) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let Some(last) = delimiter.last() else {
        input.read_to_end(&mut bytes)?;
        return Ok((bytes, true));
    };
    while input.read_until(*last, &mut bytes)? > 0 {
        if bytes.ends_with(delimiter) {
            bytes.truncate(bytes.len() - delimiter.len());
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

impl InputRecord {
    fn set(&mut self, field: Field, bytes: Vec<u8>) -> Result<(), String> {
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        match field {
            Field::Topic => self.topic = Some(text()),
            Field::Partition => {
                let partition = text().trim().parse().ok().filter(|partition| *partition >= 0);
                self.partition =
                    Some(partition.ok_or_else(|| format!("\"{}\" is no partition", text()))?);
            }
            Field::Timestamp => {
                let millis = text().trim().parse().ok().filter(|millis| *millis >= 0);
                self.timestamp =
                    Some(millis.ok_or_else(|| format!("\"{}\" is no time in ms", text()))?);
            }
            Field::Key => self.key = Some(bytes),
            Field::Value => self.value = Some(bytes),
            Field::TopicLength
            | Field::Offset
            | Field::KeyLength
            | Field::ValueLength
            | Field::Headers
            | Field::HeaderCount
            | Field::Index => unreachable!("refused when the template was read"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, input: &[u8]) -> Vec<Result<InputRecord, String>> {
        let format: InputFormat = format.parse().expect("a format");
        let mut input = input;
        let mut records = Vec::new();
        while let Some(record) = format.read(&mut input).expect("memory can be read") {
            records.push(record);
        }
        records
    }

    fn value(text: &str) -> InputRecord {
        InputRecord { value: Some(text.into()), ..InputRecord::default() }
    }

    fn pair(key: &str, text: &str) -> InputRecord {
        InputRecord { key: Some(key.into()), ..value(text) }
    }

    #[test]
    fn lines_are_values() {
        assert_eq!(read("text", b"a\n\nb"), [value("a"), value(""), value("b")].map(Ok));
        assert_eq!(read("text", b""), []);
    }

    #[test]
    fn templates_split_lines_into_fields() {
        assert_eq!(read(r"%k=%v\n", b"a=1\nb=2=3\n"), [pair("a", "1"), pair("b", "2=3")].map(Ok));
        assert_eq!(read(r"%v;;", b"a;b;;c"), [value("a;b"), value("c")].map(Ok));
        assert_eq!(read("%v", b"a\nb\n"), [Ok(value("a\nb\n"))]);
        let placed = &read(r"%t %p %d %v\n", b"demo 3 5 x\n")[0];
        let placed = placed.as_ref().expect("good");
        assert_eq!(placed.topic.as_deref(), Some("demo"));
        assert_eq!((placed.partition, placed.timestamp), (Some(3), Some(5)));
    }

    #[test]
    fn a_bad_record_does_not_end_the_input() {
        let records = read("json", b"{\"value\":\"a\"}\n\nnonsense\n{\"value\":\"b\"}");
        assert_eq!(records.len(), 3);
        assert!(records[1].is_err());
        assert_eq!(records[2], Ok(value("b")));
        let records = read(r"%p %v\n", b"x a\n1 b\n");
        assert!(records[0].is_err() && records[1].is_ok());
    }

    #[test]
    fn the_end_within_a_record_is_an_error() {
        assert_eq!(read(r"%k=%v\n", b"a"), [Err("the input ends within a record".to_owned())]);
    }

    #[test]
    fn templates_that_can_not_be_read_with_are_refused() {
        for (format, words) in [
            ("%k%v", "something between"),
            ("x%v", "begins with a field"),
            ("%o %v", "only %t %p %d %k %v"),
            ("%v{hex}", "only %t %p %d %k %v"),
            ("csv", "write text, json"),
        ] {
            let error = format.parse::<InputFormat>().expect_err(format);
            assert!(error.contains(words), "{format}: {error}");
        }
    }
}
