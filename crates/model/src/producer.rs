//! Idempotent producers: their ids and sequence numbers (KIP-98).

use std::fmt;

/// The identity of an idempotent or transactional producer.
///
/// `-1` on the wire means "none" and is an `Option::None` here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(i64);

impl ProducerId {
    /// A producer id; it must not be negative.
    pub const fn new(id: i64) -> Self {
        assert!(id >= 0, "a producer id is never negative");
        Self(id)
    }

    /// A producer id as it stands on the wire, where a negative number means "none".
    pub const fn from_wire(id: i64) -> Option<Self> {
        if id < 0 { None } else { Some(Self(id)) }
    }

    /// The number itself.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a record in its producer's stream to one partition: 0 to 2³¹ − 1, then 0 again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(i32);

impl Sequence {
    /// The first sequence of a producer epoch.
    pub const ZERO: Self = Self(0);

    /// A sequence as it stands on the wire, where a negative number means "none".
    pub const fn from_wire(sequence: i32) -> Option<Self> {
        if sequence < 0 { None } else { Some(Self(sequence)) }
    }

    /// The number itself.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The sequence `count` records later, wrapping from 2³¹ − 1 to 0.
    #[must_use]
    pub const fn advanced_by(self, count: u32) -> Self {
        // Modulo 2^31: the low 31 bits of the sum.
        Self((self.0.cast_unsigned().wrapping_add(count) & 0x7fff_ffff).cast_signed())
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_wraps_to_zero_after_its_maximum() {
        let last = Sequence::from_wire(i32::MAX).unwrap();
        assert_eq!(last.advanced_by(1), Sequence::ZERO);
        assert_eq!(last.advanced_by(3).get(), 2);
        assert_eq!(Sequence::ZERO.advanced_by(7).get(), 7);
    }
}
