//! Reads a key's value as a Rust type. The tables guarantee what is expected here: a key that has a
//! default always has a value, of the type that its kind says.

use super::value::Value;
use crate::ByteCount;

/// Looks values up by name; a broker's layers or a topic's overrides over them.
pub(super) struct Reader<F: Fn(&str) -> Option<Value>>(pub(super) F);

impl<F: Fn(&str) -> Option<Value>> Reader<F> {
    pub(super) fn number_or_unset(&self, name: &str) -> Option<i64> {
        match (self.0)(name)? {
            Value::Number(number) => Some(number),
            other => unreachable!("{name} is a number, not {other:?}"),
        }
    }

    pub(super) fn number(&self, name: &str) -> i64 {
        self.number_or_unset(name).expect("the key has a default")
    }

    /// A number that the tables keep within `0..=i32::MAX`.
    pub(super) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).expect("the table keeps it at zero or more")
    }

    pub(super) fn bytes(&self, name: &str) -> ByteCount {
        ByteCount::new(
            u64::try_from(self.number(name)).expect("the table keeps it at zero or more"),
        )
    }

    /// The same, where every negative number means none.
    pub(super) fn bytes_or_none(&self, name: &str) -> ByteCount {
        ByteCount::new(u64::try_from(self.number(name)).unwrap_or(0))
    }

    /// A span of milliseconds or a count, where every negative number means "no limit".
    pub(super) fn limit(&self, name: &str) -> Option<u64> {
        u64::try_from(self.number(name)).ok()
    }

    pub(super) fn double(&self, name: &str) -> f64 {
        match (self.0)(name).expect("the key has a default") {
            Value::Double(value) => value,
            other => unreachable!("{name} is a double, not {other:?}"),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> bool {
        match (self.0)(name).expect("the key has a default") {
            Value::Boolean(value) => value,
            other => unreachable!("{name} is a boolean, not {other:?}"),
        }
    }

    pub(super) fn text_or_unset(&self, name: &str) -> Option<String> {
        match (self.0)(name)? {
            Value::Text(text) => Some(text),
            other => unreachable!("{name} is a text, not {other:?}"),
        }
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.text_or_unset(name).expect("the key has a default")
    }

    /// The items of a list; none when it is unset.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        match (self.0)(name) {
            None => Vec::new(),
            Some(Value::List(items)) => items,
            Some(other) => unreachable!("{name} is a list, not {other:?}"),
        }
    }
}
