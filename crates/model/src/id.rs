//! Identities: topics, partitions, nodes.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The identity of a topic: 128 random bits (KIP-516). A topic that is deleted and created again
/// under its old name gets a new one.
///
/// Printed as Kafka does: URL-safe base64 without padding, 22 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId([u8; 16]);

impl TopicId {
    /// "No id" on the wire. Never the id of a topic.
    pub const ZERO: Self = Self([0; 16]);
    /// Kafka's id of its metadata topic. Never the id of one of ours.
    pub const METADATA: Self = Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// An id from its 16 bytes, as they stand on the wire and on disk.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Whether this id may name a topic: not zero, not Kafka's metadata topic, and not one that
    /// prints with a leading dash (Kafka never makes those: they read as command-line flags).
    pub fn is_usable(&self) -> bool {
        *self != Self::ZERO && *self != Self::METADATA && !self.to_string().starts_with('-')
    }

    /// The same bits as a UUID.
    pub const fn to_uuid(self) -> Uuid {
        Uuid::from_bytes(self.0)
    }
}

impl From<Uuid> for TopicId {
    fn from(uuid: Uuid) -> Self {
        Self(*uuid.as_bytes())
    }
}

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        // 21 digits of six bits, then the last two bits padded to six.
        for digit in 0..21 {
            let index = (bits >> (122 - 6 * digit)) & 63;
            fmt::Write::write_char(f, BASE64_URL[index as usize] as char)?;
        }
        fmt::Write::write_char(f, BASE64_URL[((bits & 3) << 4) as usize] as char)
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TopicId({self})")
    }
}

/// The text is not 22 characters of URL-safe base64 that hold 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseTopicIdError;

impl fmt::Display for ParseTopicIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a topic id is 22 characters of url-safe base64")
    }
}

impl std::error::Error for ParseTopicIdError {}

impl FromStr for TopicId {
    type Err = ParseTopicIdError;

    fn from_str(text: &str) -> Result<Self, ParseTopicIdError> {
        if text.len() != 22 {
            return Err(ParseTopicIdError);
        }
        let mut bits: u128 = 0;
        for (position, byte) in text.bytes().enumerate() {
            let digit =
                BASE64_URL.iter().position(|&b| b == byte).ok_or(ParseTopicIdError)? as u128;
            if position < 21 {
                bits = bits << 6 | digit;
            } else if digit.trailing_zeros() >= 4 {
                bits = bits << 2 | digit >> 4;
            } else {
                return Err(ParseTopicIdError);
            }
        }
        Ok(Self(bits.to_be_bytes()))
    }
}

/// The index of a partition within its topic, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionIndex(u32);

impl PartitionIndex {
    /// An index; at most 2³¹ − 1, the wire's limit.
    pub const fn new(index: u32) -> Self {
        assert!(index <= i32::MAX as u32, "a partition index fits the wire's int32");
        Self(index)
    }

    /// An index as it stands on the wire; a negative one names no partition.
    pub const fn from_wire(index: i32) -> Option<Self> {
        if index < 0 { None } else { Some(Self(index.cast_unsigned())) }
    }

    /// The number itself.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number as the wire carries it.
    pub const fn to_wire(self) -> i32 {
        self.0.cast_signed()
    }
}

impl fmt::Display for PartitionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identity of a partition: what logs, rows and files are keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The topic.
    pub topic_id: TopicId,
    /// The partition within it.
    pub index: PartitionIndex,
}

impl PartitionId {
    /// Partition `index` of `topic_id`.
    pub const fn new(topic_id: TopicId, index: PartitionIndex) -> Self {
        Self { topic_id, index }
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic_id, self.index)
    }
}

/// The identity of a broker in its cluster: Kafka's `node.id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(i32);

impl NodeId {
    /// A node id; never negative.
    pub const fn new(id: i32) -> Self {
        assert!(id >= 0, "a node id is never negative");
        Self(id)
    }

    /// The number itself.
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn topic_ids_print_as_kafka_prints_them() {
        let id = TopicId::from_bytes(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128.to_be_bytes());
        assert_eq!(id.to_string(), "ASNFZ4mrze_-3LqYdlQyEA");
        assert_eq!(TopicId::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
    }

    #[test]
    fn text_that_is_no_topic_id_is_refused() {
        for text in [
            "",
            "ASNFZ4mrze_-3LqYdlQyE",
            "ASNFZ4mrze_-3LqYdlQyEAA",
            "ASNFZ4mrze_-3LqYdlQyE+",
            "ASNFZ4mrze_-3LqYdlQyEB",
        ] {
            assert_eq!(text.parse::<TopicId>(), Err(ParseTopicIdError), "{text}");
        }
    }

    #[test]
    fn reserved_ids_name_no_topic() {
        assert!(!TopicId::ZERO.is_usable());
        assert!(!TopicId::METADATA.is_usable());
        assert!(!TopicId::from_bytes([0xfb; 16]).is_usable(), "prints with a leading dash");
    }

    proptest! {
        #[test]
        fn topic_id_text_round_trips(bytes: [u8; 16]) {
            let id = TopicId::from_bytes(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}
