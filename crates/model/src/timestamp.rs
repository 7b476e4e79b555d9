//! Wall-clock time as Kafka counts it.

use std::fmt;

/// Milliseconds since the Unix epoch. Always an argument: this crate reads no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A point in time, in milliseconds since the Unix epoch; it must not be negative.
    pub const fn from_millis(millis: i64) -> Self {
        assert!(millis >= 0, "a timestamp is never negative");
        Self(millis)
    }

    /// A timestamp as it stands on the wire, where a negative number means "none".
    pub const fn from_wire(millis: i64) -> Option<Self> {
        if millis < 0 { None } else { Some(Self(millis)) }
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time plus `millis`, at most the largest timestamp.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        let sum = self.0.saturating_add(millis);
        Self(if sum < 0 { 0 } else { sum })
    }

    /// Milliseconds from `earlier` to this time; negative when `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
