//! `strandline topic retention` and `strandline topic segments`: what is there of a topic, why, and
//! when it goes.

use clap::Args;
use hyper::StatusCode;
use serde_json::Value;
use strandline_model::config::Scope;

use crate::command::OutputFormat;
use crate::command::assignment::assignment;
use crate::command::target::Target;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::{between, counted, millis, span};
use crate::http::{self, escaped};
use crate::table::{Align, Table};

/// Segments that are asked for at once.
const PAGE: usize = 5_000;

/// Shows when the oldest records of a topic go, and why they are still there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic retention orders\n  strandline topic retention orders \
                  --if retention.ms=3d\n\nBECAUSE is a code; strandline explain CODE says what it \
                  means. `in about` is a guess from the rate at which records came within the last \
                  hour. Asks a Strandline broker's HTTP side (--http-url)."
)]
pub(crate) struct Retention {
    /// The topic.
    #[arg(value_name = "NAME")]
    name: String,
    /// Shows it as if this were set; nothing is changed. Sizes and durations may carry units.
    #[arg(long = "if", value_name = "KEY=VALUE")]
    simulated: Vec<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// Lists the segments of a topic: file, offsets, bytes, times, and why each is still there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic segments orders\n  strandline topic segments orders \
                  -p 0 --format json\n\nSTATE is open, sealed, or due when it goes with the next \
                  check. Asks a Strandline broker's HTTP side (--http-url)."
)]
pub(crate) struct Segments {
    /// The topic.
    #[arg(value_name = "NAME")]
    name: String,
    /// Only these partitions.
    #[arg(short, long, value_delimiter = ',')]
    partitions: Vec<u64>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Retention {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut path = format!("/v1/topics/{}/retention", escaped(&self.name));
        for (index, text) in self.simulated.iter().enumerate() {
            let (key, value) = assignment(Scope::Topic, text)?;
            let mark = if index == 0 { '?' } else { '&' };
            let pair = escaped(&format!("{key}:{value}"));
            path.push(mark);
            path += &format!("simulate={pair}");
        }
        let topic = asked(target, &path, &self.name).await?;
        match self.format {
            OutputFormat::Json => console::line(&topic.to_string()),
            OutputFormat::Text => {
                console::data(forecast(&topic).render().as_bytes());
                console::say(&summary(&topic, &self.simulated));
            }
        }
        Ok(())
    }
}

impl Segments {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut segments = self.all(target).await?;
        if !self.partitions.is_empty() {
            let is_wanted = |segment: &Value| {
                segment["partition"].as_u64().is_some_and(|it| self.partitions.contains(&it))
            };
            segments.retain(is_wanted);
        }
        match self.format {
            OutputFormat::Json => console::line(&Value::from(segments).to_string()),
            OutputFormat::Text => console::data(list(&segments).render().as_bytes()),
        }
        Ok(())
    }

    /// Page after page.
    async fn all(&self, target: &Target) -> Result<Vec<Value>, Failure> {
        let first = format!("/v1/topics/{}/segments?limit={PAGE}", escaped(&self.name));
        let mut all: Vec<Value> = Vec::new();
        loop {
            let path = all.last().map_or_else(
                || first.clone(),
                |last| {
                    let (partition, base) = (&last["partition"], &last["base_offset"]);
                    format!("{first}&after={partition}:{base}")
                },
            );
            let mut page = asked(target, &path, &self.name).await?;
            let segments = page.as_array_mut().map(std::mem::take).unwrap_or_default();
            let is_last = segments.len() < PAGE;
            all.extend(segments);
            if is_last {
                return Ok(all);
            }
        }
    }
}

async fn asked(target: &Target, path: &str, name: &str) -> Result<Value, Failure> {
    let base = target.http();
    let (status, answer) = http::ask(&base, path).await?;
    let said = answer["error"].as_str();
    match (status, said) {
        (StatusCode::OK, _) => Ok(answer),
        (StatusCode::NOT_FOUND, Some(said)) => {
            let failure =
                Failure::new(Exit::Failed, "unknown_topic", format!("{said} (asked {base})"));
            Err(failure.hint(format!(
                "all topics: strandline topic list; --http-url names the broker that has {name}"
            )))
        }
        (StatusCode::BAD_REQUEST, Some(said)) => Err(Failure::usage(said)),
        _ => Err(http::other_answer(&base, path, &format!("with {status}"))),
    }
}

fn number(value: &Value) -> String {
    value.as_i64().map(|number| number.to_string()).unwrap_or_default()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn forecast(topic: &Value) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Right),
        ("BYTES", Align::Right),
        ("SEGMENTS", Align::Right),
        ("DUE-BYTES", Align::Right),
        ("OLDEST", Align::Right),
        ("NEXT", Align::Left),
        ("FREES", Align::Right),
        ("BECAUSE", Align::Left),
    ]);
    let now = &topic["now"];
    for partition in topic["partitions"].as_array().map_or(&[][..], Vec::as_slice) {
        let oldest = &partition["oldest"];
        let (next, limit) = next(now, partition);
        let because = match limit {
            Some(limit) => format!("{} ({limit})", word(&oldest["reason"])),
            None => word(&oldest["reason"]),
        };
        table.row([
            number(&partition["partition"]),
            number(&partition["bytes"]),
            number(&partition["segment_count"]),
            number(&partition["due_bytes"]),
            between(&oldest["first_appended_at"], now).unwrap_or_default(),
            next,
            number(&oldest["bytes"]),
            because,
        ]);
    }
    table
}

/// When the oldest segment goes, and by which limit when that is not its age. A guess says `about`.
fn next<'a>(now: &Value, partition: &'a Value) -> (String, Option<&'a str>) {
    let (oldest, estimate) = (&partition["oldest"], &partition["estimate"]);
    if let Some(limit) = oldest["limit"].as_str() {
        return ("next check".to_owned(), Some(limit));
    }
    let (by_age, guessed) = (millis(&oldest["goes_at"]), millis(&estimate["goes_at"]));
    match (by_age, guessed) {
        (by_age, Some(guess)) if by_age.is_none_or(|by_age| guess < by_age) => {
            let span = between(now, &estimate["goes_at"]).unwrap_or_default();
            (format!("in about {span}"), estimate["limit"].as_str())
        }
        _ => {
            let span = between(now, &oldest["goes_at"]);
            (span.map(|span| format!("in {span}")).unwrap_or_default(), None)
        }
    }
}

fn summary(topic: &Value, simulated: &[String]) -> String {
    let limit = |name: &str, key: &str| match topic[key].as_u64() {
        Some(value) => format!("{name}={value}"),
        None => format!("{name}=-1"),
    };
    let age = topic["retention_ms"].as_u64().map_or("-1".to_owned(), span);
    let interval = span(topic["check_interval_ms"].as_u64().unwrap_or(0));
    let mut text = format!(
        "{}: cleanup.policy={}, retention.ms={age}, {}, {}; checked every {interval}",
        word(&topic["topic"]),
        word(&topic["cleanup_policy"]),
        limit("retention.bytes", "retention_bytes"),
        limit("retention.records", "retention_records"),
    );
    if let Some(next) = between(&topic["now"], &topic["next_check_at"]) {
        text += &format!(", the next time in {next}");
    }
    let unreadable = topic["unreadable"].as_array().map_or(&[][..], Vec::as_slice);
    for key in unreadable {
        text += &format!(
            "\n{}: a value is kept that this broker can't read; nothing goes by it until it is set anew",
            word(key)
        );
    }
    for partition in topic["partitions"].as_array().map_or(&[][..], Vec::as_slice) {
        if partition["oldest"]["reason"] == "withheld" {
            text += &format!(
                "\npartition {}: something of it is gone, and it is served to nobody; /v1/storage says what",
                number(&partition["partition"]),
            );
        }
    }
    if !simulated.is_empty() {
        let sum = |key: &str| {
            let partitions = topic["partitions"].as_array().map_or(&[][..], Vec::as_slice);
            partitions.iter().filter_map(|partition| partition[key].as_u64()).sum::<u64>()
        };
        text += &format!(
            "\nif {} were set, {} in {} would go at the next check, and {} would be left",
            simulated.join(" "),
            counted(sum("due_bytes"), "byte"),
            counted(sum("due_segments"), "segment"),
            counted(sum("left_bytes"), "byte"),
        );
    }
    text
}

fn list(segments: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Right),
        ("FILE", Align::Left),
        ("BASE-OFFSET", Align::Right),
        ("NEXT-OFFSET", Align::Right),
        ("BYTES", Align::Right),
        ("FIRST-APPEND", Align::Left),
        ("NEWEST-RECORD", Align::Left),
        ("STATE", Align::Left),
        ("GOES", Align::Left),
        ("BECAUSE", Align::Left),
    ]);
    for segment in segments {
        table.row([
            number(&segment["partition"]),
            word(&segment["name"]),
            number(&segment["base_offset"]),
            number(&segment["next_offset"]),
            number(&segment["bytes"]),
            word(&segment["first_appended_at"]),
            word(&segment["max_timestamp"]),
            word(&segment["state"]),
            word(&segment["goes_at"]),
            word(&segment["reason"]),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic() -> Value {
        serde_json::json!({
            "topic": "orders",
            "now": "2026-11-30T12:00:00Z",
            "next_check_at": "2026-11-30T12:02:00Z",
            "check_interval_ms": 300_000,
            "cleanup_policy": "delete",
            "retention_ms": 604_800_000_u64,
            "retention_bytes": null,
            "retention_records": 500,
            "partitions": [
                {
                    "partition": 0, "bytes": 1900, "segment_count": 4, "due_bytes": 0,
                    "due_segments": 0, "left_bytes": 1900,
                    "oldest": {
                        "bytes": 500, "reason": "not_expired", "limit": null,
                        "first_appended_at": "2026-11-24T10:00:00Z",
                        "goes_at": "2026-12-01T12:00:00Z",
                    },
                },
                {
                    "partition": 1, "bytes": 700, "segment_count": 2, "due_bytes": 300,
                    "due_segments": 1, "left_bytes": 400,
                    "oldest": {
                        "bytes": 300, "reason": "awaiting_check", "limit": "retention.records",
                        "first_appended_at": "2026-11-30T11:59:00Z", "goes_at": null,
                    },
                },
                {
                    "partition": 2, "bytes": 0, "segment_count": 0, "due_bytes": 0,
                    "due_segments": 0, "oldest": null,
                },
            ],
        })
    }

    #[test]
    fn each_partition_tells_when_its_oldest_segment_goes_and_why() {
        let text = forecast(&topic()).render();
        let rows: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows,
            [
                vec!["0", "1900", "4", "0", "6d2h", "in", "1d", "500", "not_expired"],
                vec![
                    "1",
                    "700",
                    "2",
                    "300",
                    "1m",
                    "next",
                    "check",
                    "300",
                    "awaiting_check",
                    "(retention.records)"
                ],
                vec!["2", "0", "0", "0", "-", "-", "-", "-"],
            ]
        );
    }

    #[test]
    fn a_guess_is_told_as_one_where_it_comes_before_age() {
        let now = topic()["now"].clone();
        let partition = |age: Option<&str>, guess: Option<&str>| {
            let estimate =
                guess.map(|at| serde_json::json!({"goes_at": at, "limit": "retention.bytes"}));
            serde_json::json!({"oldest": {"limit": null, "goes_at": age}, "estimate": estimate})
        };
        let (one, two) = (Some("2026-11-30T13:00:00Z"), Some("2026-11-30T14:00:00Z"));
        // (by age, guessed, told)
        let rows = [
            (two, one, ("in about 1h", Some("retention.bytes"))),
            (one, two, ("in 1h", None)),
            (None, two, ("in about 2h", Some("retention.bytes"))),
            (one, None, ("in 1h", None)),
            (None, None, ("", None)),
        ];
        for (age, guess, (told, limit)) in rows {
            let partition = partition(age, guess);
            assert_eq!(next(&now, &partition), (told.to_owned(), limit), "{age:?} {guess:?}");
        }
    }

    #[test]
    fn the_summary_names_the_limits_and_what_a_change_would_do() {
        let limits = "orders: cleanup.policy=delete, retention.ms=7d, retention.bytes=-1, \
                      retention.records=500; checked every 5m, the next time in 2m";
        assert_eq!(summary(&topic(), &[]), limits);
        let change = "if retention.ms=3d were set, 300 bytes in 1 segment would go at the next check, and 2300 \
             bytes would be left";
        let mut held = topic();
        held["unreadable"] = serde_json::json!(["retention.ms"]);
        assert_eq!(
            summary(&held, &[]),
            format!(
                "{limits}\nretention.ms: a value is kept that this broker can't read; nothing goes by \
                 it until it is set anew"
            )
        );
        assert_eq!(
            summary(&topic(), &["retention.ms=3d".to_owned()]),
            format!("{limits}\n{change}")
        );
    }
}
