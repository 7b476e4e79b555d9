//! The log of one partition as files: batches byte for byte, and indexes derived from them.
//!
//! A [`SegmentLog`] knows nothing of durability. The engine decides what goes where
//! ([`SegmentLog::place`], then [`SegmentLog::write`]), remembers the [`SegmentFacts`] in its rows,
//! and syncs what [`SegmentStore::take_unsynced`] hands out. After a crash it opens the log with the
//! facts that it believes: bytes beyond them are cut, files beyond them are removed.
//!
//! # Invariants
//! - At most one segment of a log grows, the last one; nothing exists before the first append.
//! - A byte below a segment's published length never changes, and goes only when no reader is left.
//! - Indexes are hints: whatever an index says is checked against the batch that it names, so a
//!   missing, wrong or overlong one costs time, never an answer.
//! - No lock that readers or appenders of other partitions need is held across I/O on a file.
//!
//! # On disk
//! docs/format.md, "Segments and indexes".

mod append;
mod check;
mod displaced;
mod facts;
mod files;
mod find;
mod foreign;
mod index;
mod index_file;
mod live;
mod log;
mod loss;
mod name;
mod quarantine;
mod read;
mod recover;
mod removal;
mod repaired;
mod replace;
mod rescue;
mod rewrite;
mod roll;
mod salvage;
mod store;
mod sync;
mod verify;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use append::DurableWriteError;
pub(crate) use check::Checked;
pub(crate) use facts::{Append, Placement, SegmentFacts, chunks_of};
pub(crate) use log::SegmentLog;
pub(crate) use loss::worst_of;
pub(crate) use name::{SegmentName, rescue_name};
pub(crate) use repaired::{NewSegment, Piece, Source};
pub(crate) use rescue::RescueFile;
pub(crate) use rewrite::{Leftover, Rewrite, Rewritten};
pub(crate) use salvage::{Run, Salvage};
pub(crate) use store::{SegmentOptions, SegmentStore};
pub(crate) use sync::{SyncFailure, SyncWork};
