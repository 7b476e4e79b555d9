//! Spans of time and moments, for people.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// `850ms`, `12s`, `3m5s`, `2h10m`, `6d3h`: two units at most, in the letters in which spans are
/// read too.
pub(crate) fn span(millis: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let Some(first) = UNITS.iter().position(|(size, _)| millis >= *size) else {
        return format!("{millis}ms");
    };
    let (size, unit) = UNITS[first];
    let mut text = format!("{}{unit}", millis / size);
    if let Some((smaller, unit)) = UNITS.get(first + 1)
        && millis % size >= *smaller
    {
        text += &format!("{}{unit}", millis % size / smaller);
    }
    text
}

/// RFC 3339 in UTC; `None` for a time that is none or lies outside the calendar.
pub(crate) fn moment(millis: i64) -> Option<String> {
    if millis < 0 {
        return None;
    }
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok()?;
    time.format(&Rfc3339).ok()
}

/// Now, as RFC 3339.
pub(crate) fn now() -> Value {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    moment(i64::try_from(passed).unwrap_or(i64::MAX)).map_or(Value::Null, Value::from)
}

/// Milliseconds since 1970 of an RFC 3339 time.
pub(crate) fn millis(time: &Value) -> Option<i128> {
    let time = OffsetDateTime::parse(time.as_str()?, &Rfc3339).ok()?;
    Some(time.unix_timestamp_nanos() / 1_000_000)
}

/// From `earlier` to `later`; nothing when one is unknown, zero when they are the other way round.
pub(crate) fn between(earlier: &Value, later: &Value) -> Option<String> {
    let passed = millis(later)? - millis(earlier)?;
    Some(span(u64::try_from(passed.max(0)).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (millis, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (65_432, "1m5s"),
            (60_000, "1m"),
            (7_800_000, "2h10m"),
            (529_200_000, "6d3h"),
            (u64::MAX, "213503982334d14h"),
        ] {
            assert_eq!(span(millis), text);
        }
    }

    #[test]
    fn moments_are_rfc_3339() {
        assert_eq!(moment(1_000).as_deref(), Some("1970-01-01T00:00:01Z"));
        assert_eq!(moment(-1), None);
        assert_eq!(moment(i64::MAX), None);
    }
}
