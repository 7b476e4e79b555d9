//! A config's value once it is parsed, and its canonical text.

use std::fmt;

/// A parsed value. Every number fits the key's type, which [`super::ConfigKey::parse`] checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a boolean.
    Boolean(bool),
    /// Of an int, short or long.
    Number(i64),
    /// Of a double.
    Double(f64),
    /// Of a string, class or password.
    Text(String),
    /// Of a list: no item twice.
    List(Vec<String>),
}

/// The text that Kafka's DescribeConfigs gives for the value.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Double(value) => f.write_str(&canonical_double(*value)),
            Self::Text(value) => f.write_str(value),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// A finite double as Java's `Double.toString` prints it: plain from 10⁻³ up to 10⁷, else
/// `d.ddEn`; always with a fraction.
pub(super) fn canonical_double(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let fraction = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{fraction}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_java_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (0.5, "0.5"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (1.0, "1.0"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1.25e-7, "1.25E-7"),
            (f64::MAX, "1.7976931348623157E308"),
        ] {
            assert_eq!(canonical_double(value), text);
        }
    }

    #[test]
    fn lists_print_with_bare_commas() {
        let list = Value::List(vec!["compact".to_owned(), "delete".to_owned()]);
        assert_eq!(list.to_string(), "compact,delete");
        assert_eq!(Value::List(Vec::new()).to_string(), "");
    }
}
