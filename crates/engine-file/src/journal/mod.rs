//! The group-commit journal: what must be durable now, of all partitions and all tables.
//!
//! [`group`] and [`header`] turn groups and file headers into bytes and back, purely. [`writer`] is
//! the one place that writes them, [`files`] makes and recycles the files ahead of it, [`reader`]
//! walks them at start.
//!
//! # Invariants
//! - A group begins at its own block: a synced block is never written again before its file is
//!   given up.
//! - The sequence of a group is one more than that of the group before, whatever file it lies in.
//! - A file's header is durable before its first group is written.
//!
//! docs/format.md has the byte tables and the crash argument.

pub(crate) mod files;
pub(crate) mod group;
pub(crate) mod header;
pub(crate) mod reader;
#[cfg(test)]
mod tests;
pub(crate) mod writer;

use std::path::PathBuf;

/// Groups begin at multiples of this. A page of the kernel: it never has to read one to change it.
pub(crate) const BLOCK_BYTES: u64 = BLOCK as u64;
/// The same, as the length of a buffer.
pub(crate) const BLOCK: usize = 4096;

/// The folder of the slots.
pub(crate) const FOLDER: &str = "journal";

/// A file of the journal, whatever it holds at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn path(self) -> PathBuf {
        PathBuf::from(FOLDER).join(format!("{:04}.journal", self.0))
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let number: u32 = name.strip_suffix(".journal")?.parse().ok()?;
        let slot = Self(number);
        (slot.path().file_name()?.to_str()? == name).then_some(slot)
    }
}

/// The number of a use of a slot. Higher than all before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(pub(crate) u64);

/// The number of a group, from 1; 0 stands for "before all groups".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupSequence(pub(crate) u64);

impl GroupSequence {
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A place where a group lies or may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupPosition {
    pub(crate) generation: Generation,
    pub(crate) position: u64,
}

/// `bytes` rounded up to whole blocks.
pub(crate) const fn whole_blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES)
}
