//! A record as one JSON object on one line, and back, byte for byte.
//!
//! Keys, values and headers are strings when they are UTF-8 and `{"b64":"…"}` when they are not;
//! `null` is Kafka's null. Headers are an array of pairs, since their names may repeat.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::span::moment;
use super::{InputRecord, PlacedRecord};

/// The line, without its end.
pub(crate) fn record_to_json(record: &PlacedRecord<'_>) -> String {
    let headers: Vec<Value> = record
        .headers
        .iter()
        .map(|(name, value)| json!([bytes_to_json(name), optional(value.as_deref())]))
        .collect();
    // In the order of interest for people, which a map would not keep.
    let mut line = format!(
        "{{\"topic\":{},\"partition\":{},\"offset\":{}",
        Value::from(record.topic),
        record.partition,
        record.offset
    );
    match moment(record.timestamp) {
        Some(text) => line += &format!(",\"timestamp\":\"{text}\""),
        None if record.timestamp >= 0 => line += &format!(",\"timestamp\":{}", record.timestamp),
        None => {}
    }
    line += &format!(",\"key\":{},\"value\":{}", optional(record.key), optional(record.value));
    if !headers.is_empty() {
        line += &format!(",\"headers\":{}", Value::from(headers));
    }
    line + "}"
}

/// The record of a line. `offset` and unknown members are ignored.
pub(crate) fn record_from_json(line: &str) -> Result<InputRecord, String> {
    let Value::Object(object) = serde_json::from_str(line).map_err(|error| error.to_string())?
    else {
        return Err("not an object".to_owned());
    };
    Ok(InputRecord {
        topic: match object.get("topic") {
            None | Some(Value::Null) => None,
            Some(Value::String(topic)) => Some(topic.clone()),
            Some(_) => return Err("\"topic\" is not a string".to_owned()),
        },
        partition: match object.get("partition") {
            None | Some(Value::Null) => None,
            Some(number) => {
                let number = number.as_i64().and_then(|number| i32::try_from(number).ok());
                Some(
                    number
                        .filter(|partition| *partition >= 0)
                        .ok_or_else(|| "\"partition\" is not a partition".to_owned())?,
                )
            }
        },
        timestamp: timestamp_from_json(&object)?,
        key: bytes_from_json(object.get("key"), "key")?,
        value: bytes_from_json(object.get("value"), "value")?,
        headers: headers_from_json(object.get("headers"))?,
    })
}

fn optional(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, bytes_to_json)
}

fn bytes_to_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "b64": BASE64.encode(bytes) }),
    }
}

fn bytes_from_json(value: Option<&Value>, name: &str) -> Result<Option<Vec<u8>>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_bytes().to_vec())),
        Some(Value::Object(object)) => match object.get("b64") {
            Some(Value::String(text)) if object.len() == 1 => match BASE64.decode(text) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) => Err(format!("\"{name}\" is not base64: {error}")),
            },
            _ => Err(format!("\"{name}\" is an object other than {{\"b64\":\"…\"}}")),
        },
        Some(_) => Err(format!("\"{name}\" is neither a string nor null nor {{\"b64\":\"…\"}}")),
    }
}

type HeaderPairs = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn headers_from_json(value: Option<&Value>) -> Result<HeaderPairs, String> {
    let wrong = || "\"headers\" is not an array of [name, value]".to_owned();
    let pairs = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(pairs)) => pairs,
        Some(_) => return Err(wrong()),
    };
    let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
        Some([name, value]) => {
            let name = bytes_from_json(Some(name), "headers")?.ok_or_else(wrong)?;
            Ok((name, bytes_from_json(Some(value), "headers")?))
        }
        _ => Err(wrong()),
    };
    pairs.iter().map(pair).collect()
}

fn timestamp_from_json(object: &Map<String, Value>) -> Result<Option<i64>, String> {
    let wrong = || "\"timestamp\" is neither RFC 3339 nor milliseconds".to_owned();
    let millis = match object.get("timestamp") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_i64().ok_or_else(wrong)?,
        Some(Value::String(text)) => {
            let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| wrong())?;
            i64::try_from(time.unix_timestamp_nanos() / 1_000_000).map_err(|_| wrong())?
        }
        Some(_) => return Err(wrong()),
    };
    if millis < 0 { Err(wrong()) } else { Ok(Some(millis)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Bytes = Option<Vec<u8>>;

    fn placed<'a>(
        timestamp: i64,
        key: &'a Bytes,
        value: &'a Bytes,
        headers: &'a HeaderPairs,
    ) -> PlacedRecord<'a> {
        PlacedRecord {
            topic: "demo",
            partition: 3,
            offset: 17,
            timestamp,
            key: key.as_deref(),
            value: value.as_deref(),
            headers,
        }
    }

    #[test]
    fn a_record_is_one_readable_line() {
        let key = Some(b"k".to_vec());
        let headers = vec![(b"h".to_vec(), Some(vec![0xff])), (b"h".to_vec(), None)];
        assert_eq!(
            record_to_json(&placed(1_000, &key, &None, &headers)),
            r#"{"topic":"demo","partition":3,"offset":17,"timestamp":"1970-01-01T00:00:01Z","key":"k","value":null,"headers":[["h",{"b64":"/w=="}],["h",null]]}"#
        );
    }

    #[test]
    fn lines_of_people_are_read() {
        let record = record_from_json(r#"{"value":"v","timestamp":5,"extra":1}"#).expect("good");
        assert_eq!(record.value, Some(b"v".to_vec()));
        assert_eq!((record.topic, record.partition, record.timestamp), (None, None, Some(5)));
    }

    #[test]
    fn wrong_lines_say_what_is_wrong() {
        for (line, words) in [
            ("x", "expected value"),
            ("[]", "not an object"),
            (r#"{"key":1}"#, "\"key\" is neither"),
            (r#"{"key":{"b64":"*"}}"#, "not base64"),
            (r#"{"key":{"hex":"00"}}"#, "other than"),
            (r#"{"partition":-1}"#, "not a partition"),
            (r#"{"topic":5}"#, "not a string"),
            (r#"{"timestamp":"yesterday"}"#, "neither RFC 3339"),
            (r#"{"timestamp":-1}"#, "neither RFC 3339"),
            (r#"{"headers":{"a":"b"}}"#, "array of [name, value]"),
            (r#"{"headers":[["a"]]}"#, "array of [name, value]"),
            (r#"{"headers":[[null,"a"]]}"#, "array of [name, value]"),
        ] {
            let error = record_from_json(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        let texts = ".{0,8}".prop_map(String::into_bytes);
        proptest::option::of(prop_oneof![texts, proptest::collection::vec(any::<u8>(), 0..8)])
    }

    proptest! {
        #[test]
        fn every_record_survives_the_round_trip(
            key in bytes(),
            value in bytes(),
            headers in proptest::collection::vec((bytes(), bytes()), 0..4),
            timestamp in prop_oneof![-1..2_000_000_000_000_i64, any::<i64>()],
        ) {
            let headers: HeaderPairs =
                headers.into_iter().map(|(name, value)| (name.unwrap_or_default(), value)).collect();
            let line = record_to_json(&placed(timestamp, &key, &value, &headers));
            prop_assert!(!line.contains('\n'));
            let record = record_from_json(&line).expect("what we wrote");
            prop_assert_eq!(record.topic.as_deref(), Some("demo"));
            prop_assert_eq!(record.partition, Some(3));
            prop_assert_eq!(record.timestamp, (timestamp >= 0).then_some(timestamp));
            prop_assert_eq!(record.key, key);
            prop_assert_eq!(record.value, value);
            prop_assert_eq!(record.headers, headers);
        }
    }
}
