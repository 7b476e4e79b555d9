//! Compares what the engines hold with what metadata says, both ways, after the start and every
//! `reconciliation.interval.ms`, and sees to what it finds.
//!
//! [`strandline_partition::reconcile`] says which log is what. Here a log that no topic knows is set
//! aside and, after `quarantine.retention.ms`, removed; one whose topic is there again is brought back;
//! and a partition that has lost something is served to nobody until it has it again.
//!
//! # Invariants
//! - A log is set aside only when two looks, some time apart, agree that no topic knows it.
//! - Before each step of a removal the rows are looked at again: what a topic claims meanwhile stays.
//! - A log that can't be looked at hides no other: it is told of, and served or not as it was.
//! - Nothing is done on the strength of rows that can't be read.
//! - What fails is told, left as it is, and tried again in the next pass; one engine never holds up the
//!   others for longer than its own work.

mod act;
mod look;
mod metadata;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strandline_model::PartitionId;
use strandline_partition::reconcile::confirmed;
use strandline_storage::{LogStore, MetaStore};
use tokio_util::sync::CancellationToken;

use crate::cleaner::Cleaner;
use crate::engines::{Engines, Strangers};
use crate::environment::Environment;
use crate::fetch::ReadFailures;
use crate::metrics::Metrics;
use crate::settings::SettingsSource;
use crate::topic::{LoadError, Registry};

pub use look::Look;
use metadata::is_claimed;
pub use metadata::{Metadata, has_metadata};
pub use status::{EngineReconciliation, MissingPartition, Stranger, StrangerState};

/// How long a log must be unknown before it is set aside: far longer than the moment in which a topic
/// that is brought back from its deletion stands in neither of the two tables that are read.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(2);

/// What reconciliation works with.
#[derive(Debug)]
pub(crate) struct ReconcilerParts {
    pub(crate) meta: Arc<dyn MetaStore>,
    pub(crate) engines: Engines,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Arc<SettingsSource>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) metrics: Arc<Metrics>,
    /// What readers met.
    pub(crate) read_failures: Arc<ReadFailures>,
    /// Knows the time that may be believed.
    pub(crate) cleaner: Arc<Cleaner>,
}

impl ReconcilerParts {
    /// What reconciliation needs beside what the cleaner works with.
    pub(crate) fn beside(cleaner: &Arc<Cleaner>, engines: &Engines) -> Self {
        let parts = cleaner.parts();
        Self {
            meta: Arc::clone(&parts.meta),
            engines: engines.clone(),
            registry: Arc::clone(&parts.registry),
            settings: Arc::clone(&parts.settings),
            environment: Arc::clone(&parts.environment),
            metrics: Arc::clone(&parts.metrics),
            read_failures: Arc::clone(parts.partitions.read_failures()),
            cleaner: Arc::clone(cleaner),
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Reconciler {
    parts: ReconcilerParts,
    /// By engine.
    found: Mutex<BTreeMap<String, EngineReconciliation>>,
    /// Partitions that are served to nobody, and what they have lost.
    missing: Mutex<BTreeMap<PartitionId, String>>,
    /// Partitions of which a part is gone, that were told of.
    damaged: Mutex<BTreeSet<PartitionId>>,
    /// By engine: what is none of its own, that was told of.
    foreign: Mutex<BTreeMap<String, Vec<String>>>,
}

/// One engine in one pass.
#[derive(Clone, Copy)]
struct Subject<'a> {
    engine: &'a str,
    store: &'a dyn LogStore,
    strangers: Strangers,
}

impl Reconciler {
    pub(crate) fn new(parts: ReconcilerParts) -> Self {
        Self {
            parts,
            found: Mutex::default(),
            missing: Mutex::default(),
            damaged: Mutex::default(),
            foreign: Mutex::default(),
        }
    }

    /// Works until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.parts.settings.changes();
        while !stop.is_cancelled() {
            self.pass(&stop).await;
            let begun = self.parts.environment.monotonic();
            loop {
                let waited = self.parts.environment.monotonic().saturating_sub(begun);
                let interval = self.parts.settings.broker().reconciliation_interval_ms;
                let left = Duration::from_millis(interval).saturating_sub(waited);
                tokio::select! {
                    () = self.parts.environment.sleep(left) => break,
                    Ok(()) = changes.changed() => {}
                    () = stop.cancelled() => return,
                }
            }
        }
    }

    /// Looks at every engine, and sees to what is found.
    pub(crate) async fn pass(&self, stop: &CancellationToken) {
        // What nobody meets any more from one pass to the next is over.
        self.parts.read_failures.forget_old();
        for (engine, store, strangers) in self.parts.engines.with_strangers() {
            let subject = Subject { engine, store: store.as_ref(), strangers };
            tokio::select! {
                done = self.reconcile(subject, stop) => if let Err(error) = done {
                    self.parts.metrics.reconciliation_failures.add(1);
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(engine, %error, cause, "storage could not be compared with metadata");
                },
                () = stop.cancelled() => return,
            }
        }
    }

    async fn reconcile(
        &self,
        subject: Subject<'_>,
        stop: &CancellationToken,
    ) -> Result<(), LoadError> {
        let first = self.look(subject).await?;
        self.withhold(subject, &first);
        let unknown = if first.comparison.unknown.is_empty() {
            Vec::new()
        } else {
            self.parts.environment.sleep(SECOND_LOOK_AFTER).await;
            let second = self.look(subject).await?;
            confirmed(&first.comparison, &second.comparison)
        };
        self.bring_back(subject, &first.comparison.returned).await;
        if subject.strangers == Strangers::Quarantine {
            self.set_aside(subject, &unknown).await;
            self.purge(subject, &first, stop).await;
        }
        let last = self.look(subject).await?;
        self.withhold(subject, &last);
        self.tell_damaged(subject, &last);
        let foreign = subject.store.foreign().await?;
        self.tell_foreign(subject, &foreign);
        self.publish(subject, &last, &unknown, foreign);
        Ok(())
    }

    async fn look(&self, subject: Subject<'_>) -> Result<Look, LoadError> {
        Look::at(subject.engine, subject.store, self.parts.meta.as_ref()).await
    }
}
