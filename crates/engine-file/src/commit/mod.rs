//! The commit thread: one per data directory, the only writer of journal, segments and rows.
//!
//! It takes everything that waits, writes one group to the journal, writes the segments, syncs the
//! journal once, publishes, and begins again. There is no timer: while one group is being synced the
//! next one gathers. What is much of one log skips the journal: its segments are written and synced
//! before the group, which only names it.
//!
//! # Invariants
//! - Nothing is published, and nobody is answered, before the group that carries it is as durable as
//!   its policy asks. An answer that reveals another's change waits for that change's group.
//! - An append is published only when its segment write has succeeded too.
//! - The journal names no bytes in a segment that are not durable there.
//! - Between two groups everything that was published is in its segment and in the rows or in the
//!   `changed` facts of a log in `dirty`.
//! - After a failed write or sync of the journal the file is never written again; what was published
//!   without a sync is made durable by a checkpoint before anything else is. ([`Healing`])

mod compose;
mod control;
mod group;
mod publish;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use strandline_storage::{ErrorKind, StorageError};

use crate::engine::Shared;
use crate::journal::group::GroupBuilder;
use crate::journal::writer::{WriteFailure, Writer};
use crate::live::LiveLog;
use crate::queue::{Found, Item};
use group::Work;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Committer {
    shared: Arc<Shared>,
    writer: Writer,
    /// Taken from the queue, not in a group yet.
    items: VecDeque<Item>,
    builder: GroupBuilder,
    work: Work,
    /// Logs whose published facts are not in the rows, in the order in which they came.
    dirty: BTreeMap<u64, Arc<LiveLog>>,
    /// The place in `dirty` of the next one.
    next_dirty: u64,
    /// When what was published without a sync must be synced.
    sync_by: Option<Instant>,
    healing: Healing,
    appended_since_space_check: u64,
    /// Bytes that a start would have to compare with their entries.
    direct_bytes: u64,
    /// A checkpoint was asked for and has not ended.
    checkpointing: bool,
    /// Why there is no journal any more.
    fatal: Option<StorageError>,
}

/// Whether something was published whose journal entries were given up with their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Healing {
    No,
    /// A checkpoint must begin.
    Wanted,
    /// It has begun.
    Begun,
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>, writer: Writer) -> Self {
        Self {
            shared,
            writer,
            items: VecDeque::new(),
            builder: GroupBuilder::default(),
            work: Work::default(),
            dirty: BTreeMap::new(),
            next_dirty: 0,
            sync_by: None,
            healing: Healing::No,
            appended_since_space_check: 0,
            direct_bytes: 0,
            checkpointing: false,
            fatal: None,
        }
    }

    /// Runs until the queue is stopped and empty.
    pub(crate) fn run(mut self) {
        let guard = Abandon(Arc::clone(&self.shared));
        loop {
            let controls_only = self.healing != Healing::No;
            match self.shared.queue.take(&mut self.items, self.sync_by, controls_only) {
                Found::Control(control) => self.control(control),
                Found::Items => {
                    if controls_only {
                        self.give_up_healing();
                    }
                    self.compose();
                    self.commit();
                    self.builder.release();
                }
                Found::Nothing => self.sync_published(),
                Found::Stop => break,
            }
        }
        self.sync_published();
        drop(guard);
    }

    /// The engine stops before what was published is durable again: nothing is acknowledged any more.
    fn give_up_healing(&mut self) {
        let message = "file engine stopped before its journal was whole again";
        self.fatal.get_or_insert_with(|| StorageError::new(ErrorKind::Closed, message));
    }

    /// Writes the group, makes it as durable as it asks, and publishes it or fails it.
    fn commit(&mut self) {
        if self.work.is_empty() {
            return;
        }
        if let Some(fatal) = self.fatal.clone() {
            return self.fail_group(&fatal);
        }
        self.work.gather_runs(self.shared.config.direct_min.get());
        match self.work.write_direct(&self.shared.unsound) {
            Ok(direct) => {
                self.direct_bytes += direct.bytes;
                if direct.met_unsound {
                    // It replaces the segment.
                    self.shared.checkpoints.request();
                }
            }
            // As when a checkpoint can't sync: what was written before may be hit too.
            Err(error) => {
                self.end(error.clone());
                return self.fail_group(&error);
            }
        }
        match self.write_and_sync() {
            Ok(()) => self.publish(),
            Err(WriteFailure::NoFile(error)) => {
                let error = StorageError::io("make journal file", error);
                self.shared.space.note_full(&error);
                self.fail_group(&error);
            }
            Err(WriteFailure::Broken(error)) => {
                let error = StorageError::io("write journal", error);
                // First: until the next file says so, a start could still read the group.
                self.abandon_file(&error);
                self.fail_group(&error);
            }
        }
        self.after_group();
    }

    fn write_and_sync(&mut self) -> Result<(), WriteFailure> {
        self.work.journal_appends(&mut self.builder);
        if !self.builder.is_empty() {
            self.writer.write(&mut self.builder)?;
        }
        self.work.write_journaled();
        let is_late = self.sync_by.is_some_and(|by| by <= Instant::now());
        if self.work.wants_sync || is_late {
            self.sync_journal().map_err(WriteFailure::Broken)?;
        } else if let Some(by) =
            self.work.sync_within.and_then(|within| Instant::now().checked_add(within))
        {
            // A longer interval that is running already makes nobody else wait.
            self.sync_by = Some(self.sync_by.map_or(by, |earlier| earlier.min(by)));
        }
        Ok(())
    }

    /// Syncs what was published without: the interval is over, or the engine stops.
    fn sync_published(&mut self) {
        if self.fatal.is_none()
            && let Err(error) = self.sync_journal()
        {
            self.abandon_file(&StorageError::io("sync journal", error));
        }
        self.sync_by = None;
    }

    /// Makes all groups durable.
    fn sync_journal(&mut self) -> std::io::Result<()> {
        self.writer.sync()?;
        self.sync_by = None;
        // At once: when the next file fails, nothing of these is lost with it.
        self.work.published_unsynced = false;
        Ok(())
    }

    /// Goes on in another file. What was published and not synced stays in memory and in the
    /// segments; a checkpoint makes it durable there before anything else is published.
    fn abandon_file(&mut self, error: &StorageError) {
        tracing::error!(%error, "journal file is given up");
        self.sync_by = None;
        let published = self.work.published_unsynced;
        match self.writer.abandon() {
            Ok(()) if published => {
                self.healing = Healing::Wanted;
                self.shared.checkpoints.request();
            }
            Ok(()) => {}
            Err(WriteFailure::NoFile(error) | WriteFailure::Broken(error)) => {
                self.end(StorageError::io("replace journal file", error));
            }
        }
    }

    /// There is no journal any more, or a segment that only a start can mend: everything is refused
    /// from now on.
    fn end(&mut self, error: StorageError) {
        self.healing = Healing::No;
        if self.fatal.is_some() {
            // The owner was told of the first cause.
            return;
        }
        tracing::error!(%error, "file engine can not go on");
        let answer =
            StorageError::new(ErrorKind::Closed, "file engine failed and must be restarted")
                .caused_by(error.clone());
        self.shared.queue.close(answer.clone());
        self.fatal = Some(answer);
        (self.shared.config.on_fatal)(&error);
    }

    fn after_group(&mut self) {
        let live_bytes = self.writer.live_bytes();
        self.shared.queue.set_live_bytes(live_bytes);
        self.ask_for_checkpoint();
        if self.appended_since_space_check >= self.shared.config.space_check_every.get() {
            self.appended_since_space_check = 0;
            self.shared.space.look(&*self.shared.disk);
        }
    }

    /// Asks for a checkpoint if one is due and none is under way.
    fn ask_for_checkpoint(&mut self) {
        let is_due = self.writer.live_bytes() >= self.shared.config.checkpoint_at.get()
            || self.are_segments_due();
        if is_due && !self.checkpointing {
            self.checkpointing = true;
            self.shared.checkpoints.request();
        }
    }

    /// Whether a checkpoint is due for what the segments hold, not for the journal's length.
    fn are_segments_due(&self) -> bool {
        self.direct_bytes >= self.shared.config.direct_checkpoint_at.get()
            || self.shared.segments.has_many_unsynced()
    }
}

/// Tells whoever waits when the thread ends, even by a panic.
struct Abandon(Arc<Shared>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.queue.abandon(StorageError::new(ErrorKind::Closed, "file engine is stopped"));
        if std::thread::panicking() {
            let message = "commit thread of the file engine panicked";
            (self.0.config.on_fatal)(&StorageError::new(ErrorKind::Closed, message));
        }
    }
}
