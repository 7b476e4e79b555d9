//! A count of bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A count of bytes: a size, a limit or a budget; never a position in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(u64);

impl ByteCount {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// `count` × 1024 bytes.
    pub const fn kib(count: u64) -> Self {
        Self(count * 1024)
    }

    /// `count` × 1024² bytes.
    pub const fn mib(count: u64) -> Self {
        Self(count * 1024 * 1024)
    }

    /// `count` × 1024³ bytes.
    pub const fn gib(count: u64) -> Self {
        Self(count * 1024 * 1024 * 1024)
    }

    /// The length of a buffer.
    pub const fn of(buf: &[u8]) -> Self {
        Self(buf.len() as u64)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, or zero when `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

/// Exact, in bytes: people get binary units from the command line's formatter, not from here.
impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
