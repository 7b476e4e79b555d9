//! What somebody set: parsed values by key.

use std::collections::BTreeMap;
use std::fmt;

use super::key::{ConfigKey, Scope};
use super::parse::InvalidValue;
use super::value::Value;
use super::{key, suggest};

/// Values of one scope that were set in one place: on a topic, in the static file, dynamically.
/// A value is checked when it enters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    values: BTreeMap<&'static str, Value>,
}

/// Why a value did not enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// There is no such key.
    UnknownKey {
        /// The scope that was asked.
        scope: Scope,
        /// The name.
        name: String,
        /// A known name near it.
        suggestion: Option<&'static str>,
    },
    /// The key does not take this value.
    InvalidValue(InvalidValue),
}

/// In Kafka's words.
impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { scope, name, suggestion } => {
                write!(f, "Unknown {} config name: {name}", scope.word())?;
                match suggestion {
                    Some(suggestion) => write!(f, " (did you mean {suggestion}?)"),
                    None => Ok(()),
                }
            }
            Self::InvalidValue(invalid) => invalid.fmt(f),
        }
    }
}

impl std::error::Error for SetError {}

impl From<InvalidValue> for SetError {
    fn from(invalid: InvalidValue) -> Self {
        Self::InvalidValue(invalid)
    }
}

impl Overrides {
    /// Sets the key of this name from a text, by the wire's rules.
    pub fn set(&mut self, scope: Scope, name: &str, text: &str) -> Result<(), SetError> {
        let key = key(scope, name).ok_or_else(|| SetError::UnknownKey {
            scope,
            name: name.to_owned(),
            suggestion: suggest(scope, name),
        })?;
        let value = key.parse(text)?;
        self.values.insert(key.name, value);
        Ok(())
    }

    /// Sets a key to a value that was parsed for it.
    pub fn insert(&mut self, key: &'static ConfigKey, value: Value) {
        self.values.insert(key.name, value);
    }

    /// Forgets a key.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.values.remove(name)
    }

    /// The value that was set, if any.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Whether nothing was set.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What was set, by name: what a row of the metadata store keeps.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_keys_with_good_values_enter() {
        let mut overrides = Overrides::default();
        overrides.set(Scope::Topic, "retention.ms", "5").expect("good");
        let unknown = overrides.set(Scope::Topic, "retention.mss", "5").expect_err("unknown");
        assert_eq!(
            unknown.to_string(),
            "Unknown topic config name: retention.mss (did you mean retention.ms?)"
        );
        let wrong = overrides.set(Scope::Topic, "retention.ms", "x").expect_err("wrong");
        assert!(matches!(wrong, SetError::InvalidValue(_)));
        assert_eq!(overrides.value("retention.ms"), Some(&Value::Number(5)));
        assert_eq!(overrides.remove("retention.ms"), Some(Value::Number(5)));
        assert!(overrides.is_empty());
    }
}
