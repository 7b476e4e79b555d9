//! Positions in a partition's log.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// The position of a record in its partition, from 0. Dense when appended, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(i64);

impl Offset {
    /// The first offset of every partition.
    pub const ZERO: Self = Self(0);

    /// An offset; it must not be negative.
    pub const fn new(offset: i64) -> Self {
        assert!(offset >= 0, "an offset is never negative");
        Self(offset)
    }

    /// An offset from the wire or the disk, where a negative number means "none" or is wrong.
    pub const fn from_wire(offset: i64) -> Option<Self> {
        if offset < 0 { None } else { Some(Self(offset)) }
    }

    /// The number itself.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The offset after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// `self + delta`, or `None` past the largest offset: for numbers that a peer or a disk chose.
    pub const fn checked_add(self, delta: OffsetDelta) -> Option<Self> {
        match self.0.checked_add(delta.0) {
            Some(sum) if sum >= 0 => Some(Self(sum)),
            _ => None,
        }
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The distance between two offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetDelta(i64);

impl OffsetDelta {
    /// A distance; it may be negative.
    pub const fn new(delta: i64) -> Self {
        Self(delta)
    }

    /// The number itself.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl Add<OffsetDelta> for Offset {
    type Output = Self;
    fn add(self, delta: OffsetDelta) -> Self {
        Self::new(self.0 + delta.0)
    }
}

impl AddAssign<OffsetDelta> for Offset {
    fn add_assign(&mut self, delta: OffsetDelta) {
        *self = *self + delta;
    }
}

impl Sub for Offset {
    type Output = OffsetDelta;
    fn sub(self, other: Self) -> OffsetDelta {
        OffsetDelta(self.0 - other.0)
    }
}
