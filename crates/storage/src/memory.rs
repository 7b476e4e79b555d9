//! The memory engine: logs and rows that live as long as the process.
//!
//! `serve --ephemeral` runs on it, and so do the broker's tests: it goes through the same tickets,
//! listeners and epochs as an engine with a disk. Appends become durable in a task of the engine,
//! not in [`CommitLog::submit`](crate::CommitLog::submit), which is called under the partition's
//! lock where the listener must not be. It deliberately has no thread and reads no clock: on a
//! seeded single-threaded runtime it is deterministic.
//!
//! # Invariants
//! - Batches, rows, saved states and what it costs to keep them never exceed
//!   [`MemoryOptions::capacity`] together. (`space.rs`)
//! - Batches are copied when they are appended, so that a small one never keeps a large request
//!   frame alive. (`chunk.rs`)
//! - `log_start <= durable_end <= written_end` of every log, at every public entry and exit.

mod chunk;
mod log;
mod meta;
#[cfg(feature = "testkit")]
mod restart;
mod rewrite;
mod settle;
mod space;
mod store;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset, PartitionId};
use tokio::sync::mpsc;

use crate::{BoxFuture, ErrorKind, StorageError};
use log::Log;
use meta::Tables;
use settle::Settlement;
use space::Budget;

/// Logs and rows in memory. See the [module](self).
pub struct MemoryEngine {
    shared: Arc<Shared>,
}

/// How much a [`MemoryEngine`] may hold.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOptions {
    /// Bytes that batches, rows and saved states may occupy together.
    pub capacity: ByteCount,
    /// The part of `capacity` that appends may not use, so that rows still fit when logs are full.
    pub reserve: ByteCount,
    /// Appends that may wait to be made durable. Reached: `submit` answers `Busy`.
    pub pending_appends_max: usize,
}

impl MemoryOptions {
    /// Holds up to `capacity`, a sixteenth of it kept for rows.
    pub const fn with_capacity(capacity: ByteCount) -> Self {
        let reserve = ByteCount::new(capacity.get() / 16);
        Self { capacity, reserve, pending_appends_max: 4096 }
    }
}

/// What the engine, its open logs and nobody else share.
struct Shared {
    budget: Budget,
    logs: Mutex<BTreeMap<PartitionId, Arc<Log>>>,
    tables: Mutex<Tables>,
    settlements: mpsc::Sender<Settlement>,
    closed: AtomicBool,
    /// Where logs begin.
    first_offset: AtomicI64,
}

impl MemoryEngine {
    /// An empty engine. `spawn` starts the task that makes appends durable, which ends when the
    /// engine and all of its open logs are gone: `|task| { tokio::spawn(task); }`.
    ///
    /// # Panics
    /// When `options` allow no pending append at all.
    pub fn new(options: MemoryOptions, spawn: impl FnOnce(BoxFuture<'static, ()>)) -> Self {
        let (settlements, queue) = mpsc::channel(options.pending_appends_max);
        spawn(Box::pin(settle::run(queue)));
        let shared = Shared {
            budget: Budget::new(options.capacity, options.reserve),
            logs: Mutex::new(BTreeMap::new()),
            tables: Mutex::new(Tables::default()),
            settlements,
            closed: AtomicBool::new(false),
            first_offset: AtomicI64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Lets logs that are made from now on begin at `offset`.
    ///
    /// For an engine whose logs are gone after a restart while their topics stay: offsets that only
    /// rise tell a consumer that what it stands at is lost.
    pub fn begin_logs_at(&self, offset: Offset) {
        self.shared.first_offset.store(offset.get(), Ordering::Relaxed);
    }
}

impl Shared {
    fn new_log(&self, id: PartitionId) -> Arc<Log> {
        Arc::new(Log::new(id, Offset::new(self.first_offset.load(Ordering::Relaxed))))
    }

    fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) {
            Err(StorageError::new(ErrorKind::Closed, "memory engine is closed"))
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for MemoryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEngine")
            .field("space", &self.shared.budget.space())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
