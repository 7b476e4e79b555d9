//! Where to begin and end reading, as people write it: `start`, `-10`, `5:9`, `@-1h:-10m`.
//!
//! | text | means |
//! |---|---|
//! | `start`, `end` | the first record, after the last |
//! | `47` | offset 47 |
//! | `+2`, `-3` | two after the start, three before the end |
//! | `@2026-01-15`, `@2026-01-15T10:00:00Z`, `@1768471200000` | the first record of that time or later |
//! | `@-1h` | the same, an hour ago (`ms`, `s`, `m`, `h`, `d`, `w`) |
//! | `FROM:UNTIL` | from the one up to, not including, the other; `:end` begins at the start |
//!
//! One grammar for the command line, the API and the console. It is rpk's.

use std::fmt;
use std::str::FromStr;

use crate::{Offset, Timestamp};

/// A place in a partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetPoint {
    /// The first record.
    Start,
    /// After the last record.
    End,
    /// This offset.
    Exact(Offset),
    /// So many offsets after the start.
    AfterStart(u64),
    /// So many offsets before the end.
    BeforeEnd(u64),
    /// The first record of this time or later.
    At(Timestamp),
    /// The first record that is at most so many milliseconds old.
    Ago(u64),
}

/// A range of a partition's log: half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetSpec {
    /// Where to begin.
    pub from: OffsetPoint,
    /// Where to stop; `None` goes on for ever.
    pub until: Option<OffsetPoint>,
}

/// A text that is no range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseOffsetSpecError {
    text: String,
}

impl fmt::Display for ParseOffsetSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is no offset; write start, end, 47, +2, -3, 5:9, @2026-01-15, @-1h or @-1h:-10m",
            self.text
        )
    }
}

impl std::error::Error for ParseOffsetSpecError {}

impl FromStr for OffsetSpec {
    type Err = ParseOffsetSpecError;

    fn from_str(text: &str) -> Result<Self, ParseOffsetSpecError> {
        parse(text).ok_or_else(|| ParseOffsetSpecError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<OffsetSpec> {
    let in_time = text.starts_with('@');
    let point = |text: &str| match text.strip_prefix('@') {
        Some(time) => parse_time(time),
        None if in_time => parse_word(text).or_else(|| parse_time(text)),
        None => parse_word(text).or_else(|| parse_offset(text)),
    };
    if let Some(from) = point(text) {
        return Some(OffsetSpec { from, until: None });
    }
    // A time has colons of its own, so each may be the one between the ends.
    text.match_indices(':').find_map(|(at, _)| {
        let (from, until) = (&text[..at], &text[at + 1..]);
        let from = if from.is_empty() { OffsetPoint::Start } else { point(from)? };
        Some(OffsetSpec { from, until: Some(point(until)?) })
    })
}

fn parse_word(text: &str) -> Option<OffsetPoint> {
    match text {
        "start" | "oldest" | "earliest" => Some(OffsetPoint::Start),
        "end" | "newest" | "latest" => Some(OffsetPoint::End),
        _ => None,
    }
}

fn parse_offset(text: &str) -> Option<OffsetPoint> {
    if let Some(count) = text.strip_prefix('+') {
        return digits(count).map(OffsetPoint::AfterStart);
    }
    if let Some(count) = text.strip_prefix('-') {
        return digits(count).map(OffsetPoint::BeforeEnd);
    }
    let offset = i64::try_from(digits(text)?).ok()?;
    Some(OffsetPoint::Exact(Offset::new(offset)))
}

fn digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn parse_time(text: &str) -> Option<OffsetPoint> {
    if let Some(span) = text.strip_prefix('-') {
        return parse_span(span).map(OffsetPoint::Ago);
    }
    let millis = match digits(text) {
        // Seconds have ten digits for the next centuries, milliseconds thirteen.
        Some(number) if text.len() <= 10 => i64::try_from(number).ok()?.checked_mul(1000)?,
        Some(number) => i64::try_from(number).ok()?,
        None => parse_date_time(text)?,
    };
    Timestamp::from_wire(millis).map(OffsetPoint::At)
}

/// `90m`, `1h30m`: milliseconds.
fn parse_span(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number = digits(&rest[..number_end])?;
        rest = &rest[number_end..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..unit_end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { None } else { Some(total) }
}

/// A date, or a date and a time with `Z` or an offset, as RFC 3339 writes them: milliseconds since
/// the Unix epoch.
fn parse_date_time(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let days = parse_date(date)?;
    let within_day = time.map_or(Some(0), parse_time_of_day)?;
    days.checked_mul(86_400_000)?.checked_add(within_day)
}

/// `YYYY-MM-DD`: days since the Unix epoch.
fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let year = i64::try_from(digits(year)?).ok()?;
    let month = i64::try_from(digits(month)?).ok()?;
    let day = i64::try_from(digits(day)?).ok()?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) {
        return None;
    }
    // Years begin in March, so that the leap day is a year's last.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(365 * year + leap_days + day_of_year - 719_468)
}

/// `hh:mm[:ss[.fff]]` and `Z` or `±hh:mm`: milliseconds since midnight in UTC.
fn parse_time_of_day(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = text.split_at(zone_at);
    let offset_minutes = match zone {
        "Z" | "z" => 0,
        _ => {
            let minutes = parse_minutes(&zone[1..])?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let (minutes, seconds) = match clock.match_indices(':').nth(1) {
        Some((at, _)) => (&clock[..at], &clock[at + 1..]),
        None => (clock, "00"),
    };
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    if seconds.len() != 2 || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let seconds = i64::try_from(digits(seconds)?).ok().filter(|seconds| *seconds < 60)?;
    digits(fraction)?;
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some((parse_minutes(minutes)? - offset_minutes) * 60_000 + seconds * 1_000 + millis)
}

/// `hh:mm`: minutes.
fn parse_minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    if (hours.len(), minutes.len()) != (2, 2) {
        return None;
    }
    let hours = i64::try_from(digits(hours)?).ok().filter(|hours| *hours < 24)?;
    let minutes = i64::try_from(digits(minutes)?).ok().filter(|minutes| *minutes < 60)?;
    Some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(offset: i64) -> OffsetPoint {
        OffsetPoint::Exact(Offset::new(offset))
    }

    fn at(millis: i64) -> OffsetPoint {
        OffsetPoint::At(Timestamp::from_millis(millis))
    }

    #[test]
    fn ranges_are_read() {
        const HOUR: u64 = 3_600_000;
        for (text, from, until) in [
            ("start", OffsetPoint::Start, None),
            ("end", OffsetPoint::End, None),
            ("47", exact(47), None),
            ("+2", OffsetPoint::AfterStart(2), None),
            ("-3", OffsetPoint::BeforeEnd(3), None),
            (":end", OffsetPoint::Start, Some(OffsetPoint::End)),
            (":9", OffsetPoint::Start, Some(exact(9))),
            ("5:9", exact(5), Some(exact(9))),
            ("-10:end", OffsetPoint::BeforeEnd(10), Some(OffsetPoint::End)),
            ("@-1h", OffsetPoint::Ago(HOUR), None),
            ("@-1h30m", OffsetPoint::Ago(HOUR + HOUR / 2), None),
            ("@-30m:end", OffsetPoint::Ago(HOUR / 2), Some(OffsetPoint::End)),
            ("@-1h:-10m", OffsetPoint::Ago(HOUR), Some(OffsetPoint::Ago(HOUR / 6))),
            ("5:@-1h", exact(5), Some(OffsetPoint::Ago(HOUR))),
            ("@1768471200000", at(1_768_471_200_000), None),
            ("@1768471200", at(1_768_471_200_000), None),
            ("@1970-01-02", at(86_400_000), None),
            ("@1970-01-01T00:00:01Z", at(1_000), None),
            ("@1970-01-01T01:00:00.25+01:00", at(250), None),
            ("@1970-01-01 00:01Z:end", at(60_000), Some(OffsetPoint::End)),
            ("@1970-01-01T00:00:01Z:1970-01-01T00:00:02Z", at(1_000), Some(at(2_000))),
            ("@1970-01-01T00:00:01Z:@1970-01-02", at(1_000), Some(at(86_400_000))),
        ] {
            assert_eq!(text.parse(), Ok(OffsetSpec { from, until }), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            ":",
            "5:",
            "a",
            "--3",
            "+-1",
            "5:9:1",
            "@",
            "@-",
            "@-1",
            "@-1y",
            "@-h",
            "@x",
            "@2026-13-01",
            "@2026-02-29",
            "@2026-1-1",
            "@2026-01-15T10:00:00",
            "@1970-01-01T24:00Z",
            "@1970-01-01T00:00:60Z",
            "99999999999999999999",
            "@1960-01-01",
            "é:9",
        ] {
            assert!(text.parse::<OffsetSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn dates_know_leap_years() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1999-12-31", 10_956),
            ("2000-02-29", 11_016),
            ("2024-03-01", 19_783),
            ("2100-02-28", 47_540),
            ("2100-03-01", 47_541),
        ] {
            assert_eq!(parse_date(text), Some(days), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[@+:TZ0-9a-z. -]{0,24}") {
            let _ = text.parse::<OffsetSpec>();
        }
    }
}
