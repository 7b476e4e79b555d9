//! The embedded storage engine: commit logs and metadata in one folder.
//!
//! Batches stand in segment files, byte for byte as consumers get them; one journal makes appends
//! of all partitions, and rows, durable together. Every access to a file goes through a
//! [disk](disk::Disk), so that tests can cut the power after any of them.
//!
//! [`FileEngine::open`] brings a folder into a state from which it goes on. From then on one thread
//! commits, one makes checkpoints, one makes journal files and one removes dropped segments; callers
//! only queue and wait.
//!
//! # Invariants
//! - What a ticket or a commit reported durable is there after any crash.
//! - Nothing is shown to a reader that a crash can take back, as the log's durability means it.
//! - Memory, queues and the journal are bounded by [`FileEngineConfig`].
//!
//! docs/format.md has the bytes of everything that is kept, docs/adr/0003-journal.md the reasons.

mod blocking;
mod bytes;
mod checkpoint;
mod commit;
mod config;
pub mod disk;
mod displaced;
mod engine;
mod folder_lock;
mod journal;
mod leftovers;
mod live;
mod log;
mod meta;
mod progress;
mod quarantine;
mod queue;
mod recovery;
mod registry;
mod repair;
mod rewrite;
mod rows;
mod segment;
mod snapshot;
mod space;
mod store;
mod sweeper;
mod tables;
#[cfg(test)]
mod tests;
mod unsaved;
mod unsound;

pub use config::FileEngineConfig;
pub use engine::FileEngine;
pub use progress::{OpenProgress, OpenStep, OpenWork};
pub use recovery::{
    DamagedLog, Inspection, JournalSeen, LogCheck, OpenError, RecoveryReport, Severity, Started,
};
pub use repair::{LostRange, Repair};
