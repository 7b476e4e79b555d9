//! What a group's own configuration may be beyond each key's type: the bounds that the broker sets.
//!
//! The order of the checks is Kafka's; the first that fails is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::key::ConfigKey;
use super::overrides::Overrides;
use super::resolve::BrokerLayers;
use super::value::Value;
use super::{broker_key, group_key};

/// Why a group's configuration was refused. In Kafka's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupConfigError {
    /// A number is out of the broker's bounds.
    OutOfRange {
        /// The group key.
        name: &'static str,
        /// The lowest number.
        min: i64,
        /// The highest number.
        max: i64,
    },
    /// A number is higher than the broker allows.
    TooHigh {
        /// The group key.
        name: &'static str,
        /// The highest number.
        max: i64,
    },
    /// A number is lower than the broker allows.
    TooLow {
        /// The group key.
        name: &'static str,
        /// The lowest number.
        min: i64,
    },
    /// Members would be silent for too long between two heartbeats.
    SessionWithinHeartbeat {
        /// The session timeout's key.
        session: &'static str,
        /// The heartbeat interval's key.
        heartbeat: &'static str,
    },
    /// The broker has no such assignor.
    UnknownAssignor {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A dead-letter topic would be an internal one.
    InternalDeadLetterTopic,
    /// A tag is named twice.
    DuplicateTag,
}

impl fmt::Display for GroupConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { name, min, max } => {
                write!(f, "{name} must be in the range {min} to {max} inclusive.")
            }
            Self::TooHigh { name, max } => write!(f, "{name} must be less than or equal to {max}"),
            Self::TooLow { name, min } => {
                write!(f, "{name} must be greater than or equal to {min}")
            }
            Self::SessionWithinHeartbeat { session, heartbeat } => {
                write!(f, "{session} must be greater than {heartbeat}")
            }
            Self::UnknownAssignor { name, known } => write!(
                f,
                "streams.assignor.name '{name}' is not a registered task assignor. Registered \
                 assignors are: [{}].",
                known.join(", ")
            ),
            Self::InternalDeadLetterTopic => f.write_str(
                "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
            ),
            Self::DuplicateTag => f.write_str(
                "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
            ),
        }
    }
}

impl std::error::Error for GroupConfigError {}

/// Refuses tags that are named twice. A parsed list has no item twice, so the text is looked at.
pub fn check_group_tags(texts: &BTreeMap<String, String>) -> Result<(), GroupConfigError> {
    let Some(tags) = texts.get("streams.rack.aware.assignment.tags") else { return Ok(()) };
    let mut seen = BTreeSet::new();
    let unique =
        tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).all(|tag| seen.insert(tag));
    if unique { Ok(()) } else { Err(GroupConfigError::DuplicateTag) }
}

/// A group key and the broker keys that bound it.
struct Bound {
    name: &'static str,
    min: Option<&'static str>,
    max: Option<&'static str>,
}

const fn between(name: &'static str, min: &'static str, max: &'static str) -> Bound {
    Bound { name, min: Some(min), max: Some(max) }
}

const fn at_most(name: &'static str, max: &'static str) -> Bound {
    Bound { name, min: None, max: Some(max) }
}

const fn at_least(name: &'static str, min: &'static str) -> Bound {
    Bound { name, min: Some(min), max: None }
}

const BOUNDS: [Bound; 15] = [
    between(
        "consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    between(
        "consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    between(
        "consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    between(
        "share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    between(
        "share.session.timeout.ms",
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    between(
        "share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    between(
        "share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    between(
        "share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    between(
        "share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    between(
        "streams.heartbeat.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    between(
        "streams.session.timeout.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
    at_most("streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    between(
        "streams.assignment.interval.ms",
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
    at_least("streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms"),
    at_most("streams.num.warmup.replicas", "group.streams.max.warmup.replicas"),
];

/// Session timeouts and the heartbeat intervals that must be shorter.
const SESSIONS: [(&str, &str); 3] = [
    ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
    ("share.session.timeout.ms", "share.heartbeat.interval.ms"),
    ("streams.session.timeout.ms", "streams.heartbeat.interval.ms"),
];

impl BrokerLayers {
    /// The value of a group key: the group's own, else the broker's, else the default. An own number
    /// that the broker's bounds have left behind counts as the nearest bound.
    pub fn group_value(&self, group: &Overrides, key: &'static ConfigKey) -> Option<Value> {
        let value = self.topic_value(group, key)?;
        let bound = BOUNDS.iter().find(|bound| bound.name == key.name);
        match (bound, value) {
            (Some(bound), Value::Number(number)) if group.value(key.name).is_some() => {
                let raised = bound.min.map_or(number, |min| number.max(self.bound(min)));
                let lowered = bound.max.map_or(raised, |max| raised.min(self.bound(max)));
                Some(Value::Number(lowered))
            }
            (_, value) => Some(value),
        }
    }

    /// Checks values that are good by their type as those of a group.
    pub fn check_group(&self, group: &Overrides) -> Result<(), GroupConfigError> {
        for bound in &BOUNDS {
            self.check_bound(group, bound)?;
        }
        self.check_assignor(group)?;
        for (session, heartbeat) in SESSIONS {
            let is_set = group.value(session).is_some() || group.value(heartbeat).is_some();
            if is_set && self.group_number(group, session) <= self.group_number(group, heartbeat) {
                return Err(GroupConfigError::SessionWithinHeartbeat { session, heartbeat });
            }
        }
        match group.value("errors.deadletterqueue.topic.name") {
            Some(Value::Text(topic)) if topic.starts_with("__") => {
                Err(GroupConfigError::InternalDeadLetterTopic)
            }
            _ => Ok(()),
        }
    }

    fn check_bound(&self, group: &Overrides, bound: &Bound) -> Result<(), GroupConfigError> {
        let Some(Value::Number(number)) = group.value(bound.name) else { return Ok(()) };
        let name = bound.name;
        let min = bound.min.map(|min| self.bound(min));
        let max = bound.max.map(|max| self.bound(max));
        let good = min.is_none_or(|min| *number >= min) && max.is_none_or(|max| *number <= max);
        match (min, max) {
            _ if good => Ok(()),
            (Some(min), Some(max)) => Err(GroupConfigError::OutOfRange { name, min, max }),
            (Some(min), None) => Err(GroupConfigError::TooLow { name, min }),
            (None, Some(max)) => Err(GroupConfigError::TooHigh { name, max }),
            (None, None) => Ok(()),
        }
    }

    fn check_assignor(&self, group: &Overrides) -> Result<(), GroupConfigError> {
        let Some(Value::Text(name)) = group.value("streams.assignor.name") else { return Ok(()) };
        let key = broker_key("group.streams.assignors").expect("a broker key");
        let known = match self.value(key) {
            Some((Value::List(known), _)) => known,
            _ => Vec::new(),
        };
        if known.contains(name) {
            return Ok(());
        }
        Err(GroupConfigError::UnknownAssignor { name: name.clone(), known })
    }

    fn bound(&self, name: &str) -> i64 {
        match self.value(broker_key(name).expect("a bound is a broker key")) {
            Some((Value::Number(number), _)) => number,
            other => unreachable!("{name} is a number with a default, not {other:?}"),
        }
    }

    fn group_number(&self, group: &Overrides, name: &str) -> i64 {
        match self.topic_value(group, group_key(name).expect("a group key")) {
            Some(Value::Number(number)) => number,
            other => unreachable!("{name} is a number with a default, not {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Scope;

    fn group(settings: &[(&str, &str)]) -> Overrides {
        let mut overrides = Overrides::default();
        for (name, text) in settings {
            overrides.set(Scope::Group, name, text).expect("a good value");
        }
        overrides
    }

    /// As Apache Kafka 4.4 answered.
    #[test]
    fn groups_are_kept_within_the_brokers_bounds() {
        for (settings, words) in [
            (&[("share.partition.max.record.locks", "100")][..], None),
            (
                &[("consumer.session.timeout.ms", "1")],
                Some("consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."),
            ),
            (
                &[("share.delivery.count.limit", "11")],
                Some("share.delivery.count.limit must be in the range 2 to 10 inclusive."),
            ),
            (
                &[("streams.num.standby.replicas", "9")],
                Some("streams.num.standby.replicas must be less than or equal to 2"),
            ),
            (
                &[("streams.task.offset.interval.ms", "1")],
                Some("streams.task.offset.interval.ms must be greater than or equal to 15000"),
            ),
            (
                &[("streams.assignor.name", "x")],
                Some(
                    "streams.assignor.name 'x' is not a registered task assignor. Registered \
                     assignors are: [sticky].",
                ),
            ),
            (&[("streams.assignor.name", "sticky")], None),
            (
                &[("errors.deadletterqueue.topic.name", "__x")],
                Some("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"),
            ),
            (&[("streams.initial.rebalance.delay.ms", "99999999")], None),
            (
                &[
                    ("consumer.session.timeout.ms", "45000"),
                    ("consumer.heartbeat.interval.ms", "15000"),
                ],
                None,
            ),
        ] {
            let checked = BrokerLayers::default().check_group(&group(settings));
            let told = checked.err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), words, "{settings:?}");
        }
    }

    #[test]
    fn a_tag_is_named_once() {
        let tags = |text: &str| {
            let name = "streams.rack.aware.assignment.tags".to_owned();
            check_group_tags(&BTreeMap::from([(name, text.to_owned())]))
        };
        assert_eq!(tags("a,b"), Ok(()));
        assert_eq!(tags(""), Ok(()));
        assert_eq!(tags("a, a"), Err(GroupConfigError::DuplicateTag));
    }

    #[test]
    fn a_session_must_outlast_a_heartbeat() {
        let mut layers = BrokerLayers::default();
        let lower = "group.consumer.min.session.timeout.ms";
        layers.static_broker.set(Scope::Broker, lower, "100").expect("good");
        let checked = layers.check_group(&group(&[("consumer.session.timeout.ms", "5000")]));
        assert_eq!(
            checked.expect_err("too short").to_string(),
            "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
        );
    }

    #[test]
    fn a_value_that_the_bounds_left_behind_counts_as_the_nearest_bound() {
        let mut layers = BrokerLayers::default();
        let own = group(&[("share.record.lock.duration.ms", "60000")]);
        let key = group_key("share.record.lock.duration.ms").expect("a key");
        let upper = "group.share.max.record.lock.duration.ms";
        layers.static_broker.set(Scope::Broker, upper, "40000").expect("good");
        assert_eq!(layers.group_value(&own, key), Some(Value::Number(40_000)));
        assert_eq!(layers.group_value(&group(&[]), key), Some(Value::Number(30_000)));
    }
}
