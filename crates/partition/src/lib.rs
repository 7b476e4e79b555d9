//! The rules of one partition, as pure functions and plain data.
//!
//! What may be appended ([`admit`]), what a producer did before ([`ProducerStates`]), where each
//! leader epoch began ([`EpochStarts`]), how all of that is saved beside the log
//! ([`PartitionState`]), what goes when the log is old or large ([`retention`]), what goes when newer
//! records of the same keys came ([`compaction`]), when the bytes of a deleted topic go
//! ([`deletion`]), and what it means that a log is there or not ([`reconcile`]). The broker asks, under
//! the partition's lock where that matters, and then acts; nothing here reads a clock, awaits, or
//! knows an engine.
//!
//! # Invariants
//! - A decision changes nothing: state changes only by recording what was appended.
//! - Replaying the headers of a log into an empty state gives the state that recorded them.

#![deny(clippy::wildcard_enum_match_arm)]

mod admit;
pub mod compaction;
pub mod deletion;
mod epochs;
mod producer;
pub mod reconcile;
pub mod retention;
mod state;

pub use admit::{Admission, Rejected, admit};
pub use epochs::{EpochEnd, EpochStarts};
pub use producer::{BATCHES_KEPT, CachedBatch, ProducerEntry, ProducerStates};
pub use state::{PartitionState, StateError};
