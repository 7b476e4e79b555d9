//! `key=value` on the command line, as the protocol wants it.

use strandline_model::config::{Scope, key};

use crate::failure::Failure;

/// Units become plain numbers. What we do not know is left to the broker, which may be another kind
/// or a newer one.
pub(super) fn assignment(scope: Scope, text: &str) -> Result<(String, String), Failure> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| Failure::usage(format!("{text}: not key=value")))?;
    let name = name.trim();
    let plain = match key(scope, name).map(|key| key.parse_with_units(value)) {
        Some(Ok(parsed)) => parsed.to_string(),
        Some(Err(invalid)) => return Err(Failure::usage(format!("{name}={value}: {invalid}"))),
        None => value.to_owned(),
    };
    Ok((name.to_owned(), plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_the_plain_numbers_of_the_protocol() {
        for (text, name, value) in [
            ("retention.ms=7d", "retention.ms", "604800000"),
            ("segment.bytes=128MiB", "segment.bytes", "134217728"),
            ("cleanup.policy=compact, delete", "cleanup.policy", "compact,delete"),
            ("some.other.broker=x y", "some.other.broker", "x y"),
        ] {
            let pair = (name.to_owned(), value.to_owned());
            assert_eq!(assignment(Scope::Topic, text), Ok(pair));
        }
        assert!(assignment(Scope::Topic, "retention.ms").is_err());
        assert!(assignment(Scope::Topic, "retention.ms=soon").is_err());
    }

    #[test]
    fn keys_of_groups_take_units_too() {
        let pair = ("consumer.session.timeout.ms".to_owned(), "50000".to_owned());
        assert_eq!(assignment(Scope::Group, "consumer.session.timeout.ms=50s"), Ok(pair));
    }
}
