//! Retention, carried out: every so often each partition is judged by
//! [`strandline_partition::retention`], and what it says goes.
//!
//! # Invariants
//! - A partition that is slow or fails holds up none of the others, nor the next pass: it gives its
//!   turn back after [`PATIENCE`], and is left alone until it has come to its end.
//! - A log that is not open is opened only when something of it is to go.
//! - Settings are looked at anew in every pass, for every segment, and between the steps of a large one.
//! - A panic costs its partition its turn, no other partition and no later pass.

mod clock;
mod compaction;
mod forecast;
mod hurry;
mod log;
mod remains;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use strandline_model::{PartitionId, Timestamp};
use strandline_storage::{MetaStore, Stored};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::metrics::Metrics;
use crate::partition::PartitionSlot;
use crate::partitions::Partitions;
use crate::settings::SettingsSource;
use crate::tasks;
use crate::topic::{Registry, Topic};

use clock::Clock;
use hurry::Appended;
use log::Seen;

pub use compaction::CompactionStatus;
pub(crate) use compaction::Compactor;
pub use forecast::{PartitionRetention, SegmentRetention, TopicRetention, retention_reasons};
pub(crate) use remains::Remains;

/// Partitions that are cleaned at a time. An engine that makes trims durable together does so for
/// that many at once.
const TURNS: u32 = 16;
/// How long a partition keeps its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pass comes no later than this after the start, so that a broker that is often started
/// anew keeps its limits too.
const FIRST_PASS: Duration = Duration::from_secs(30);
/// Between two looks at how much was appended.
const HURRY: Duration = Duration::from_secs(1);
/// Partitions that are looked at before others may have the thread.
const LOOKS: usize = 32;

/// What the cleaner works with.
#[derive(Debug)]
pub(crate) struct CleanerParts {
    pub(crate) registry: Arc<Registry>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) settings: Arc<SettingsSource>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) meta: Arc<dyn MetaStore>,
    pub(crate) metrics: Arc<Metrics>,
    /// Where passes and what they do run: not where connections are served.
    pub(crate) runtime: Handle,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Cleaner {
    parts: CleanerParts,
    clock: Clock,
    /// Logs whose times lay in the future when they were seen first.
    sightings: Mutex<HashMap<PartitionId, Seen>>,
    /// What had been appended at the last look.
    appended: Appended,
    /// Partitions that are being cleaned.
    busy: Mutex<HashSet<PartitionId>>,
    turns: Arc<Semaphore>,
    /// When the last pass ended and the next is due, in milliseconds; 0: not known.
    last_pass_ms: AtomicI64,
    next_pass_ms: AtomicI64,
}

impl Cleaner {
    pub(crate) fn new(parts: CleanerParts) -> Self {
        let clock = Clock::new(Arc::clone(&parts.environment), Arc::clone(&parts.meta));
        Self {
            parts,
            clock,
            sightings: Mutex::default(),
            appended: Appended::default(),
            busy: Mutex::default(),
            turns: Arc::new(Semaphore::new(TURNS as usize)),
            last_pass_ms: AtomicI64::new(0),
            next_pass_ms: AtomicI64::new(0),
        }
    }

    /// What it works with.
    pub(crate) const fn parts(&self) -> &CleanerParts {
        &self.parts
    }

    /// The time that retention goes by.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time that appends are dated by.
    pub(crate) fn append_time(&self) -> Timestamp {
        self.clock.append_time()
    }

    /// When the last pass ended, if there was one.
    pub(crate) fn last_pass(&self) -> Option<Timestamp> {
        known(&self.last_pass_ms)
    }

    /// When the next pass is due.
    pub(crate) fn next_pass(&self) -> Option<Timestamp> {
        known(&self.next_pass_ms)
    }

    /// The time from the end of a pass to the next one.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_millis(self.parts.settings.broker().log_retention_check_interval_ms)
    }

    /// Works until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.parts.settings.changes();
        let mut at_most = FIRST_PASS;
        while self.wait(at_most, &mut changes, &stop).await {
            let (cleaner, stop) = (Arc::clone(&self), stop.clone());
            let pass = async move { cleaner.pass(&stop).await };
            if !tasks::supervise(&self.parts.runtime, "pass of retention", pass).await {
                self.parts.metrics.retention_failures.add(1);
            }
            at_most = Duration::MAX;
        }
    }

    /// Learns what the clocks are worth. Before the broker takes appends, which are dated by them.
    pub(crate) async fn start(&self) {
        let mut newest = None;
        for topic in self.parts.registry.all() {
            for slot in topic.partitions() {
                let stored = self.stored(&topic, &slot);
                newest = newest.max(stored.as_ref().and_then(newest_append));
            }
        }
        self.clock.start(newest).await;
    }

    /// Waits for the next pass, whose time may change meanwhile; topics that can't wait are looked at.
    /// False: the broker stops.
    async fn wait(
        self: &Arc<Self>,
        at_most: Duration,
        changes: &mut watch::Receiver<u64>,
        stop: &CancellationToken,
    ) -> bool {
        let environment = &self.parts.environment;
        let (begun, mut slept) = (environment.monotonic(), Duration::ZERO);
        loop {
            let waited = environment.monotonic().saturating_sub(begun).max(slept);
            let left = self.interval().min(at_most).saturating_sub(waited);
            let left_ms = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
            let next_pass = environment.now().plus_millis(left_ms);
            self.next_pass_ms.store(next_pass.as_millis(), Ordering::Relaxed);
            let nap = left.min(HURRY);
            tokio::select! {
                () = environment.sleep(nap) => {
                    if nap == left {
                        return true;
                    }
                    slept += nap;
                    let (cleaner, stop) = (Arc::clone(self), stop.clone());
                    let look = async move { cleaner.hurry(&stop).await };
                    if !tasks::supervise(&self.parts.runtime, "look at retention", look).await {
                        self.parts.metrics.retention_failures.add(1);
                    }
                }
                Ok(()) = changes.changed() => {}
                () = stop.cancelled() => return false,
            }
        }
    }

    /// Looks at the topics to which much was appended since they were looked at.
    async fn hurry(self: &Arc<Self>, stop: &CancellationToken) {
        for topic in self.parts.registry.all() {
            if self.appended.is_much(&topic) {
                self.look_at(&topic, self.now(), stop).await;
            }
        }
    }

    /// Looks at every partition once and cleans those of which something is to go. Ends when all are
    /// done but those that have used up their turn.
    pub(crate) async fn pass(self: &Arc<Self>, stop: &CancellationToken) {
        let now = self.now();
        self.clock.keep().await;
        let registry = &self.parts.registry;
        self.sightings.lock().retain(|id, _| registry.by_id(id.topic_id).is_some());
        self.appended.retain(|id| registry.by_id(id).is_some());
        for (index, topic) in registry.all().iter().enumerate() {
            if index % LOOKS == 0 {
                tokio::task::yield_now().await;
            }
            self.look_at(topic, now, stop).await;
            if stop.is_cancelled() {
                return;
            }
        }
        let all = self.turns.acquire_many(TURNS).await;
        drop(all.expect("the semaphore is never closed"));
        let ended = self.parts.environment.now();
        self.last_pass_ms.store(ended.as_millis(), Ordering::Relaxed);
    }

    /// Looks at the partitions of a topic and begins to clean those of which something is to go.
    async fn look_at(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        now: Timestamp,
        stop: &CancellationToken,
    ) {
        self.appended.look_at(topic);
        for (index, slot) in topic.partitions().into_iter().enumerate() {
            if (index + 1) % LOOKS == 0 {
                tokio::task::yield_now().await;
            }
            // What panics here would otherwise keep those behind it for ever.
            let is_due = catch_unwind(AssertUnwindSafe(|| self.is_due(topic, &slot, now)));
            match is_due {
                Ok(true) => self.begin(topic, slot).await,
                Ok(false) => {}
                Err(_) => {
                    self.parts.metrics.retention_failures.add(1);
                    let id = slot.id();
                    tracing::error!(topic = %topic.name(), partition = %id, "retention panicked");
                }
            }
            if stop.is_cancelled() {
                return;
            }
        }
    }

    /// Cleans a partition as soon as there is a turn, unless it is being cleaned still.
    async fn begin(self: &Arc<Self>, topic: &Arc<Topic>, slot: Arc<PartitionSlot>) {
        let Some(busy) = Busy::begin(self, slot.id()) else { return };
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.expect("the semaphore is never closed");
        let (cleaner, topic) = (Arc::clone(self), Arc::clone(topic));
        tasks::spawn(&self.parts.runtime, "clean partition", async move {
            let _busy = busy;
            let patience = cleaner.parts.environment.sleep(PATIENCE);
            let mut cleaned = std::pin::pin!(cleaner.clean(&topic, &slot));
            tokio::select! {
                () = &mut cleaned => return,
                () = patience => {
                    let id = slot.id();
                    tracing::warn!(topic = %topic.name(), partition = %id, "retention is slow here");
                    drop(turn);
                }
            }
            cleaned.await;
        });
    }
}

/// A partition that is being cleaned.
struct Busy {
    cleaner: Arc<Cleaner>,
    id: PartitionId,
}

impl Busy {
    /// `None` when it is already.
    fn begin(cleaner: &Arc<Cleaner>, id: PartitionId) -> Option<Self> {
        let is_first = cleaner.busy.lock().insert(id);
        is_first.then(|| Self { cleaner: Arc::clone(cleaner), id })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.cleaner.busy.lock().remove(&self.id);
    }
}

/// When something was appended to it last.
fn newest_append(stored: &Stored) -> Option<Timestamp> {
    stored.chunks.iter().map(|chunk| chunk.last_appended_at).max()
}

fn known(millis: &AtomicI64) -> Option<Timestamp> {
    let millis = millis.load(Ordering::Relaxed);
    (millis > 0).then(|| Timestamp::from_millis(millis))
}
