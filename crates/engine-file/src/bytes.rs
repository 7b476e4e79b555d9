//! Big-endian fields, in and out of byte strings that a disk gave us.

use bytes::{Buf, Bytes};
use strandline_model::LeaderEpoch;

/// Takes fields off the front of a byte string; `None` where it is too short.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number that only ever counts up by one. Nobody lives to see 2⁶²; a damaged one must not
    /// overflow when it is counted on.
    pub(crate) fn counter(&mut self) -> Option<u64> {
        self.u64().filter(|&count| count < 1 << 62)
    }

    /// A leader epoch. It rises by one at a time, so one near the end of its numbers is damage: the
    /// next one would have none.
    pub(crate) fn leader_epoch(&mut self) -> Option<LeaderEpoch> {
        self.i32().filter(|&epoch| epoch < 1 << 30).and_then(LeaderEpoch::from_wire)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A length that the next fields have, as an index.
    pub(crate) fn length(&mut self) -> Option<usize> {
        self.u32().and_then(|length| usize::try_from(length).ok())
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Splits `count` bytes off the front of `bytes`, sharing them.
pub(crate) fn split_front(bytes: &mut Bytes, count: usize) -> Option<Bytes> {
    (count <= bytes.remaining()).then(|| bytes.split_to(count))
}

/// The length of a buffer as the formats carry it.
///
/// # Panics
/// At 4 GiB: keys, values and groups are bounded far below.
pub(crate) fn length_field(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("lengths are bounded far below 4 GiB").to_be_bytes()
}
