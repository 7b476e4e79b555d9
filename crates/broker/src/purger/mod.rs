//! Removes the bytes of deleted topics: the list of pending deletions, worked off in small steps.
//!
//! The list is in the metadata store; what is here is a copy of it, with the turns that
//! [`strandline_partition::deletion`] chooses by. Each step is bounded, may run twice and resumes
//! anywhere: after a crash the list is read again and the work goes on.
//!
//! # Invariants
//! - Nothing is removed before a commit says that removal has begun; from then on there is no way back,
//!   so a topic is brought back whole or not at all.
//! - A deletion's row goes last, when every partition's removal is durably done and no group keeps a
//!   position in the topic.
//! - A deletion that fails is tried for ever, with growing pauses. One that fails or hangs never holds
//!   up the others.
//! - Rows change one at a time, each expecting what was kept before.

mod change;
mod status;
mod step;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::{Timestamp, TopicId};
use strandline_partition::deletion::{Hold, Next, Pace, Reserved, State, Turn, next};
use strandline_storage::{MetaStore, Table};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::cleaner::CleanerParts;
use crate::engines::Engines;
use crate::environment::Environment;
use crate::group::GroupCoordinator;
use crate::metrics::Metrics;
use crate::settings::SettingsSource;
use crate::tasks;
use crate::topic::{DeletionRow, LoadError};

pub use change::{DeletionAction, DeletionError};
pub use status::{DeletionStatus, DeletionSum, DeletionSums, deletion_states};
use step::Left;
pub(crate) use step::stored_bytes;

/// Rows read at a time.
const SCAN_ROWS: usize = 1_000;
/// How often the list is looked at when nothing seems to be due.
const LOOK: Duration = Duration::from_hours(1);

/// What the purger works with.
#[derive(Debug)]
pub(crate) struct PurgerParts {
    pub(crate) meta: Arc<dyn MetaStore>,
    pub(crate) engines: Engines,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) groups: Arc<GroupCoordinator>,
    pub(crate) settings: Arc<SettingsSource>,
    pub(crate) metrics: Arc<Metrics>,
    /// Where steps run: not where connections are served.
    pub(crate) runtime: Handle,
}

impl PurgerParts {
    /// What the purger needs beside what the cleaner works with.
    pub(crate) fn beside(
        cleaner: &CleanerParts,
        meta: &Arc<dyn MetaStore>,
        engines: &Engines,
        groups: &Arc<GroupCoordinator>,
    ) -> Self {
        Self {
            meta: Arc::clone(meta),
            engines: engines.clone(),
            environment: Arc::clone(&cleaner.environment),
            groups: Arc::clone(groups),
            settings: Arc::clone(&cleaner.settings),
            metrics: Arc::clone(&cleaner.metrics),
            runtime: cleaner.runtime.clone(),
        }
    }
}

/// Works off the pending deletions.
#[derive(Debug)]
pub(crate) struct Purger {
    parts: PurgerParts,
    list: Mutex<List>,
    /// One change of rows at a time.
    changing: Semaphore,
    changed: Notify,
}

#[derive(Debug)]
struct List {
    entries: BTreeMap<TopicId, Entry>,
    pace: Pace,
}

/// A pending deletion.
#[derive(Clone, Debug)]
struct Entry {
    row: DeletionRow,
    /// The row's value as it is kept.
    kept: Bytes,
    turn: Turn,
    left: Left,
    last_failure: Option<Failure>,
}

/// How a step failed.
#[derive(Clone, Debug)]
struct Failure {
    at: Timestamp,
    message: String,
}

impl Purger {
    /// Reads the list.
    pub(crate) async fn load(parts: PurgerParts) -> Result<Self, LoadError> {
        let mut entries = BTreeMap::new();
        let mut after = None;
        let (wall, now) = (parts.environment.now(), parts.environment.monotonic());
        loop {
            let page = parts.meta.scan(Table::Deletions, after, SCAN_ROWS).await?;
            for row in &page.rows {
                let deletion = match DeletionRow::decode(&row.key, row.value.clone()) {
                    Ok(deletion) => deletion,
                    // It keeps its bytes, and no topic from being served; reconciliation, which reads the
                    // same row, sets nothing aside meanwhile.
                    Err(error) => {
                        let error =
                            LoadError::Row { table: Table::Deletions, key: row.key.clone(), error };
                        tracing::error!(%error, "a deletion can't be read: it waits for a version that can");
                        continue;
                    }
                };
                let entry = Entry::new(deletion, row.value.clone(), wall, now);
                entries.insert(entry.row.topic_id, entry);
            }
            after = page.rows.last().map(|row| row.key.clone());
            if !page.more {
                return Ok(Self {
                    parts,
                    list: Mutex::new(List { entries, pace: Pace::default() }),
                    changing: Semaphore::new(1),
                    changed: Notify::new(),
                });
            }
        }
    }

    /// Takes a deletion that was just committed.
    pub(crate) fn add(&self, row: DeletionRow) {
        let (wall, now) = (self.parts.environment.now(), self.parts.environment.monotonic());
        let kept = row.encode();
        let entry = Entry::new(row, kept, wall, now);
        self.list.lock().entries.insert(entry.row.topic_id, entry);
        self.changed.notify_one();
    }

    /// How many deletions wait or are under way.
    pub(crate) fn pending_count(&self) -> usize {
        self.list.lock().entries.len()
    }

    /// Works until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.parts.settings.changes();
        while !stop.is_cancelled() {
            let wait = match self.begin_next() {
                Next::Step((id, reserved)) => {
                    let step = Arc::clone(&self).take_step(id, reserved, stop.clone());
                    tasks::spawn(&self.parts.runtime, "purge deleted topic", step);
                    // Others have the thread before the next step begins.
                    tokio::task::yield_now().await;
                    continue;
                }
                Next::Wait(wait) => wait,
                Next::Idle => LOOK,
            };
            tokio::select! {
                () = self.parts.environment.sleep(wait) => {}
                () = self.changed.notified() => {}
                Ok(()) = changes.changed() => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Chooses the next step and begins it.
    fn begin_next(&self) -> Next<(TopicId, Reserved)> {
        let now = self.parts.environment.monotonic();
        let config = self.parts.settings.broker();
        let mut list = self.list.lock();
        let List { entries, pace } = &mut *list;
        pace.set_rate(config.deletion_max_bytes_per_sec);
        let turns = entries.iter().map(|(id, entry)| (*id, entry.turn));
        match next(now, turns, Hold::paused_if(config.deletion_paused), pace) {
            Next::Step(id) => {
                let entry = entries.get_mut(&id).expect("it was just chosen");
                entry.turn.begin_step(now);
                Next::Step((id, pace.reserve(now)))
            }
            Next::Wait(wait) => Next::Wait(wait),
            Next::Idle => Next::Idle,
        }
    }

    fn entry(&self, id: TopicId) -> Option<Entry> {
        self.list.lock().entries.get(&id).cloned()
    }

    /// Changes what is known here of a deletion, if it is still pending.
    fn update(&self, id: TopicId, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.list.lock().entries.get_mut(&id) {
            change(entry);
        }
    }
}

impl Entry {
    /// An entry whose grace, and not more than that, is still to come.
    fn new(row: DeletionRow, kept: Bytes, wall: Timestamp, now: Duration) -> Self {
        let grace = millis(row.not_before.millis_since(row.deleted_at));
        let left = millis(row.not_before.millis_since(wall)).min(grace);
        let wait = if row.has_begun { Duration::ZERO } else { left };
        let turn = Turn::new(now + wait, row.has_begun, Hold::paused_if(row.is_paused));
        let left = Left::all(row.topic.partition_count);
        Self { row, kept, turn, left, last_failure: None }
    }

    fn state(&self, now: Duration, all: Hold) -> State {
        self.turn.state(now, all)
    }
}

/// None of what lies in the past.
fn millis(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}
