//! The broker itself: what it is made of, how it starts, and how it stops.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_coordination::{FetchSessions, SessionLimits};
use strandline_model::config::{BrokerConfig, BrokerLayers, DynamicLayer};
use strandline_model::{Limits, NodeId, TopicId};
use strandline_storage::{CommitError, MetaBatch, MetaStore, StorageError, Table};
use strandline_wire::ErrorCode;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::advertise::{Endpoint, endpoint_for};
use crate::cleaner::{Cleaner, CleanerParts, CompactionStatus, Compactor};
use crate::clients::Clients;
use crate::configs::{DynamicConfigs, Owner};
use crate::connection::Peer;
use crate::drive::{Drivers, Runtimes};
use crate::engines::Engines;
use crate::environment::{Environment, new_topic_id};
use crate::error_code;
use crate::features::Features;
use crate::group::feed::{self, OffsetsFeed, Untold};
use crate::group::{FEED_COORDINATOR, GroupCoordinator};
use crate::idle::IdleCloser;
use crate::loggers::{LoggerLevels, Loggers};
use crate::metrics::Metrics;
use crate::partition::Partition;
use crate::partitions::{self, Partitions, open_partitions};
use crate::producer_ids::ProducerIds;
use crate::purger::{Purger, PurgerParts};
use crate::reconciler::{Reconciler, ReconcilerParts};
use crate::settings::SettingsSource;
use crate::tasks;
use crate::topic::{
    CreateError, CreatePartitionsError, LoadError, NewTopic, PlannedTopic, Registry, RestingNames,
    Topic,
};

/// The row that holds the cluster's id, 16 bytes.
pub(crate) const CLUSTER_ID_KEY: &[u8] = b"cluster-id";
/// How long whoever changes metadata waits for it: less than clients wait for an answer.
const CHANGE_WAIT: Duration = Duration::from_secs(20);
/// How long a fetch session may lie unused before another may take its place, as in Kafka.
const SESSION_EVICTION_MS: i64 = 120_000;

/// What a broker is made of.
#[derive(Debug)]
pub struct BrokerParts {
    /// The configuration, by where it came from.
    pub layers: BrokerLayers,
    /// The same, resolved.
    pub config: BrokerConfig,
    /// The storage engines.
    pub engines: Engines,
    /// Where metadata is kept.
    pub meta: Arc<dyn MetaStore>,
    /// Time and randomness.
    pub environment: Arc<dyn Environment>,
    /// Runtimes for coordinators, up to [`COORDINATORS`](crate::COORDINATORS) of which are used: those
    /// that have a thread each don't hold up each other. The current runtime when there are none.
    pub coordinators: Vec<Handle>,
    /// What `advertised.listeners` says, by the port on which a client reached us.
    pub advertised: BTreeMap<u16, Endpoint>,
    /// The loggers of the process.
    pub loggers: Arc<dyn Loggers>,
    /// Levels that features begin with, where they have none yet; others begin with their default.
    pub features: BTreeMap<String, i16>,
}

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What is kept of topics or deletions could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The metadata store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A running broker.
#[derive(Debug)]
pub struct Broker {
    cluster_id: String,
    advertised: BTreeMap<u16, Endpoint>,
    settings: Arc<SettingsSource>,
    environment: Arc<dyn Environment>,
    engines: Engines,
    registry: Arc<Registry>,
    resting_names: RestingNames,
    features: Features,
    configs: DynamicConfigs,
    loggers: LoggerLevels,
    partitions: Arc<Partitions>,
    producer_ids: ProducerIds,
    purger: Arc<Purger>,
    cleaner: Arc<Cleaner>,
    reconciler: Arc<Reconciler>,
    compactor: Arc<Compactor>,
    sessions: Mutex<FetchSessions>,
    groups: Arc<GroupCoordinator>,
    metrics: Arc<Metrics>,
    clients: Clients,
    stop: CancellationToken,
    /// The runtime that the broker was started on. What must come to its end runs there, not on
    /// the connection's that asked for it.
    runtime: Handle,
}

impl Broker {
    /// Reads what is kept, starts the background tasks on the current runtime, and is ready.
    pub async fn start(parts: BrokerParts) -> Result<Arc<Self>, StartError> {
        let loggers = LoggerLevels::new(parts.loggers);
        let runtimes = Runtimes::new(parts.coordinators, Handle::current());
        let BrokerParts {
            layers, config, engines, meta, environment, advertised, features, ..
        } = parts;
        let cluster_id = cluster_id(meta.as_ref(), environment.as_ref()).await?;
        let features = Features::load(Arc::clone(&meta), &features).await?;
        let limits = session_limits(&config);
        let names = engines.iter().map(|(name, _)| name.to_owned()).collect();
        let settings = Arc::new(SettingsSource::new(layers, config, names));
        let configs = take_kept(&settings, &meta).await?;
        let registry = Registry::load(Arc::clone(&meta), Arc::clone(&settings)).await?;
        let registry = Arc::new(registry);
        let runtime = Handle::current();
        let (metrics, stop) = (Arc::<Metrics>::default(), CancellationToken::new());
        let feed_runtime = runtimes.of(FEED_COORDINATOR).clone();
        let drivers = Drivers::new(&meta, &environment, runtimes);
        let broker_config = settings.broker();
        let (feed, untold) = OffsetsFeed::new();
        let groups = GroupCoordinator::start(
            drivers,
            &broker_config,
            &registry,
            &metrics,
            &feed,
            stop.clone(),
        )
        .await?;
        let partitions =
            Arc::new(Partitions::new(engines.clone(), Arc::clone(&environment), runtime.clone()));
        let parts = CleanerParts {
            registry: Arc::clone(&registry),
            partitions: Arc::clone(&partitions),
            settings: Arc::clone(&settings),
            environment: Arc::clone(&environment),
            meta: Arc::clone(&meta),
            metrics: Arc::clone(&metrics),
            runtime: runtime.clone(),
        };
        let purger = Purger::load(PurgerParts::beside(&parts, &meta, &engines, &groups)).await?;
        let cleaner = Arc::new(Cleaner::new(parts));
        cleaner.start().await;
        let broker = Arc::new(Self {
            compactor: Arc::new(Compactor::new(Arc::clone(&cleaner))),
            reconciler: Arc::new(Reconciler::new(ReconcilerParts::beside(&cleaner, &engines))),
            cluster_id,
            advertised,
            settings,
            partitions,
            cleaner,
            runtime,
            environment,
            engines,
            registry,
            resting_names: RestingNames::default(),
            configs,
            loggers,
            features,
            producer_ids: ProducerIds::new(meta),
            purger: Arc::new(purger),
            sessions: Mutex::new(FetchSessions::new(limits)),
            groups,
            metrics,
            stop,
            clients: Clients::default(),
        });
        broker.start_tasks(&feed_runtime, untold);
        Ok(broker)
    }

    fn start_tasks(self: &Arc<Self>, feed_runtime: &Handle, untold: Untold) {
        let following = feed::run(Arc::clone(self), untold);
        tasks::spawn(feed_runtime, "tell of groups", following);
        let purger = Arc::clone(&self.purger);
        tasks::spawn(&self.runtime, "purge deleted topics", purger.run(self.stop.clone()));
        let cleaner = Arc::clone(&self.cleaner);
        tasks::spawn(&self.runtime, "carry out retention", cleaner.run(self.stop.clone()));
        let reconciler = Arc::clone(&self.reconciler);
        tasks::spawn(&self.runtime, "reconcile storage", reconciler.run(self.stop.clone()));
        let compactor = Arc::clone(&self.compactor);
        tasks::spawn(&self.runtime, "compact logs", compactor.run(self.stop.clone()));
        let closer = IdleCloser::new(Arc::clone(&self.cleaner));
        tasks::spawn(&self.runtime, "close idle partitions", closer.run(self.stop.clone()));
        let silent = partitions::forget_silent_producers(Arc::clone(self), self.stop.clone());
        tasks::spawn(&self.runtime, "forget silent producers", silent);
    }

    /// Ends what waits: long polls are answered with what there is, background tasks stop. Requests
    /// that are under way are still served.
    pub fn drain(&self) {
        self.stop.cancel();
    }

    /// Saves what is derived from the logs and closes the engines: the next start is a clean one.
    /// Connections must be gone.
    pub async fn close(&self) -> Result<(), StorageError> {
        self.drain();
        self.groups.close().await;
        for partition in open_partitions(&self.registry) {
            if let Err(error) = partition.save_state().await {
                // The next start replays the log instead: slower, not wrong.
                tracing::warn!(partition = %partition.id(), %error, "partition state was not saved");
            }
        }
        for (_, store) in self.engines.iter() {
            store.close().await?;
        }
        Ok(())
    }

    /// The cluster's id, as Kafka prints one.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// This broker's id.
    pub fn node_id(&self) -> NodeId {
        self.settings.broker().node_id
    }

    /// The broker's configuration as it is now: some of it changes while the broker runs.
    pub fn config(&self) -> Arc<BrokerConfig> {
        self.settings.broker()
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How many deleted topics still have bytes.
    pub fn pending_deletion_count(&self) -> usize {
        self.purger.pending_count()
    }

    /// Carries retention out now, beside the passes that come by themselves: every partition is
    /// looked at once.
    pub async fn check_retention(&self) {
        self.cleaner.pass(&self.stop).await;
    }

    /// Compares storage with metadata now, beside the passes that come by themselves, and sees to what
    /// is found.
    pub async fn check_storage(&self) {
        self.reconciler.pass(&self.stop).await;
    }

    /// Compacts every log that is due now, and waits for it, beside the passes that come by
    /// themselves. One whose last pass failed waits for its time.
    pub async fn check_compaction(&self) {
        self.compactor.compact_all(&self.stop).await;
    }

    /// How compaction stands: looks at every log of a compacted topic.
    pub fn compaction_status(&self) -> CompactionStatus {
        self.compactor.status()
    }

    /// Creates a topic if there is none of that name; says whether it did.
    ///
    /// For topics that `serve` is told to have. `partition_count` −1 means the broker's default.
    pub async fn ensure_topic(
        self: &Arc<Self>,
        name: &str,
        partition_count: i32,
    ) -> Result<bool, String> {
        let new = NewTopic {
            name: name.to_owned(),
            partition_count,
            replication_factor: -1,
            assignments: Vec::new(),
            configs: Vec::new(),
        };
        match self.create_topic(&new).await {
            Ok(_) => Ok(true),
            Err(CreateError::Exists(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) fn plan_topic(&self, new: &NewTopic) -> Result<PlannedTopic, CreateError> {
        let id = new_topic_id(self.environment.as_ref());
        self.registry.plan_topic(new, id, self.node_id(), self.environment.now())
    }

    pub(crate) async fn create_topic(
        self: &Arc<Self>,
        new: &NewTopic,
    ) -> Result<Arc<Topic>, CreateError> {
        let plan = self.plan_topic(new)?;
        let broker = Arc::clone(self);
        self.to_the_end("create topic", async move { broker.registry.create_topic(plan).await })
            .await?
    }

    /// Whether a topic of this name was deleted a moment ago.
    pub(crate) fn name_rests(&self, name: &str) -> bool {
        self.resting_names.contains(name, self.environment.monotonic())
    }

    pub(crate) async fn grow_topic(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        total: u32,
    ) -> Result<(), CreatePartitionsError> {
        let (broker, topic) = (Arc::clone(self), Arc::clone(topic));
        let grown = async move { broker.registry.grow_topic(&topic, total).await };
        self.to_the_end("add partitions", grown).await?
    }

    /// From now on the name of a topic that is being deleted rests.
    pub(crate) fn let_name_rest(&self, topic: &Topic) {
        self.resting_names.add(topic.name().clone(), self.environment.monotonic());
    }

    /// Runs a change of metadata to its end even when whoever asked for it goes away meanwhile: what
    /// was committed must also be known here. `Unavailable` when that takes too long for an answer.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        name: &'static str,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StorageError> {
        let (sender, receiver) = oneshot::channel();
        tasks::spawn(&self.runtime, name, async move {
            // Nobody is left to tell when the connection went away.
            drop(sender.send(change.await));
        });
        let kind = strandline_storage::ErrorKind::Unavailable;
        tokio::select! {
            changed = receiver => {
                changed.map_err(|_| StorageError::new(kind, "change was given up at shutdown"))
            }
            () = self.environment.sleep(CHANGE_WAIT) => {
                Err(StorageError::new(kind, "change is not done yet, and goes on"))
            }
        }
    }

    /// Partition `index` of topic `name`, opened; or the error code that tells a client why not.
    pub(crate) async fn open_by_name(
        &self,
        name: &str,
        index: i32,
    ) -> Result<Arc<Partition>, ErrorCode> {
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let topic = self.registry.by_name(name).ok_or(unknown)?;
        let slot = topic.partition(index).ok_or(unknown)?;
        self.partitions.open(&topic, &slot).await.map_err(|error| error_code::slot(&error))
    }

    /// `broker.rack`, if it is set.
    pub(crate) fn rack(&self) -> Option<String> {
        self.settings.broker_value("broker.rack")
    }

    pub(crate) fn endpoint_for(&self, peer: &Peer) -> Endpoint {
        endpoint_for(self.advertised.get(&peer.local.port()), peer.local)
    }

    pub(crate) fn new_session_id(&self) -> i32 {
        // 31 random bits; zero, which means "no session", becomes one.
        let bits = self.environment.random_bits() & 0x7fff_ffff;
        i32::try_from(bits).unwrap_or(i32::MAX).max(1)
    }

    pub(crate) fn settings(&self) -> &SettingsSource {
        &self.settings
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        self.environment.as_ref()
    }

    pub(crate) const fn engines(&self) -> &Engines {
        &self.engines
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) const fn loggers(&self) -> &LoggerLevels {
        &self.loggers
    }

    pub(crate) const fn features(&self) -> &Features {
        &self.features
    }

    pub(crate) const fn configs(&self) -> &DynamicConfigs {
        &self.configs
    }

    pub(crate) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    pub(crate) const fn purger(&self) -> &Arc<Purger> {
        &self.purger
    }

    pub(crate) const fn reconciler(&self) -> &Arc<Reconciler> {
        &self.reconciler
    }

    pub(crate) const fn cleaner(&self) -> &Arc<Cleaner> {
        &self.cleaner
    }

    pub(crate) fn groups(&self) -> &GroupCoordinator {
        &self.groups
    }

    pub(crate) const fn producer_ids(&self) -> &ProducerIds {
        &self.producer_ids
    }

    pub(crate) const fn sessions(&self) -> &Mutex<FetchSessions> {
        &self.sessions
    }

    pub(crate) const fn client_book(&self) -> &Clients {
        &self.clients
    }

    pub(crate) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

const fn session_limits(config: &BrokerConfig) -> SessionLimits {
    SessionLimits {
        sessions_max: config.max_incremental_fetch_session_cache_slots as usize,
        partitions_per_session_max: Limits::production().fetch_session_partitions_max,
        bytes_max: Limits::production().fetch_sessions_bytes_max,
        eviction_ms: SESSION_EVICTION_MS,
    }
}

/// Puts what was configured while earlier brokers ran in effect; returns it.
async fn take_kept(
    settings: &SettingsSource,
    meta: &Arc<dyn MetaStore>,
) -> Result<DynamicConfigs, StartError> {
    let configs = DynamicConfigs::load(Arc::clone(meta)).await?;
    settings.take_kept(DynamicLayer::Default, &configs.of(&Owner::AllBrokers));
    let own = Owner::Broker(settings.broker().node_id);
    settings.take_kept(DynamicLayer::Broker, &configs.of(&own));
    Ok(configs)
}

/// The cluster's id: made at the very first start, kept for ever.
async fn cluster_id(
    meta: &dyn MetaStore,
    environment: &dyn Environment,
) -> Result<String, StorageError> {
    let key = Bytes::from_static(CLUSTER_ID_KEY);
    let fresh = new_topic_id(environment);
    let value = Bytes::copy_from_slice(fresh.as_bytes());
    let batch = MetaBatch::new().expect_absent(Table::Cluster, key.clone()).put(
        Table::Cluster,
        key.clone(),
        value,
    );
    match meta.commit(batch).await {
        Ok(()) => return Ok(fresh.to_string()),
        Err(CommitError::Unexpected { .. }) => {}
        Err(CommitError::Storage(error)) => return Err(error),
    }
    let kept = meta.get(Table::Cluster, key).await?;
    kept.and_then(|kept| kept.as_ref().try_into().ok())
        .map(|bytes| TopicId::from_bytes(bytes).to_string())
        .ok_or_else(|| {
            let kind = strandline_storage::ErrorKind::Corrupt;
            StorageError::new(kind, "row of the cluster id can't be read")
        })
}
