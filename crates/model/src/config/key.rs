//! One config key: what DescribeConfigs, `config reference` and the parsers know about it.
//!
//! Keys are written as constants, one expression each (`long("retention.ms", "604800000")
//! .at_least(-1).doc("…")`), so that a table of them reads like the reference that is made from it.

use super::value::{Value, canonical_double};

/// Kafka's type of a config; the numbers are those of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean,
    /// Any text.
    String,
    /// A number of 32 bits.
    Int,
    /// A number of 16 bits.
    Short,
    /// A number of 64 bits.
    Long,
    /// A floating-point number.
    Double,
    /// Texts with commas between them.
    List,
    /// The name of a Java class.
    Class,
    /// A text that is never shown.
    Password,
}

impl ConfigType {
    /// The number that DescribeConfigs carries.
    pub const fn to_wire(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    /// Kafka's name of the type in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Int => "int",
            Self::Short => "short",
            Self::Long => "long",
            Self::Double => "double",
            Self::List => "list",
            Self::Class => "class",
            Self::Password => "password",
        }
    }

    /// The name of a number's type in Kafka's error texts.
    pub(super) const fn number_name(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Double => "DOUBLE",
            Self::Boolean
            | Self::String
            | Self::Long
            | Self::List
            | Self::Class
            | Self::Password => "LONG",
        }
    }
}

/// Where a key may be set, and whose property it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A topic.
    Topic,
    /// A broker.
    Broker,
    /// A group of any kind.
    Group,
    /// A subscription to the metrics of clients (KIP-714).
    ClientMetrics,
}

impl Scope {
    /// The word for it in Kafka's error texts.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::Group => "group",
            Self::ClientMetrics => "client metrics",
        }
    }
}

/// When a broker key may change. Topic keys may always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Only by a restart.
    ReadOnly,
    /// While running, for one broker at a time.
    PerBroker,
    /// While running, for one broker or for all.
    ClusterWide,
}

/// What setting a key changes here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What its doc says.
    Active,
    /// Nothing; the text says why, as a clause that follows "no effect: ".
    None(&'static str),
    /// It promises a security that is not served, so every value but the default is refused at start.
    UnservedSecurity,
}

/// Which values are allowed, beyond the type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Valid {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    Ratio(f64),
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    NotEmpty,
    GzipLevel,
    /// Kafka reads every negative span as "unlimited" and refuses zero.
    UnlimitedOrPositive,
    ThrottledReplicas,
    /// `latest`, `earliest` or `by_duration:` and a span of ISO 8601.
    OffsetReset,
    Check {
        expects: &'static str,
        check: fn(&Value) -> bool,
    },
}

/// Another key that a key's value comes from when it is not set itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The broker key.
    pub name: &'static str,
    pub(super) conversion: Conversion,
}

/// How the value of a fallback becomes one of the key that falls back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// It is one.
    Same,
    /// It counts in a unit that is so many of the key's.
    Times(i64),
    /// The first of a list.
    FirstItem,
}

impl Fallback {
    /// The fallback's value in the unit of the key that falls back: hours become milliseconds.
    pub(super) fn convert(self, value: &Value) -> Value {
        match (self.conversion, value) {
            // Kafka reads every negative span as "unlimited", whatever its unit.
            (Conversion::Times(_), Value::Number(number)) if *number < 0 => Value::Number(-1),
            (Conversion::Times(factor), Value::Number(number)) => {
                Value::Number(number.saturating_mul(factor))
            }
            (Conversion::FirstItem, Value::List(items)) => {
                Value::Text(items.first().cloned().unwrap_or_default())
            }
            (Conversion::Same | Conversion::Times(_) | Conversion::FirstItem, other) => {
                other.clone()
            }
        }
    }
}

/// A topic or broker config.
#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    /// Its name, in Kafka's spelling.
    pub name: &'static str,
    /// Its type.
    pub kind: ConfigType,
    /// The built-in default as Kafka prints it; `None` when the key is unset by default.
    pub default: Option<&'static str>,
    /// One or two sentences.
    pub doc: &'static str,
    /// When it may change.
    pub update: Update,
    /// What it changes.
    pub effect: Effect,
    /// Kept out of lists: for tests and experts.
    pub internal: bool,
    /// The broker keys that give the value when the key is not set itself, first one first.
    pub fallbacks: &'static [Fallback],
    pub(super) valid: Valid,
}

impl ConfigKey {
    const fn new(kind: ConfigType, name: &'static str, default: Option<&'static str>) -> Self {
        Self {
            name,
            kind,
            default,
            doc: "",
            update: Update::ReadOnly,
            effect: Effect::Active,
            internal: false,
            fallbacks: &[],
            valid: Valid::Any,
        }
    }

    /// Whether its value is a secret, never shown in an answer or a log.
    pub const fn is_sensitive(&self) -> bool {
        matches!(self.kind, ConfigType::Password)
    }

    /// The allowed values as Kafka's reference writes them; empty when every value of the type is.
    pub fn valid_values(&self) -> String {
        match self.valid {
            Valid::Any => String::new(),
            Valid::AtLeast(min) => format!("[{min},...]"),
            Valid::Between(min, max) => format!("[{min},...,{max}]"),
            Valid::Ratio(max) => {
                format!("[0,...,{}]", canonical_double(max).trim_end_matches(".0"))
            }
            Valid::OneOf(choices) | Valid::OneOfAnyCase(choices) => {
                format!("[{}]", choices.join(", "))
            }
            Valid::NotEmpty => "not empty".to_owned(),
            Valid::GzipLevel => "[1,...,9] or -1".to_owned(),
            Valid::UnlimitedOrPositive => "[1,...] or -1".to_owned(),
            Valid::ThrottledReplicas => {
                "* or [partitionId]:[brokerId],[partitionId]:[brokerId],...".to_owned()
            }
            Valid::OffsetReset => "[latest, earliest, by_duration:PnDTnHnMn.nS]".to_owned(),
            Valid::Check { expects, .. } => expects.to_owned(),
        }
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    pub(super) const fn at_least(mut self, min: i64) -> Self {
        self.valid = Valid::AtLeast(min);
        self
    }

    pub(super) const fn between(mut self, min: i64, max: i64) -> Self {
        self.valid = Valid::Between(min, max);
        self
    }

    pub(super) const fn ratio(mut self, max: f64) -> Self {
        self.valid = Valid::Ratio(max);
        self
    }

    pub(super) const fn one_of(mut self, choices: &'static [&'static str]) -> Self {
        self.valid = Valid::OneOf(choices);
        self
    }

    pub(super) const fn one_of_any_case(mut self, choices: &'static [&'static str]) -> Self {
        self.valid = Valid::OneOfAnyCase(choices);
        self
    }

    pub(super) const fn not_empty(mut self) -> Self {
        self.valid = Valid::NotEmpty;
        self
    }

    pub(super) const fn gzip_level(mut self) -> Self {
        self.valid = Valid::GzipLevel;
        self
    }

    pub(super) const fn unlimited_or_positive(mut self) -> Self {
        self.valid = Valid::UnlimitedOrPositive;
        self
    }

    pub(super) const fn throttled_replicas(mut self) -> Self {
        self.valid = Valid::ThrottledReplicas;
        self
    }

    pub(super) const fn offset_reset(mut self) -> Self {
        self.valid = Valid::OffsetReset;
        self
    }

    pub(super) const fn check(mut self, expects: &'static str, check: fn(&Value) -> bool) -> Self {
        self.valid = Valid::Check { expects, check };
        self
    }

    pub(super) const fn per_broker(mut self) -> Self {
        self.update = Update::PerBroker;
        self
    }

    pub(super) const fn cluster_wide(mut self) -> Self {
        self.update = Update::ClusterWide;
        self
    }

    pub(super) const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }

    pub(super) const fn ignored(mut self, why: &'static str) -> Self {
        self.effect = Effect::None(why);
        self
    }

    pub(super) const fn security(mut self) -> Self {
        self.effect = Effect::UnservedSecurity;
        self
    }

    pub(super) const fn falls_back_to(mut self, fallbacks: &'static [Fallback]) -> Self {
        self.fallbacks = fallbacks;
        self
    }
}

/// A default that is not set.
pub(super) const UNSET: &str = "\0unset";
/// Java's `Long.MAX_VALUE`: Kafka's "no limit".
pub(super) const LONG_MAX: &str = "9223372036854775807";
/// Java's `Integer.MAX_VALUE`.
pub(super) const INT_MAX: &str = "2147483647";
/// The longest array of a JVM.
pub(super) const ARRAY_MAX: i64 = 2_147_483_639;

const fn default(text: &'static str) -> Option<&'static str> {
    // Sentinel instead of `Some(..)` at four hundred places; no text begins with NUL.
    if !text.is_empty() && text.as_bytes()[0] == 0 { None } else { Some(text) }
}

pub(super) const fn boolean(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::Boolean, name, default(text))
}

pub(super) const fn string(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::String, name, default(text))
}

pub(super) const fn int(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::Int, name, default(text))
}

pub(super) const fn short(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::Short, name, default(text))
}

pub(super) const fn long(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::Long, name, default(text))
}

pub(super) const fn double(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::Double, name, default(text))
}

pub(super) const fn list(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::List, name, default(text))
}

pub(super) const fn class(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::Class, name, default(text))
}

pub(super) const fn password(name: &'static str, text: &'static str) -> ConfigKey {
    ConfigKey::new(ConfigType::Password, name, default(text))
}

/// Falls back to a broker key in the same unit.
pub(super) const fn same(name: &'static str) -> Fallback {
    Fallback { name, conversion: Conversion::Same }
}

/// Falls back to a broker key in minutes, where this one counts milliseconds.
pub(super) const fn minutes(name: &'static str) -> Fallback {
    Fallback { name, conversion: Conversion::Times(60_000) }
}

/// Falls back to a broker key in hours, where this one counts milliseconds.
pub(super) const fn hours(name: &'static str) -> Fallback {
    Fallback { name, conversion: Conversion::Times(3_600_000) }
}

/// Falls back to the first item of a list that is a broker key.
pub(super) const fn first_of(name: &'static str) -> Fallback {
    Fallback { name, conversion: Conversion::FirstItem }
}
