//! Compaction, carried out: every so often each log is planned by
//! [`strandline_partition::compaction`], and those that are due are rewritten, dirtiest first.
//!
//! # Invariants
//! - A log that is slow or fails holds up none of the others: it gives its turn back after
//!   [`PATIENCE`] without progress, and after a failure, or a panic, it waits, longer each time.
//! - The maps of keys of all passes together stay within `log.cleaner.dedupe.buffer.size`.
//! - What is rewritten is replaced only after every byte of it was seen and checked.
//!
//! See docs/adr/0018-compaction.md.

mod group;
mod memory;
mod pace;
mod pass;
mod reading;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use strandline_model::config::BrokerConfig;
use strandline_model::{PartitionId, Timestamp};
use strandline_partition::compaction::{LogView, Plan, Policy, plan};
use strandline_partition::retention::Segment;
use strandline_storage::{ErrorKind, StorageError, Stored};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Cleaner;
use super::log::segment;
use crate::partition::PartitionSlot;
use crate::tasks;
use crate::topic::Topic;
use memory::Memory;
use pace::Pace;
use pass::{Ended, Stopped};

/// How long a pass keeps its turn without getting on.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a log is left alone after a failure: first so long, then twice as long, and so on.
const FAILURE_PAUSE: Duration = Duration::from_secs(15);
/// Failures in a row that lengthen the pause.
const FAILURES_MAX: u32 = 8;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Compactor {
    cleaner: Arc<Cleaner>,
    /// Logs that are being compacted.
    busy: Mutex<HashSet<PartitionId>>,
    /// Logs that are left alone for a while.
    waits: Mutex<HashMap<PartitionId, Wait>>,
    /// Passes that are under way.
    turns: watch::Sender<usize>,
    memory: Arc<Memory>,
    pace: Pace,
    /// When a pass last ended, in milliseconds; 0: not known.
    last_pass_ms: AtomicI64,
}

/// Why a log is left alone, and until when.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// By the clock that never jumps.
    until: Duration,
    /// Failures in a row.
    failures: u32,
}

/// A pass that is under way: one of so many.
struct Turn(watch::Sender<usize>);

impl Turn {
    fn take(taken: &watch::Sender<usize>) -> Self {
        taken.send_modify(|taken| *taken += 1);
        Self(taken.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.send_modify(|taken| *taken -= 1);
    }
}

/// A log that is due.
pub(super) struct Candidate {
    topic: Arc<Topic>,
    slot: Arc<PartitionSlot>,
    plan: Plan,
}

/// How compaction stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompactionStatus {
    /// The dirty part of the dirtiest log, from 0 to 1.
    pub max_dirty_ratio: f64,
    /// Logs whose last pass failed: they are tried again, later each time.
    pub failing_partitions: usize,
    /// When a pass last came to its end.
    pub last_pass: Option<Timestamp>,
}

impl Compactor {
    pub(crate) fn new(cleaner: Arc<Cleaner>) -> Self {
        Self {
            cleaner,
            busy: Mutex::default(),
            waits: Mutex::default(),
            turns: watch::Sender::new(0),
            memory: Arc::default(),
            pace: Pace::default(),
            last_pass_ms: AtomicI64::new(0),
        }
    }

    /// Works until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.cleaner.parts.settings.changes();
        let mut turns = self.turns.subscribe();
        loop {
            let pause = Duration::from_millis(self.config().log_cleaner_backoff_ms.max(1));
            tokio::select! {
                () = self.cleaner.parts.environment.sleep(pause) => {}
                Ok(()) = turns.changed() => {}
                Ok(()) = changes.changed() => {}
                () = stop.cancelled() => return,
            }
            for candidate in self.due() {
                self.begin(candidate, &stop);
            }
            // That turns were taken just now is no news.
            turns.borrow_and_update();
        }
    }

    /// Compacts what is due now, whenever it was looked at last, until nothing is. For tests.
    pub(crate) async fn compact_all(self: &Arc<Self>, stop: &CancellationToken) {
        let mut turns = self.turns.subscribe();
        while !stop.is_cancelled() {
            self.waits.lock().retain(|_, wait| wait.failures > 0);
            for candidate in self.due() {
                self.begin(candidate, stop);
            }
            if *turns.borrow_and_update() == 0 || turns.changed().await.is_err() {
                return;
            }
        }
    }

    /// How compaction stands: looks at every log.
    pub(crate) fn status(&self) -> CompactionStatus {
        let now = self.cleaner.now();
        let registry = &self.cleaner.parts.registry;
        let plans = registry.all().into_iter().flat_map(|topic| {
            let slots = topic.partitions().into_iter();
            slots.filter_map(|slot| self.plan_or_note(&topic, &slot, now)).collect::<Vec<_>>()
        });
        let last_pass_ms = self.last_pass_ms.load(Ordering::Relaxed);
        CompactionStatus {
            max_dirty_ratio: plans.map(|plan| plan.dirty_ratio()).fold(0.0, f64::max),
            failing_partitions: self.waits.lock().values().filter(|one| one.failures > 0).count(),
            last_pass: (last_pass_ms > 0).then(|| Timestamp::from_millis(last_pass_ms)),
        }
    }

    fn config(&self) -> Arc<BrokerConfig> {
        self.cleaner.parts.settings.broker()
    }

    /// The logs to begin with now, as many as there are turns, most urgent first.
    fn due(&self) -> Vec<Candidate> {
        let config = self.config();
        let threads = usize::try_from(config.log_cleaner_threads).unwrap_or(usize::MAX);
        let turns = threads.saturating_sub(*self.turns.borrow());
        if turns == 0 || !config.log_cleaner_enable {
            return Vec::new();
        }
        let (now, monotonic) = (self.cleaner.now(), self.cleaner.parts.environment.monotonic());
        let registry = &self.cleaner.parts.registry;
        self.waits.lock().retain(|id, _| registry.by_id(id.topic_id).is_some());
        let mut candidates = Vec::new();
        for topic in registry.all().into_iter().filter(|topic| topic.settings().compaction.compacts)
        {
            for slot in topic.partitions() {
                let waits = self.waits.lock().get(&slot.id()).is_some_and(|w| w.until > monotonic);
                if waits || self.busy.lock().contains(&slot.id()) {
                    continue;
                }
                if let Some(plan) = self.plan_or_note(&topic, &slot, now)
                    && (plan.due.is_some() || plan.roll)
                {
                    let topic = Arc::clone(&topic);
                    candidates.push(Candidate { topic, slot, plan });
                }
            }
        }
        candidates.sort_by(|a, b| {
            let ((late_a, ratio_a), (late_b, ratio_b)) = (a.plan.urgency(), b.plan.urgency());
            late_b.cmp(&late_a).then(ratio_b.total_cmp(&ratio_a))
        });
        candidates.truncate(turns);
        candidates
    }

    /// What a pass over a log of a compacted topic would do.
    fn plan(&self, topic: &Topic, slot: &PartitionSlot, now: Timestamp) -> Option<Plan> {
        let policy = topic.settings().compaction;
        let stored = policy.compacts.then(|| self.cleaner.stored(topic, slot))??;
        Some(planned(&stored, &policy, now))
    }

    /// As [`plan`](Self::plan). One that panics is a failure of its log: it keeps none of the others.
    fn plan_or_note(&self, topic: &Topic, slot: &PartitionSlot, now: Timestamp) -> Option<Plan> {
        catch_unwind(AssertUnwindSafe(|| self.plan(topic, slot, now))).unwrap_or_else(|_| {
            self.note(topic, slot, Err(panicked()));
            None
        })
    }

    /// Begins a pass, unless there is one.
    fn begin(self: &Arc<Self>, candidate: Candidate, stop: &CancellationToken) {
        let id = candidate.slot.id();
        if !self.busy.lock().insert(id) {
            return;
        }
        let turn = Turn::take(&self.turns);
        let (compactor, stop) = (Arc::clone(self), stop.clone());
        tasks::spawn(&self.cleaner.parts.runtime, "compact partition", async move {
            // Until it is noted how it ended: whoever looks before would begin it again at once.
            let _busy = Busy { compactor: Arc::clone(&compactor), id };
            let Candidate { topic, slot, .. } = candidate;
            let (this, of, log) = (Arc::clone(&compactor), Arc::clone(&topic), Arc::clone(&slot));
            let pass = async move { this.compact(&of, &log, &stop, turn).await };
            let runtime = &compactor.cleaner.parts.runtime;
            if !tasks::supervise(runtime, "pass of compaction", pass).await {
                compactor.note(&topic, &slot, Err(panicked()));
            }
        });
    }

    async fn compact(
        &self,
        topic: &Topic,
        slot: &Arc<PartitionSlot>,
        stop: &CancellationToken,
        turn: Turn,
    ) {
        let progress = AtomicU64::new(0);
        let mut turn = Some(turn);
        let mut pass = std::pin::pin!(self.pass(topic, slot, stop, &progress));
        let mut seen = 0;
        let ended = loop {
            tokio::select! {
                ended = &mut pass => break ended,
                () = self.cleaner.parts.environment.sleep(PATIENCE), if turn.is_some() => {
                    let now = progress.load(Ordering::Relaxed);
                    if now == seen {
                        let (name, id) = (topic.name(), slot.id());
                        tracing::warn!(topic = %name, partition = %id, "compaction is slow here");
                        turn = None;
                    }
                    seen = now;
                }
            }
        };
        self.note(topic, slot, ended);
        drop(turn);
    }

    /// Decides when a log is looked at again.
    fn note(&self, topic: &Topic, slot: &PartitionSlot, ended: Result<Ended, Stopped>) {
        let (name, id) = (topic.name(), slot.id());
        let parts = &self.cleaner.parts;
        let monotonic = parts.environment.monotonic();
        let pause = Duration::from_millis(self.config().log_cleaner_backoff_ms);
        let mut waits = self.waits.lock();
        let failures = waits.get(&id).map_or(0, |wait| wait.failures);
        match ended {
            Ok(Ended::More) => {
                waits.remove(&id);
            }
            Ok(Ended::Done) => {
                waits.insert(id, Wait { until: monotonic + pause, failures: 0 });
            }
            Err(Stopped::Interrupted(why)) => {
                tracing::debug!(topic = %name, partition = %id, why, "compaction begins again later");
                waits.insert(id, Wait { until: monotonic + pause, failures });
            }
            Err(Stopped::Failed(error)) => {
                let failures = (failures + 1).min(FAILURES_MAX);
                let pause = FAILURE_PAUSE * 2_u32.pow(failures - 1);
                waits.insert(id, Wait { until: monotonic + pause, failures });
                parts.metrics.compaction_failures.add(1);
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(
                    topic = %name, partition = %id, %error, cause, pause_s = pause.as_secs(),
                    "compaction failed, will try again"
                );
                return;
            }
        }
        let ended = parts.environment.now();
        self.last_pass_ms.store(ended.as_millis(), Ordering::Relaxed);
    }
}

fn panicked() -> Stopped {
    Stopped::Failed(StorageError::new(ErrorKind::Unavailable, "compaction panicked"))
}

/// A log that is being compacted.
struct Busy {
    compactor: Arc<Compactor>,
    id: PartitionId,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.compactor.busy.lock().remove(&self.id);
    }
}

/// What a pass over what is stored would do.
fn planned(stored: &Stored, policy: &Policy, now: Timestamp) -> Plan {
    let segments: Vec<Segment> = stored.chunks.iter().map(segment).collect();
    let log = LogView {
        segments: &segments,
        log_start: stored.bounds.log_start,
        // No transaction is open: they are not served.
        last_stable_offset: stored.bounds.durable_end,
        clean_end: stored.compacted.clean_end,
        delete_horizon: stored.compacted.delete_horizon,
    };
    plan(&log, policy, now)
}
