//! A broker on a disk in memory, with a clock in the test's hand.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strandline_broker::{Broker, BrokerParts, Engines, Environment, NoLoggers};
use strandline_engine_file::disk::{Disk, TestDisk};
use strandline_engine_file::{FileEngine, FileEngineConfig, OpenError};
use strandline_model::config::{BrokerLayers, Scope};
use strandline_model::{ByteCount, Timestamp};
use strandline_storage::BoxFuture;
use tokio::sync::watch;

use crate::client::Client;

/// How long anything may take that is waited for: all of it takes milliseconds.
const PATIENCE: Duration = Duration::from_mins(1);
/// By how much the clock goes ahead while something is waited for.
const STRIDE: Duration = Duration::from_secs(5);
/// How long logs stay in quarantine.
const QUARANTINE: Duration = Duration::from_hours(1);
/// Passes of reconciliation until one meets no other that is at the same log.
const PASSES_MAX: u32 = 100;

/// Time that goes on when it is told to, and the same numbers for each seed.
#[derive(Debug)]
pub(crate) struct Clock {
    millis: watch::Sender<u64>,
    draws: AtomicU64,
}

impl Clock {
    /// Random numbers are others for each seed.
    pub(crate) fn new(seed: u64, now: Timestamp) -> Arc<Self> {
        let draws = AtomicU64::new(seed << 32);
        let millis = u64::try_from(now.as_millis()).unwrap();
        Arc::new(Self { millis: watch::channel(millis).0, draws })
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.millis.send_modify(|now| *now += u64::try_from(by.as_millis()).unwrap());
    }
}

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(*self.millis.borrow()).unwrap())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(*self.millis.borrow())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut millis = self.millis.subscribe();
        let until = u128::from(*millis.borrow()).saturating_add(duration.as_millis());
        Box::pin(async move {
            // It fails when the clock is gone: then nobody waits any more.
            let _ended = millis.wait_for(|now| u128::from(*now) >= until).await;
        })
    }

    fn random_bits(&self) -> u128 {
        let draw = u128::from(self.draws.fetch_add(1, Ordering::SeqCst) + 1);
        draw.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

/// A broker and its engine.
pub(crate) struct World {
    pub(crate) broker: Arc<Broker>,
    pub(crate) engine: Arc<FileEngine>,
    pub(crate) clock: Arc<Clock>,
}

/// Small enough that a workload fills several journal files and makes several checkpoints.
fn config() -> FileEngineConfig {
    let blocks = |count: u64| ByteCount::new(count * 4096);
    FileEngineConfig {
        journal_first_file: blocks(4),
        journal_file: blocks(10),
        journal_cap: blocks(64),
        checkpoint_at: blocks(16),
        direct_min: ByteCount::new(500),
        direct_checkpoint_at: blocks(12),
        open_files_max: 8,
        ..FileEngineConfig::tiny()
    }
}

impl World {
    /// Starts a broker on what is there. One before it that was let go of may take a moment to end.
    pub(crate) async fn start(disk: &TestDisk, clock: &Arc<Clock>) -> Self {
        let begun = Instant::now();
        let engine = loop {
            match FileEngine::open(Arc::new(disk.clone()) as Arc<dyn Disk>, config()) {
                Err(OpenError::InUse { .. }) if begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                opened => break opened.expect("what a crash leaves is opened").0,
            }
        };
        let mut layers = BrokerLayers::default();
        layers.static_broker.set(Scope::Broker, "auto.create.topics.enable", "false").unwrap();
        let quarantine = QUARANTINE.as_millis().to_string();
        layers.static_broker.set(Scope::Broker, "quarantine.retention.ms", &quarantine).unwrap();
        let broker = Broker::start(BrokerParts {
            config: layers.broker_config().unwrap(),
            layers,
            engines: Engines::new("file", Arc::clone(&engine) as _),
            meta: Arc::clone(&engine) as _,
            environment: Arc::clone(clock) as _,
            coordinators: Vec::new(),
            advertised: BTreeMap::new(),
            loggers: Arc::new(NoLoggers),
            features: BTreeMap::new(),
        })
        .await
        .expect("a broker starts on what a crash leaves");
        Self { broker, engine, clock: Arc::clone(clock) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.broker)
    }

    /// Lets time pass until no deletion is pending.
    pub(crate) async fn purge(&self) {
        let begun = Instant::now();
        while self.broker.pending_deletion_count() > 0 {
            assert!(begun.elapsed() < PATIENCE, "the list of pending deletions does not empty");
            self.clock.advance(STRIDE);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Lets time pass until `work` is done.
    pub(crate) async fn while_time_passes<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(Duration::from_millis(1)) => self.clock.advance(STRIDE),
            }
        }
    }

    /// Compares storage with metadata, and sees to what is found.
    pub(crate) async fn reconcile(&self) {
        let failures = &self.broker.metrics().reconciliation_failures;
        for _ in 0..PASSES_MAX {
            let before = failures.get();
            self.while_time_passes(self.broker.check_storage()).await;
            if failures.get() == before {
                // A partition that could not be opened before is tried again after a while.
                return self.clock.advance(STRIDE);
            }
        }
        panic!("each pass of reconciliation fails");
    }

    /// Lets time pass until nothing is in quarantine that no topic knows.
    pub(crate) async fn purge_strangers(&self) {
        for _ in 0..PASSES_MAX {
            self.clock.advance(QUARANTINE);
            self.reconcile().await;
            let found = self.broker.reconciliation();
            if found.iter().all(|one| one.strangers.is_empty()) {
                return;
            }
            // What counts as now may be far behind the clock right after a start.
        }
        panic!("what is in quarantine does not go: {:?}", self.broker.reconciliation());
    }

    /// Ends the broker as a killed process ends: nothing is saved.
    pub(crate) fn kill(self) {
        self.broker.drain();
    }
}
