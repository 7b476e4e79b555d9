//! From a text to a value, by Kafka's rules and with Kafka's words when it is wrong.

use std::collections::BTreeSet;
use std::fmt;

use super::key::{ConfigKey, ConfigType, Valid};
use super::units;
use super::value::Value;

/// A text that is no value of its key. Displayed in the words of Kafka's `ConfigException`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// The key.
    pub name: &'static str,
    /// The value as Kafka would print it; masked when it is a secret.
    pub value: String,
    /// What is wrong with it.
    pub why: String,
    /// Whether Kafka's words repeat the value.
    pub(super) repeats_value: bool,
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, why, repeats_value } = self;
        if *repeats_value {
            write!(f, "Invalid value {value} for configuration {name}: {why}")
        } else {
            write!(f, "Configuration '{name}' {why}")
        }
    }
}

impl std::error::Error for InvalidValue {}

impl ConfigKey {
    /// The value that `text` means on the wire: numbers are plain, as Kafka's tools send them.
    pub fn parse(&self, text: &str) -> Result<Value, InvalidValue> {
        let value = self.parse_type(text)?;
        self.validate(&value)?;
        Ok(value)
    }

    /// The value that `text` means in a file, the environment or a flag: where the name ends in a
    /// unit (`.bytes`, `.ms`, `.minutes`, `.hours`), the number may carry one (`512MiB`, `7d`).
    pub fn parse_with_units(&self, text: &str) -> Result<Value, InvalidValue> {
        match units::normalize(self, text.trim()) {
            Some(Ok(number)) => self.parse(&number),
            Some(Err(why)) => Err(self.invalid(text, why)),
            None => self.parse(text),
        }
    }

    fn invalid(&self, value: impl fmt::Display, why: impl Into<String>) -> InvalidValue {
        let value = if self.is_sensitive() { "[hidden]".to_owned() } else { value.to_string() };
        InvalidValue { name: self.name, value, why: why.into(), repeats_value: true }
    }

    fn parse_type(&self, text: &str) -> Result<Value, InvalidValue> {
        let trimmed = text.trim();
        let number = |min: i64, max: i64| match trimmed.parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Value::Number(number)),
            Ok(_) | Err(_) => Err(self.not_a_number(text)),
        };
        match self.kind {
            ConfigType::Boolean if trimmed.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
            ConfigType::Boolean if trimmed.eq_ignore_ascii_case("false") => {
                Ok(Value::Boolean(false))
            }
            ConfigType::Boolean => {
                Err(self.invalid(text, "Expected value to be either true or false"))
            }
            ConfigType::Int => number(i32::MIN.into(), i32::MAX.into()),
            ConfigType::Short => number(i16::MIN.into(), i16::MAX.into()),
            ConfigType::Long => number(i64::MIN, i64::MAX),
            ConfigType::Double => match trimmed.parse::<f64>() {
                Ok(double) if double.is_finite() => Ok(Value::Double(double)),
                Ok(_) | Err(_) => Err(self.not_a_number(text)),
            },
            ConfigType::String | ConfigType::Class => Ok(Value::Text(trimmed.to_owned())),
            // A secret may begin or end with a space.
            ConfigType::Password => Ok(Value::Text(text.to_owned())),
            ConfigType::List => Ok(Value::List(split_list(trimmed))),
        }
    }

    fn not_a_number(&self, text: &str) -> InvalidValue {
        self.invalid(text, format!("Not a number of type {}", self.kind.number_name()))
    }

    fn validate(&self, value: &Value) -> Result<(), InvalidValue> {
        let refused = |why: String| Err(self.invalid(value, why));
        if let Value::List(items) = value {
            self.validate_no_empty_item(items)?;
        }
        match (self.valid, value) {
            (Valid::AtLeast(min) | Valid::Between(min, _), Value::Number(number))
                if *number < min =>
            {
                refused(format!("Value must be at least {min}"))
            }
            (Valid::Between(_, max), Value::Number(number)) if *number > max => {
                refused(format!("Value must be no more than {max}"))
            }
            (Valid::Ratio(_), Value::Double(double)) if *double < 0.0 => {
                refused("Value must be at least 0".to_owned())
            }
            (Valid::Ratio(max), Value::Double(double)) if *double > max => {
                refused(format!("Value must be no more than {max}"))
            }
            (Valid::GzipLevel, Value::Number(level))
                if *level != -1 && !(1..=9).contains(level) =>
            {
                refused("Value must be between 1 and 9 or equal to -1".to_owned())
            }
            (Valid::UnlimitedOrPositive, Value::Number(0)) => {
                refused("Value must be unlimited (-1) or, greater than or equal to 1".to_owned())
            }
            (Valid::OneOf(choices), Value::Text(text)) if !choices.contains(&text.as_str()) => {
                refused(format!("String must be one of: {}", choices.join(", ")))
            }
            (Valid::OneOf(choices), Value::List(items)) => self.validate_items(choices, items),
            (Valid::OneOfAnyCase(choices), Value::Text(text))
                if !choices.iter().any(|choice| choice.eq_ignore_ascii_case(text)) =>
            {
                refused(format!("String must be one of (case insensitive): {}", choices.join(", ")))
            }
            (Valid::NotEmpty, Value::Text(text)) if text.is_empty() => {
                refused("String must be non-empty".to_owned())
            }
            (Valid::NotEmpty, Value::List(items)) if items.is_empty() => {
                refused("must not be empty".to_owned())
            }
            (Valid::ThrottledReplicas, Value::List(items)) if !are_throttled_replicas(items) => {
                Err(self.invalid(
                    format_args!("[{}]", items.join(", ")),
                    format!(
                        "{} must be the literal '*' or a list of replicas in the following \
                         format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
                        self.name
                    ),
                ))
            }
            (Valid::OffsetReset, Value::Text(text)) if !is_offset_reset(text) => refused(format!(
                "Invalid value `{text}` for configuration {}. The value must be either \
                 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
                self.name
            )),
            (Valid::Check { expects, check }, value) if !check(value) => {
                refused(format!("Value must be {expects}"))
            }
            _ => Ok(()),
        }
    }

    fn validate_no_empty_item(&self, items: &[String]) -> Result<(), InvalidValue> {
        // Kafka's rule for lists of replicas has words of its own for it.
        if matches!(self.valid, Valid::ThrottledReplicas)
            || items.iter().all(|item| !item.is_empty())
        {
            return Ok(());
        }
        let told = self.invalid(items.join(","), "values must not be empty.");
        Err(InvalidValue { repeats_value: false, ..told })
    }

    fn validate_items(&self, choices: &[&str], items: &[String]) -> Result<(), InvalidValue> {
        match items.iter().find(|item| !choices.contains(&item.as_str())) {
            Some(item) => {
                Err(self.invalid(item, format!("String must be one of: {}", choices.join(", "))))
            }
            None => Ok(()),
        }
    }
}

/// Items between commas, without the spaces around them; an item that comes again is dropped, as
/// Kafka does.
fn split_list(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut known = BTreeSet::new();
    let items = text.split(',').map(str::trim).filter(|item| known.insert(*item));
    items.map(str::to_owned).collect()
}

fn is_offset_reset(text: &str) -> bool {
    matches!(text, "latest" | "earliest")
        || text
            .strip_prefix("by_duration:")
            .is_some_and(|span| super::iso_duration::parse_iso_duration_ms(span).is_some())
}

fn are_throttled_replicas(items: &[String]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_replica = |item: &String| {
        item.split_once(':')
            .is_some_and(|(partition, broker)| is_number(partition) && is_number(broker))
    };
    matches!(items, [all] if all == "*") || items.iter().all(is_replica)
}

#[cfg(test)]
mod tests {
    use crate::config::{broker_key, topic_key};

    fn topic(name: &str, text: &str) -> String {
        match topic_key(name).expect("a topic key").parse(text) {
            Ok(value) => value.to_string(),
            Err(invalid) => invalid.to_string(),
        }
    }

    /// Key, text, and what Apache Kafka 4.4 answered: the value it took, or its error.
    const ANSWERS: &[(&str, &str, &str)] = &[
        ("retention.ms", " 5 ", "5"),
        ("segment.bytes", "+5000000", "5000000"),
        ("preallocate", "TRUE", "true"),
        ("min.cleanable.dirty.ratio", "0.30", "0.3"),
        ("cleanup.policy", "delete, compact", "delete,compact"),
        ("cleanup.policy", "delete,delete", "delete"),
        ("cleanup.policy", "", ""),
        ("compression.type", " gzip ", "gzip"),
        ("compression.gzip.level", "-1", "-1"),
        ("retention.bytes", "-5", "-5"),
        ("leader.replication.throttled.replicas", "*", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2", "0:1,1:2"),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "7d",
            "Invalid value 7d for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "",
            "Invalid value  for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "-2",
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            "segment.bytes",
            "10",
            "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type \
                 INT",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no \
                 more than 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "x",
            "Invalid value x for configuration min.cleanable.dirty.ratio: Not a number of \
                 type DOUBLE",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either \
                 true or false",
        ),
        (
            "cleanup.policy",
            "delete,foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: \
                 compact, delete",
        ),
        ("cleanup.policy", "compact,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "compression.type",
            "GZIP",
            "Invalid value GZIP for configuration compression.type: String must be one of: \
                 uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between \
                 1 and 9 or equal to -1",
        ),
        (
            "compression.lz4.level",
            "0",
            "Invalid value 0 for configuration compression.lz4.level: Value must be at least 1",
        ),
        (
            "compression.zstd.level",
            "23",
            "Invalid value 23 for configuration compression.zstd.level: Value must be no more \
                 than 22",
        ),
        (
            "leader.replication.throttled.replicas",
            "x",
            "Invalid value [x] for configuration leader.replication.throttled.replicas: \
                 leader.replication.throttled.replicas must be the literal '*' or a list of \
                 replicas in the following format: [partitionId]:[brokerId],[partitionId]:\
                 [brokerId],...",
        ),
    ];

    #[test]
    fn values_are_read_and_refused_in_kafkas_words() {
        for (name, text, answer) in ANSWERS {
            assert_eq!(topic(name, text), *answer, "{name}={text}");
        }
    }

    #[test]
    fn broker_values_are_refused_in_kafkas_words() {
        for (name, text, answer) in [
            (
                "offsets.topic.replication.factor",
                "99999",
                "Invalid value 99999 for configuration offsets.topic.replication.factor: Not a \
                 number of type SHORT",
            ),
            (
                "group.consumer.migration.policy",
                "x",
                "Invalid value x for configuration group.consumer.migration.policy: String must \
                 be one of (case insensitive): DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL",
            ),
            (
                "num.partitions",
                "0",
                "Invalid value 0 for configuration num.partitions: Value must be at least 1",
            ),
        ] {
            let refused = broker_key(name).expect("a broker key").parse(text);
            assert_eq!(refused.expect_err("wrong").to_string(), answer);
        }
    }

    #[test]
    fn a_secret_is_not_repeated_in_an_error() {
        let key = super::super::key::password("a.b", "x").not_empty();
        assert!(key.parse("").expect_err("empty").to_string().contains("[hidden]"));
    }
}
