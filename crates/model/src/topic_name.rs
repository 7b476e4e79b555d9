//! Topic names and Kafka's rules for them.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A valid topic name: 1 to 249 characters of `[a-zA-Z0-9._-]`, but not `.` or `..`.
///
/// A label, not an identity: after a deletion another topic may carry it at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

/// Why a text is no topic name. The wording follows Kafka's, which tools show to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTopicName {
    /// The empty text.
    Empty,
    /// `.` or `..`.
    Dots,
    /// More than [`TopicName::LENGTH_MAX`] characters.
    TooLong,
    /// A character outside `[a-zA-Z0-9._-]`.
    Character,
}

impl fmt::Display for InvalidTopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a topic name is not empty",
            Self::Dots => "a topic name is not \".\" or \"..\"",
            Self::TooLong => "a topic name has at most 249 characters",
            Self::Character => "a topic name has only letters, digits, '.', '_' and '-'",
        })
    }
}

impl std::error::Error for InvalidTopicName {}

impl TopicName {
    /// The longest name, in characters.
    pub const LENGTH_MAX: usize = 249;

    /// Checks Kafka's rules.
    pub fn new(text: &str) -> Result<Self, InvalidTopicName> {
        match text {
            "" => return Err(InvalidTopicName::Empty),
            "." | ".." => return Err(InvalidTopicName::Dots),
            _ => {}
        }
        if text.len() > Self::LENGTH_MAX {
            return Err(InvalidTopicName::TooLong);
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
            return Err(InvalidTopicName::Character);
        }
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the topic is one of the broker's own: clients may read it, not write to it.
    pub fn is_internal(&self) -> bool {
        matches!(
            self.as_str(),
            "__consumer_offsets" | "__transaction_state" | "__share_group_state"
        )
    }

    /// The name with `.` mapped to `_`: two topics whose keys are equal collide in metric names,
    /// so Kafka refuses to create the second.
    pub fn collision_key(&self) -> String {
        self.0.replace('.', "_")
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kafkas_rules() {
        let longest = "a".repeat(249);
        let too_long = "a".repeat(250);
        let cases: [(&str, Result<(), InvalidTopicName>); 9] = [
            ("orders", Ok(())),
            ("Orders.2_x-y", Ok(())),
            ("...", Ok(())),
            (&longest, Ok(())),
            ("", Err(InvalidTopicName::Empty)),
            (".", Err(InvalidTopicName::Dots)),
            ("..", Err(InvalidTopicName::Dots)),
            (&too_long, Err(InvalidTopicName::TooLong)),
            ("größe", Err(InvalidTopicName::Character)),
        ];
        for (text, verdict) in cases {
            assert_eq!(TopicName::new(text).map(|_| ()), verdict, "{text}");
        }
    }

    #[test]
    fn names_that_differ_only_in_dots_and_underscores_collide() {
        let key = |text| TopicName::new(text).unwrap().collision_key();
        assert_eq!(key("a.b"), key("a_b"));
        assert_ne!(key("a.b"), key("a-b"));
    }
}
