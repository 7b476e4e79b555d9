//! What becomes of what a look finds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use strandline_model::{ByteCount, PartitionId};
use strandline_partition::deletion::{Pace, STEP, logs_of_step};
use strandline_partition::reconcile::{Missing, purge_at};
use strandline_storage::{ErrorKind, Removal, StorageError};
use tokio_util::sync::CancellationToken;

use super::{
    EngineReconciliation, Look, MissingPartition, Reconciler, Stranger, StrangerState, Subject,
    is_claimed,
};

/// Logs that are set aside or brought back at a time: an engine makes them durable together.
const TOGETHER: usize = 64;
/// After a step others have the thread for so long at least.
const REST_MIN: Duration = Duration::from_millis(1);
/// Logs that are told of one by one; of more, their number is.
const TOLD_MAX: usize = 32;

impl Reconciler {
    /// Partitions that have lost something are served to nobody; those that have it again are.
    pub(super) fn withhold(&self, subject: Subject<'_>, look: &Look) {
        let found = &look.comparison.missing;
        let now: BTreeMap<_, _> = found.iter().map(|one| (one.id, one.what.clone())).collect();
        let before = {
            let mut missing = self.missing.lock();
            let is_ours = |id: &PartitionId| self.is_kept_by(subject.engine, *id);
            let (ours, others) =
                std::mem::take(&mut *missing).into_iter().partition(|(id, _)| is_ours(id));
            *missing = others;
            missing.extend(now.clone());
            let ours: BTreeMap<PartitionId, String> = ours;
            ours
        };
        let new = found.iter().filter(|one| !before.contains_key(&one.id));
        tell(new.clone().count(), new, |Missing { id, what }| {
            let topic = look.metadata.name_of(id.topic_id);
            tracing::error!(topic, partition = %id, what, "partition has lost data and is served to nobody");
        });
        for Missing { id, what } in found {
            if let Some(slot) = self.slot(*id) {
                let message = format!("partition has lost data. partition=`{id}`, what=`{what}`");
                slot.withhold(StorageError::new(ErrorKind::Missing, message));
            }
        }
        let unreadable = &look.comparison.unreadable;
        for (id, what) in before.into_iter().filter(|(id, _)| !now.contains_key(id)) {
            if unreadable.iter().any(|one| one.id == id) {
                // Nobody knows whether it has it again.
                self.missing.lock().insert(id, what);
            } else if let Some(slot) = self.slot(id) {
                slot.serve_again();
                tracing::info!(partition = %id, "partition has its data again");
            }
        }
    }

    /// Tells of partitions of which a part is gone, once.
    pub(super) fn tell_damaged(&self, subject: Subject<'_>, look: &Look) {
        let found = &look.comparison.damaged;
        let now: BTreeSet<_> = found.iter().map(|one| one.id).collect();
        let before: BTreeSet<_> = {
            let mut damaged = self.damaged.lock();
            let (ours, others): (BTreeSet<_>, BTreeSet<_>) = std::mem::take(&mut *damaged)
                .into_iter()
                .partition(|id| self.is_kept_by(subject.engine, *id));
            *damaged = others.union(&now).copied().collect();
            ours
        };
        let new = found.iter().filter(|one| !before.contains(&one.id));
        tell(new.clone().count(), new, |Missing { id, what }| {
            let topic = look.metadata.name_of(id.topic_id);
            tracing::error!(topic, partition = %id, what, "partition is damaged: a part of it is gone, the rest is served");
        });
        for id in before.difference(&now) {
            let is_whole = look.comparison.known.contains(id);
            if is_whole {
                tracing::info!(partition = %id, "partition has its data again");
            }
        }
    }

    /// Tells of what is none of the engine's own, once.
    pub(super) fn tell_foreign(&self, subject: Subject<'_>, found: &[String]) {
        let engine = subject.engine;
        let before = self.foreign.lock().insert(engine.to_owned(), found.to_vec());
        let before = before.unwrap_or_default();
        let new = found.iter().filter(|path| !before.contains(path));
        tell(new.clone().count(), new, |path| {
            tracing::warn!(engine, path, "this is no part of any log: it is left alone");
        });
    }

    fn is_kept_by(&self, engine: &str, id: PartitionId) -> bool {
        let topic = self.parts.registry.by_id(id.topic_id);
        topic.is_none_or(|topic| topic.engine() == engine)
    }

    fn slot(&self, id: PartitionId) -> Option<std::sync::Arc<crate::partition::PartitionSlot>> {
        let topic = self.parts.registry.by_id(id.topic_id)?;
        topic.partition(i32::try_from(id.index.get()).ok()?)
    }

    /// Sets logs aside that no topic knows.
    pub(super) async fn set_aside(&self, subject: Subject<'_>, unknown: &[PartitionId]) {
        // By the latest of all clocks, so that the time till the purge is never cut short: what is believed
        // after a start may be as old as the newest append.
        let now = self.parts.cleaner.append_time();
        let mut done = Vec::new();
        for some in unknown.chunks(TOGETHER) {
            let each = some.iter().map(async |id| (*id, subject.store.quarantine(*id, now).await));
            for (id, quarantined) in join_all(each).await {
                match quarantined {
                    Ok(()) => done.push(id),
                    // Its removal was begun, and nobody else finishes it.
                    Err(error) if error.kind() == ErrorKind::Invalid => {
                        self.remove_step(subject, &[id], STEP).await;
                    }
                    Err(error) => self.failed(subject, id, &error),
                }
            }
        }
        tell(done.len(), done.iter(), |id| {
            tracing::warn!(engine = subject.engine, log = %id, "no topic knows this log: it is in quarantine");
        });
    }

    /// Brings logs back whose topic is there again.
    pub(super) async fn bring_back(&self, subject: Subject<'_>, returned: &[PartitionId]) {
        for some in returned.chunks(TOGETHER) {
            let each = some.iter().map(async |id| (*id, subject.store.release(*id).await));
            for (id, released) in join_all(each).await {
                match released {
                    Ok(()) => {
                        tracing::warn!(log = %id, "a topic knows this log again: it is out of quarantine");
                    }
                    Err(error) => self.failed(subject, id, &error),
                }
            }
        }
    }

    /// Removes what has been in quarantine for long enough, at the pace of deletions.
    ///
    /// It may take hours. What a topic claims meanwhile stays as it is, for the next pass.
    pub(super) async fn purge(&self, subject: Subject<'_>, look: &Look, stop: &CancellationToken) {
        let config = self.parts.settings.broker();
        let now = self.parts.cleaner.now();
        let unknown: BTreeSet<_> = look.comparison.quarantined.iter().copied().collect();
        let due = look.quarantined.iter().filter(|one| {
            let at = purge_at(one.since, config.quarantine_retention_ms);
            unknown.contains(&one.id) && at.is_some_and(|at| at <= now)
        });
        let mut due: Vec<_> = due.map(|one| one.id).collect();
        let mut pace = Pace::default();
        while !due.is_empty()
            && !stop.is_cancelled()
            && !self.parts.settings.broker().deletion_paused
        {
            pace.set_rate(self.parts.settings.broker().deletion_max_bytes_per_sec);
            let environment = &self.parts.environment;
            let begun = environment.monotonic();
            let reserved = pace.reserve(begun);
            let count = due.len().min(logs_of_step(reserved.budget));
            let some: Vec<_> = due.drain(..count).collect();
            let some = self.still_unknown(subject, some).await;
            let left = self.remove_step(subject, &some, reserved.budget).await;
            due.extend(left);
            let now = environment.monotonic();
            // How much was freed is not told: the whole budget counts.
            pace.settle(now, reserved, reserved.budget, now.saturating_sub(begun));
            environment.sleep(pace.free_at().saturating_sub(now).max(REST_MIN)).await;
        }
    }

    /// Those that still no topic claims, by a look at their rows now.
    async fn still_unknown(
        &self,
        subject: Subject<'_>,
        some: Vec<PartitionId>,
    ) -> Vec<PartitionId> {
        let mut unknown = Vec::with_capacity(some.len());
        for id in some {
            match is_claimed(self.parts.meta.as_ref(), subject.engine, id).await {
                Ok(false) => unknown.push(id),
                Ok(true) => {
                    tracing::warn!(log = %id, "a topic knows this log again: it is not removed");
                }
                Err(error) => {
                    self.parts.metrics.reconciliation_failures.add(1);
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    let engine = subject.engine;
                    tracing::warn!(engine, log = %id, %error, cause, "nobody knows whether a topic has this log: it stays");
                }
            }
        }
        unknown
    }

    /// One step of the removal of some logs; those of which something is left. One that fails waits for
    /// the next pass.
    async fn remove_step(
        &self,
        subject: Subject<'_>,
        some: &[PartitionId],
        budget: ByteCount,
    ) -> Vec<PartitionId> {
        let budget = ByteCount::new(budget.get() / some.len().max(1) as u64);
        let each = some.iter().map(async |id| (*id, subject.store.remove_some(*id, budget).await));
        let mut left = Vec::new();
        for (id, removal) in join_all(each).await {
            match removal {
                Ok(Removal::Done) => {
                    tracing::info!(engine = subject.engine, log = %id, "log that no topic knew is removed");
                }
                Ok(Removal::Remaining(_)) => left.push(id),
                Err(error) => self.failed(subject, id, &error),
            }
        }
        left
    }

    fn failed(&self, subject: Subject<'_>, id: PartitionId, error: &StorageError) {
        self.parts.metrics.reconciliation_failures.add(1);
        let cause = std::error::Error::source(error).map(ToString::to_string);
        let engine = subject.engine;
        tracing::warn!(engine, log = %id, %error, cause, "log that no topic knows stays as it is for now");
    }

    /// Keeps what was found, for whoever asks.
    pub(super) fn publish(
        &self,
        subject: Subject<'_>,
        look: &Look,
        unknown: &[PartitionId],
        foreign: Vec<String>,
    ) {
        let Look { comparison, quarantined, metadata } = look;
        let kept_ms = self.parts.settings.broker().quarantine_retention_ms;
        let aside = quarantined.iter().filter(|one| comparison.quarantined.contains(&one.id));
        let aside = aside.map(|one| Stranger {
            id: one.id,
            state: StrangerState::Quarantined {
                since: one.since,
                bytes: one.bytes,
                purge_at: purge_at(one.since, kept_ms),
            },
        });
        let left = comparison.unknown.iter().filter(|id| unknown.contains(id));
        let left = left.map(|id| Stranger { id: *id, state: StrangerState::Left });
        let told = |one: &Missing| MissingPartition {
            id: one.id,
            topic: metadata.name_of(one.id.topic_id).unwrap_or_default().to_owned(),
            what: one.what.clone(),
        };
        tell(comparison.unreadable.len(), comparison.unreadable.iter(), |Missing { id, what }| {
            let topic = metadata.name_of(id.topic_id);
            tracing::warn!(topic, partition = %id, what, "partition can't be looked at: nobody knows whether it is whole");
        });
        let found = EngineReconciliation {
            engine: subject.engine.to_owned(),
            checked_at: self.parts.environment.now(),
            known_count: comparison.known.len(),
            pending_count: comparison.pending.len(),
            foreign,
            strangers: aside.chain(left).collect(),
            missing: comparison.missing.iter().map(told).collect(),
            damaged: comparison.damaged.iter().map(told).collect(),
            unreadable: comparison.unreadable.iter().map(told).collect(),
        };
        self.found.lock().insert(subject.engine.to_owned(), found);
    }
}

/// Tells of each, up to a number; of the others, how many they are.
fn tell<T>(count: usize, each: impl Iterator<Item = T>, tell: impl Fn(T)) {
    each.take(TOLD_MAX).for_each(tell);
    if count > TOLD_MAX {
        tracing::warn!(count = count - TOLD_MAX, "there are more of the same kind");
    }
}
