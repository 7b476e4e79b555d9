//! The embedded storage engine: commit logs and metadata in one folder.
//!
//! Batches stand in segment files, byte for byte as consumers get them; one journal makes appends
//! of all partitions, and rows, durable together. Every access to a file goes through a
//! [disk](disk::Disk), so that tests can cut the power after any of them.
//!
//! docs/format.md has the bytes of everything that is kept.

pub mod disk;
pub mod segment;
