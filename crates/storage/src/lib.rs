//! What a storage engine is.
//!
//! An engine keeps two things: commit logs, one per partition ([`LogStore`], [`CommitLog`]), and
//! small keyed rows ([`MetaStore`]). It speaks offsets and bytes. It knows nothing of Kafka's
//! protocol, of topics' names, of producers, groups or retention rules: those live once, above, and
//! ask every engine the same questions.
//!
//! # Invariants
//! - What was reported durable is there after any crash.
//! - After an I/O failure a log handle answers [`ErrorKind::Closed`] until the log is opened again:
//!   recovery *is* opening. A failed sync is never tried again.
//! - No method has a default: a new method comes with all engines and a conformance test.
//!
//! See docs/adr/0002-storage-traits.md.

mod error;
mod health;
mod log;
mod memory;
mod meta;
mod read;
#[cfg(feature = "testkit")]
pub mod testkit;
mod ticket;

pub use error::{AppendError, CommitError, ErrorKind, ReadError, StorageError, is_lost};
pub use health::{Figure, FigureValue, TIMES_BOUNDS, Times, Trouble};
pub use log::{
    BatchInfo, ChunkId, ChunkInfo, ChunkRewrite, ChunkState, CommitLog, Compacted, Durability,
    Finding, Found, LogBounds, LogListener, LogSettings, LogStore, LossCertainty, Lost, OpenLog,
    Opened, Quarantined, Removal, Space, Stored,
};
pub use memory::{MemoryEngine, MemoryOptions};
pub use meta::{Change, Expectation, Key, MetaBatch, MetaStore, Page, Row, Table, Value};
pub use read::{BatchBytes, BatchPiece, FileRegion, Minimum, ReadLimit};
pub use ticket::{Completion, Ticket};

use std::future::Future;
use std::pin::Pin;

/// A future behind a pointer: what an `async` method of an object-safe trait returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
