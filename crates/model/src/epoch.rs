//! Epochs: numbers that only rise and that fence whoever holds a lower one.

use std::fmt;

/// The epoch of a partition's leader, written into every batch that it appends (KIP-101).
///
/// Raised each time a log is opened after an unclean stop, so that two histories of a partition
/// never carry the same epoch. `-1` on the wire means "unknown" and is an `Option::None` here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderEpoch(i32);

impl LeaderEpoch {
    /// The epoch of a partition that was never opened before.
    pub const ZERO: Self = Self(0);

    /// An epoch; it must not be negative.
    pub const fn new(epoch: i32) -> Self {
        assert!(epoch >= 0, "a leader epoch is never negative");
        Self(epoch)
    }

    /// An epoch as it stands on the wire, where a negative number means "unknown".
    pub const fn from_wire(epoch: i32) -> Option<Self> {
        if epoch < 0 { None } else { Some(Self(epoch)) }
    }

    /// The number itself.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The epoch after this one.
    ///
    /// # Panics
    /// After 2³¹ − 1 unclean stops of one partition.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("fewer than 2^31 unclean stops"))
    }
}

impl fmt::Display for LeaderEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The epoch of a producer id: a producer with a lower one than the partition knows is a zombie (KIP-98).
///
/// `-1` on the wire means "no producer id" and never becomes a value of this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerEpoch(i16);

impl ProducerEpoch {
    /// The epoch of a new producer id.
    pub const ZERO: Self = Self(0);

    /// An epoch as it stands on the wire, where a negative number means "none".
    pub const fn from_wire(epoch: i16) -> Option<Self> {
        if epoch < 0 { None } else { Some(Self(epoch)) }
    }

    /// The number itself.
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl fmt::Display for ProducerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
