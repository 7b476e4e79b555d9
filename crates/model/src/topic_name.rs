//! Topic names and Kafka's rules for them.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A valid topic name: 1 to 249 characters of `[a-zA-Z0-9._-]`, but not `.` or `..`.
///
/// A label, not an identity: after a deletion another topic may carry it at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

/// Characters of a name that is too long which are repeated when it is refused.
const NAMED_MAX: usize = 32;

/// Why a text is no topic name, in Kafka's words: tools show them to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidTopicName {
    /// The empty text.
    Empty,
    /// `.` or `..`.
    Dots(Box<str>),
    /// More than [`TopicName::LENGTH_MAX`] characters; its beginning.
    TooLong(Box<str>),
    /// A character outside `[a-zA-Z0-9._-]`.
    Character(Box<str>),
}

impl fmt::Display for InvalidTopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Topic name is invalid: ")?;
        match self {
            Self::Empty => f.write_str("the empty string is not allowed"),
            Self::Dots(name) => write!(f, "'{name}' is not allowed"),
            Self::TooLong(start) => {
                let most = TopicName::LENGTH_MAX;
                write!(f, "the length of '{start}…' is longer than the max allowed length {most}")
            }
            Self::Character(name) => write!(
                f,
                "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
                 and '-'"
            ),
        }
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
            "." | ".." => return Err(InvalidTopicName::Dots(text.into())),
            _ => {}
        }
        if text.len() > Self::LENGTH_MAX {
            // Not the whole of it: an answer would echo what was made up to be large.
            let start: String = text.chars().take(NAMED_MAX).collect();
            return Err(InvalidTopicName::TooLong(start.into()));
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
            return Err(InvalidTopicName::Character(text.into()));
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

    /// Whether no topic may have this name: Kafka's controllers keep their metadata under it.
    pub fn is_reserved(&self) -> bool {
        self.as_str() == "__cluster_metadata"
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
        let start = format!("{}…", "a".repeat(32));
        let cases: [(&str, &str); 9] = [
            ("orders", ""),
            ("Orders.2_x-y", ""),
            ("...", ""),
            (&longest, ""),
            ("", "the empty string is not allowed"),
            (".", "'.' is not allowed"),
            ("..", "'..' is not allowed"),
            (
                &too_long,
                &format!("the length of '{start}' is longer than the max allowed length 249"),
            ),
            (
                "größe",
                "'größe' contains one or more characters other than ASCII alphanumerics, '.', '_' \
                 and '-'",
            ),
        ];
        for (text, why) in cases {
            let refusal = TopicName::new(text).err().map(|error| error.to_string());
            let expected = (!why.is_empty()).then(|| format!("Topic name is invalid: {why}"));
            assert_eq!(refusal, expected, "{text}");
        }
    }

    #[test]
    fn names_that_differ_only_in_dots_and_underscores_collide() {
        let key = |text| TopicName::new(text).unwrap().collision_key();
        assert_eq!(key("a.b"), key("a_b"));
        assert_ne!(key("a.b"), key("a-b"));
    }
}
