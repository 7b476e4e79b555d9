//! Keys of a subscription to the metrics of clients (KIP-714).

use std::fmt;

use super::key::{ConfigKey, int, list};
use super::overrides::Overrides;
use super::reason;
use super::value::Value;

pub(super) const KEYS: &[ConfigKey] = &[
    int("interval.ms", "300000")
        .ignored(reason::TELEMETRY)
        .doc("How often a client sends its metrics: 100 to 3600000."),
    list("match", "")
        .ignored(reason::TELEMETRY)
        .doc("Which clients send metrics: patterns `client_id=REGEX` and the like; empty for all."),
    list("metrics", "")
        .ignored(reason::TELEMETRY)
        .doc("Prefixes of the metrics that are sent; `*` for all, empty for none."),
];

const INTERVAL_MS: std::ops::RangeInclusive<i64> = 100..=3_600_000;

/// What a pattern of `match` may be about.
const SELECTORS: [&str; 6] = [
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Why a subscription was refused. In Kafka's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMetricsError {
    /// The interval is too short or too long.
    Interval(i64),
    /// A pattern is not `SELECTOR=REGEX`.
    Pattern(String),
}

impl fmt::Display for ClientMetricsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval(interval_ms) => write!(
                f,
                "Invalid value {interval_ms} for interval.ms, interval must be between 100 and \
                 3600000 (1 hour)"
            ),
            Self::Pattern(pattern) => write!(f, "Illegal client matching pattern: {pattern}"),
        }
    }
}

impl std::error::Error for ClientMetricsError {}

impl Overrides {
    /// Checks values that are good by their type as those of a subscription. Whether the right side
    /// of a pattern is a regular expression is not looked at.
    pub fn check_client_metrics(&self) -> Result<(), ClientMetricsError> {
        if let Some(Value::Number(interval_ms)) = self.value("interval.ms")
            && !INTERVAL_MS.contains(interval_ms)
        {
            return Err(ClientMetricsError::Interval(*interval_ms));
        }
        let Some(Value::List(patterns)) = self.value("match") else { return Ok(()) };
        let is_pattern = |pattern: &&String| {
            pattern.split_once('=').is_some_and(|(name, _)| SELECTORS.contains(&name.trim()))
        };
        match patterns.iter().find(|pattern| !is_pattern(pattern)) {
            Some(pattern) => Err(ClientMetricsError::Pattern(pattern.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Scope;

    #[test]
    fn subscriptions_are_refused_in_kafkas_words() {
        for (name, text, words) in [
            ("interval.ms", "1000", None),
            (
                "interval.ms",
                "1",
                Some(
                    "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
                ),
            ),
            ("match", "client_id=y", None),
            ("match", "", None),
            ("match", "x=y", Some("Illegal client matching pattern: x=y")),
            ("match", "client_id", Some("Illegal client matching pattern: client_id")),
        ] {
            let mut own = Overrides::default();
            own.set(Scope::ClientMetrics, name, text).expect("good by its type");
            let checked = own.check_client_metrics().map_err(|error| error.to_string());
            assert_eq!(checked.err().as_deref(), words, "{name}={text}");
        }
    }
}
