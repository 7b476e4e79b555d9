//! `key=value` on the command line, as the protocol wants it.

use strandline_model::config::{Scope, key};

use crate::failure::Failure;

/// Units become plain numbers. What we do not know is left to the broker, which may be another kind
/// or a newer one.
pub(super) fn assignment(scope: Scope, text: &str) -> Result<(String, String), Failure> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| Failure::usage(format!("{text}: not key=value")))?;
    let name = name.trim();
    Ok((name.to_owned(), plain(scope, name, name, value)?))
}

/// The same for a group's key, which a broker's key with `group.` in front describes.
pub(super) fn group_assignment(text: &str) -> Result<(String, String), Failure> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| Failure::usage(format!("{text}: not key=value")))?;
    let name = name.trim();
    Ok((name.to_owned(), plain(Scope::Broker, &format!("group.{name}"), name, value)?))
}

fn plain(scope: Scope, known_as: &str, name: &str, value: &str) -> Result<String, Failure> {
    match key(scope, known_as).map(|key| key.parse_with_units(value)) {
        Some(Ok(parsed)) => Ok(parsed.to_string()),
        Some(Err(invalid)) => Err(Failure::usage(format!("{name}={value}: {invalid}"))),
        None => Ok(value.to_owned()),
    }
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
    fn keys_of_groups_are_known_by_their_brokers_keys() {
        let pair = ("consumer.session.timeout.ms".to_owned(), "50000".to_owned());
        assert_eq!(group_assignment("consumer.session.timeout.ms=50s"), Ok(pair));
    }
}
