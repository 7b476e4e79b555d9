//! What configuration means for the broker's own parts: resolved once per topic, not per request.

#[cfg(test)]
mod tests;
mod unreadable;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use strandline_model::Limits;
use strandline_model::config::{
    BrokerConfig, BrokerLayers, CompressionType, ConfigKey, ConfigSource, Described, DynamicError,
    DynamicLayer, FsyncPolicy, Overrides, Scope, SetError, StorageEngine, Synonym,
    TimestampType as ConfiguredTimestampType, TopicConfig, TopicConfigError, broker_key,
    broker_keys, check_group_tags, client_metrics_keys, describe_client_metrics, group_keys,
    topic_keys,
};
use strandline_partition::compaction;
use strandline_partition::retention::{Policy, segment_bytes, segment_records};
use strandline_records::{Codec, ProduceRules, TargetCompression, TimestampType};
use strandline_storage::{Durability, LogSettings};
use tokio::sync::watch;

use crate::configs::{AlterError, Texts};
use crate::row_codec::TEXT_BYTES_MAX;

pub(crate) use unreadable::Unreadable;

/// The key that is fixed when a topic is made.
pub(crate) const ENGINE: &str = "storage.engine";

/// Where data is when no key says so.
const DEFAULT_FOLDER: &str = "./strandline-data";

/// A topic's configuration, in the shapes that its users need.
#[derive(Clone, Debug)]
pub(crate) struct TopicSettings {
    /// What was set for the topic itself, as it is kept.
    pub(crate) overrides: BTreeMap<String, String>,
    /// What a batch must be.
    pub(crate) produce: ProduceRules,
    /// How its logs are kept.
    pub(crate) log: LogSettings,
    /// What is kept.
    pub(crate) retention: Policy,
    /// How newer records supersede older ones of their keys.
    pub(crate) compaction: compaction::Policy,
    /// Settings of retention that are kept but can't be read: nothing goes by them.
    pub(crate) unreadable: Unreadable,
    /// Whether clients may delete its oldest records: where the policy drops records at all.
    pub(crate) may_delete_records: bool,
    /// Replicas that `acks=all` needs; there is one.
    pub(crate) min_insync_replicas: u32,
    /// Which broker configuration it was resolved from.
    pub(crate) generation: u64,
}

/// Why a topic's configuration was refused. In Kafka's words: tools show them.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum InvalidSetting {
    #[error(transparent)]
    Set(#[from] SetError),
    #[error("Null value not supported for topic configs: {0}")]
    Null(String),
    #[error("{0}")]
    Conflict(TopicConfigError),
    #[error("value of {0} is longer than 32767 bytes")]
    TooLong(String),
    #[error("storage.engine {0} is not configured on this broker")]
    Engine(String),
    #[error("storage.engine was fixed to {0} when the topic was created")]
    PinnedEngine(String),
}

/// The broker's configuration, from which every topic's is resolved.
#[derive(Debug)]
pub(crate) struct SettingsSource {
    now: ArcSwap<Resolved>,
    /// Sees each generation.
    changes: watch::Sender<u64>,
    /// The engines that exist here, by name.
    engines: Vec<String>,
}

/// The broker's configuration between two changes.
#[derive(Debug)]
struct Resolved {
    layers: BrokerLayers,
    broker: Arc<BrokerConfig>,
    /// Topic keys whose default was kept with a value that can't be read.
    unreadable: BTreeMap<DynamicLayer, Unreadable>,
    /// How many changes there were before.
    generation: u64,
    /// The settings of topics that have none of their own, once somebody asked.
    plain_topic: OnceLock<Arc<TopicSettings>>,
}

impl SettingsSource {
    pub(crate) fn new(layers: BrokerLayers, broker: BrokerConfig, engines: Vec<String>) -> Self {
        let unreadable = BTreeMap::new();
        let broker = Arc::new(broker);
        let plain_topic = OnceLock::new();
        let resolved = Resolved { layers, broker, unreadable, generation: 0, plain_topic };
        let changes = watch::Sender::new(resolved.generation);
        Self { now: ArcSwap::from_pointee(resolved), changes, engines }
    }

    /// The broker's configuration as it is now.
    pub(crate) fn broker(&self) -> Arc<BrokerConfig> {
        Arc::clone(&self.now.load().broker)
    }

    /// Which broker configuration is in effect: a number that rises with each change.
    pub(crate) fn generation(&self) -> u64 {
        self.now.load().generation
    }

    /// Hears of each change of the broker's configuration.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The layers and the configuration that `texts`, set in `layer`, would come to.
    pub(crate) fn with_dynamic(
        &self,
        layer: DynamicLayer,
        texts: &Texts,
    ) -> Result<(BrokerLayers, BrokerConfig), DynamicError> {
        self.now.load().layers.with_dynamic(layer, texts)
    }

    /// As [`Self::with_dynamic`], of what somebody changes while the broker runs.
    pub(crate) fn changed_dynamic(
        &self,
        layer: DynamicLayer,
        texts: &Texts,
    ) -> Result<(BrokerLayers, BrokerConfig), DynamicError> {
        let now = self.now.load();
        let (layers, config) = now.layers.with_dynamic(layer, texts)?;
        now.layers.check_change(&layers)?;
        Ok((layers, config))
    }

    /// Puts another broker configuration in effect, of which `layer` was set and could be read.
    /// Changes come one at a time; the settings of topics follow when they are asked to.
    pub(crate) fn replace(&self, layer: DynamicLayer, layers: BrokerLayers, broker: BrokerConfig) {
        self.put(layer, Unreadable::default(), layers, broker);
    }

    fn put(
        &self,
        layer: DynamicLayer,
        unreadable: Unreadable,
        layers: BrokerLayers,
        broker: BrokerConfig,
    ) {
        let generation = self.generation() + 1;
        let mut all = self.now.load().unreadable.clone();
        all.insert(layer, unreadable);
        let broker = Arc::new(broker);
        let plain_topic = OnceLock::new();
        let resolved = Resolved { layers, broker, unreadable: all, generation, plain_topic };
        self.now.store(Arc::new(resolved));
        self.changes.send_replace(generation);
    }

    /// Puts what was kept in effect. A value that is not good any more, after a downgrade or a
    /// change of the file, does not keep the broker from starting: it counts as unset, but that
    /// nothing goes by a default of retention that was set so.
    pub(crate) fn take_kept(&self, layer: DynamicLayer, kept: &Texts) {
        let (mut taken, mut unreadable) = (Texts::new(), Unreadable::default());
        for (name, text) in kept {
            taken.insert(name.clone(), text.clone());
            if let Err(error) = self.with_dynamic(layer, &taken) {
                tracing::warn!(key = %name, %error, "configuration keeps a value that is refused");
                taken.remove(name);
                unreadable.add_default(name);
            }
        }
        if let Ok((layers, broker)) = self.with_dynamic(layer, &taken) {
            self.put(layer, unreadable, layers, broker);
        }
    }

    /// The folder that tools are told of.
    pub(crate) fn data_dir(&self) -> String {
        self.broker().data_dir.clone().unwrap_or_else(|| DEFAULT_FOLDER.to_owned())
    }

    /// The value of a broker key as text; `None` when it is unset.
    pub(crate) fn broker_value(&self, name: &str) -> Option<String> {
        let (value, _) = self.now.load().layers.value(broker_key(name)?)?;
        Some(value.to_string())
    }

    /// As [`topic`](Self::topic), shared by all topics that keep nothing of their own: most of them.
    pub(crate) fn shared_topic(&self, overrides: BTreeMap<String, String>) -> Arc<TopicSettings> {
        if !overrides.is_empty() {
            return Arc::new(self.topic(overrides));
        }
        let now = self.now.load();
        Arc::clone(now.plain_topic.get_or_init(|| Arc::new(self.topic(overrides))))
    }

    /// The value that a broker key has while nothing was set of it at run time; `None` when that is
    /// none.
    pub(crate) fn static_value(&self, name: &str) -> Option<String> {
        let static_broker = self.now.load().layers.static_broker.clone();
        let layers = BrokerLayers { static_broker, ..BrokerLayers::default() };
        let (value, _) = layers.value(broker_key(name)?)?;
        Some(value.to_string())
    }

    /// The settings of a topic that keeps `overrides`.
    pub(crate) fn topic(&self, overrides: BTreeMap<String, String>) -> TopicSettings {
        let now = self.now.load();
        let mut unreadable = Unreadable::default();
        let own = parse(Scope::Topic, &overrides, |name| unreadable.add(name));
        for defaults in now.unreadable.values() {
            unreadable = unreadable.with_defaults(defaults, |key| overrides.contains_key(key));
        }
        let config = now.layers.topic_config(&own);
        let retention = unreadable.policy(&config);
        let compacts = retention.compacts && unreadable.knows_lags();
        TopicSettings {
            produce: produce_rules(&config),
            log: log_settings(&now.broker, &config, &retention),
            retention,
            unreadable,
            compaction: compaction_policy(&config, compacts),
            may_delete_records: config.cleanup_policy.delete,
            min_insync_replicas: config.min_insync_replicas,
            generation: now.generation,
            overrides,
        }
    }

    /// What a topic would be if `changes` were set on it too. What it keeps but can't be read is not
    /// refused: only that can be told.
    pub(crate) fn topic_with(
        &self,
        settings: &TopicSettings,
        changes: &[(String, String)],
    ) -> Result<TopicSettings, InvalidSetting> {
        let mut texts = settings.overrides.clone();
        texts.retain(|name, text| Overrides::default().set(Scope::Topic, name, text).is_ok());
        texts.extend(changes.iter().cloned());
        self.check_topic(&texts)?;
        let mut all = settings.overrides.clone();
        all.extend(texts);
        Ok(self.topic(all))
    }

    /// Checks all that is to be set on a topic: names first, then values, as Kafka does.
    pub(crate) fn check_topic(&self, texts: &Texts) -> Result<(), InvalidSetting> {
        let wanted: Vec<_> =
            texts.iter().map(|(name, text)| (name.clone(), Some(text.clone()))).collect();
        self.check_topic_configs(&wanted).map(drop)
    }

    /// Checks all that is to be set on a group.
    pub(crate) fn check_group(&self, texts: &Texts) -> Result<(), AlterError> {
        let unknown = texts.keys().find(|name| group_keys().all(|key| key.name != **name));
        let mut own = Overrides::default();
        if let Some(name) = unknown {
            // Kafka tells of unknown names first.
            own.set(Scope::Group, name, "").map_err(InvalidSetting::from)?;
        }
        check_group_tags(texts).map_err(AlterError::Group)?;
        for (name, text) in texts {
            own.set(Scope::Group, name, text).map_err(InvalidSetting::from)?;
        }
        self.now.load().layers.check_group(&own).map_err(AlterError::Group)
    }

    /// Checks what a client wants to set on a topic; returns it as it is to be kept: as
    /// it was given.
    pub(crate) fn check_topic_configs(
        &self,
        wanted: &[(String, Option<String>)],
    ) -> Result<BTreeMap<String, String>, InvalidSetting> {
        let mut overrides = Overrides::default();
        for (name, value) in wanted {
            let value = value.as_ref().ok_or_else(|| InvalidSetting::Null(name.clone()))?;
            if value.len() > TEXT_BYTES_MAX {
                return Err(InvalidSetting::TooLong(name.clone()));
            }
            overrides.set(Scope::Topic, name, value)?;
        }
        let layers = &self.now.load().layers;
        layers.check_topic(&overrides).map_err(InvalidSetting::Conflict)?;
        let engine = layers.topic_config(&overrides).storage_engine.name();
        if !self.engines.iter().any(|known| known == engine) {
            return Err(InvalidSetting::Engine(engine.to_owned()));
        }
        let given = |(name, value): &(String, Option<String>)| {
            value.as_ref().map(|value| (name.clone(), value.clone()))
        };
        Ok(wanted.iter().filter_map(given).collect())
    }

    /// The engine that a new topic with `overrides` is pinned to.
    pub(crate) fn engine_of(&self, overrides: &BTreeMap<String, String>) -> String {
        let overrides = parse_kept(Scope::Topic, overrides);
        let engine: StorageEngine = self.now.load().layers.topic_config(&overrides).storage_engine;
        engine.name().to_owned()
    }

    /// Every topic key with its value for a topic that keeps `overrides`.
    fn describe_topic(&self, overrides: &BTreeMap<String, String>) -> Vec<Described> {
        let parsed = parse_kept(Scope::Topic, overrides);
        let layers = &self.now.load().layers;
        let keys = topic_keys().filter(|key| is_told(key, overrides.contains_key(key.name)));
        keys.map(|key| layers.describe_topic(&parsed, key)).collect()
    }

    /// The same for a topic that is there, and has the engine that it was made with: where the broker
    /// would choose another one by now, that is a value of the topic's own, or for the broker's own
    /// topics one that is built in. Where it would not, the value is told as the broker's, as tools
    /// expect of what nobody set on the topic.
    pub(crate) fn describe_topic_as_made(
        &self,
        overrides: &BTreeMap<String, String>,
        engine: &str,
        is_internal: bool,
    ) -> Vec<Described> {
        let source = if is_internal { ConfigSource::Default } else { ConfigSource::DynamicTopic };
        let mut described = self.describe_topic(overrides);
        for entry in &mut described {
            if entry.name == ENGINE && entry.value.as_deref() != Some(engine) {
                let value = Some(engine.to_owned());
                let own = Synonym { name: ENGINE, value: value.clone(), source };
                entry.synonyms.insert(0, own);
                (entry.value, entry.source) = (value, source);
            }
        }
        described
    }

    /// The same for the answer to whoever created the topic: values are as they were given, spaces
    /// and all, as in Kafka.
    pub(crate) fn describe_new_topic(
        &self,
        overrides: &BTreeMap<String, String>,
    ) -> Vec<Described> {
        let mut described = self.describe_topic(overrides);
        for entry in &mut described {
            if let Some(text) = overrides.get(entry.name) {
                entry.value = entry.value.take().map(|_| text.clone());
            }
        }
        described
    }

    /// Every broker key with its value.
    pub(crate) fn describe_broker(&self) -> Vec<Described> {
        let layers = &self.now.load().layers;
        broker_keys()
            .map(|key| (key, layers.describe_broker(key)))
            .filter(|(key, entry)| is_told(key, entry.is_set()))
            .map(|(_, entry)| self.with_old_name(entry))
            .collect()
    }

    /// As in Kafka, whoever looks for this broker's id under its old name finds it.
    fn with_old_name(&self, mut entry: Described) -> Described {
        if entry.name == "broker.id" {
            let value = Some(self.broker().node_id.to_string());
            entry.value.clone_from(&value);
            entry.source = ConfigSource::StaticBroker;
            entry.synonyms.retain(|synonym| synonym.source == ConfigSource::Default);
            entry.synonyms.insert(0, Synonym { name: entry.name, value, source: entry.source });
        }
        entry
    }

    /// The broker keys that are set for all brokers while they run.
    pub(crate) fn describe_dynamic_defaults(&self) -> Vec<Described> {
        let layers = &self.now.load().layers;
        broker_keys().filter_map(|key| layers.describe_dynamic_default(key)).collect()
    }

    /// Every group key with its value for a group of which `set` is set.
    pub(crate) fn describe_group(&self, set: &Texts) -> Vec<Described> {
        let own = parse_kept(Scope::Group, set);
        let layers = &self.now.load().layers;
        let keys = group_keys().filter(|key| is_told(key, set.contains_key(key.name)));
        keys.map(|key| layers.describe_group(&own, key)).collect()
    }
}

/// Every key of a subscription to the metrics of clients of which `set` is set.
pub(crate) fn describe_subscription(set: &Texts) -> Vec<Described> {
    let own = parse_kept(Scope::ClientMetrics, set);
    client_metrics_keys().map(|key| describe_client_metrics(&own, key)).collect()
}

/// Kafka tells of keys for tests and experts only where they are set.
const fn is_told(key: &ConfigKey, is_set: bool) -> bool {
    !key.internal || is_set
}

fn log_settings(broker: &BrokerConfig, config: &TopicConfig, retention: &Policy) -> LogSettings {
    let durability = match broker.storage_file_fsync {
        // One topic may ask for more than the broker gives by default.
        _ if config.flush_messages == 1 => Durability::Commit,
        FsyncPolicy::Commit => Durability::Commit,
        FsyncPolicy::Interval(interval) => Durability::Interval(interval),
        FsyncPolicy::Never => Durability::Never,
    };
    LogSettings {
        segment_bytes: segment_bytes(retention, config.segment_bytes),
        segment_records: segment_records(retention),
        // As Kafka: what is to be compacted in time must be in a closed segment before.
        segment_age: Duration::from_millis(if config.cleanup_policy.compact {
            config.segment_ms.min(config.max_compaction_lag_ms)
        } else {
            config.segment_ms
        }),
        index_interval_bytes: config.index_interval_bytes,
        durability,
    }
}

const fn compaction_policy(config: &TopicConfig, compacts: bool) -> compaction::Policy {
    compaction::Policy {
        compacts,
        min_dirty_ratio: config.min_cleanable_dirty_ratio,
        min_lag_ms: config.min_compaction_lag_ms,
        max_lag_ms: config.max_compaction_lag_ms,
        delete_retention_ms: config.delete_retention_ms,
    }
}

/// Kept values were good when they came in. One that is not any more, after a downgrade, does not
/// keep the topic or group from being served: it counts as unset.
fn parse_kept(scope: Scope, kept: &BTreeMap<String, String>) -> Overrides {
    parse(scope, kept, |_| ())
}

/// The same; `refused` hears the names of what counts as unset.
fn parse(
    scope: Scope,
    kept: &BTreeMap<String, String>,
    mut refused: impl FnMut(&str),
) -> Overrides {
    let mut overrides = Overrides::default();
    for (name, value) in kept {
        if let Err(error) = overrides.set(scope, name, value) {
            tracing::warn!(key = %name, %value, %error, "a value is kept that is not known here");
            refused(name);
        }
    }
    overrides
}

fn produce_rules(config: &TopicConfig) -> ProduceRules {
    ProduceRules {
        max_message_bytes: config.max_message_bytes,
        segment_bytes: config.segment_bytes,
        timestamp_type: match config.message_timestamp_type {
            ConfiguredTimestampType::CreateTime => TimestampType::CreateTime,
            ConfiguredTimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: config.message_timestamp_before_max_ms,
        timestamp_after_max_ms: config.message_timestamp_after_max_ms,
        requires_keys: config.cleanup_policy.compact,
        compression: target_compression(config),
        validate_compressed: config.validate_compressed,
        decompressed_bytes_max: Limits::production().batch_decompressed_bytes_max,
    }
}

fn target_compression(config: &TopicConfig) -> TargetCompression {
    TargetCompression::Codec(match config.compression_type {
        CompressionType::Producer => return TargetCompression::Producer,
        CompressionType::Uncompressed => Codec::None,
        CompressionType::Gzip => Codec::Gzip { level: config.compression_gzip_level },
        CompressionType::Snappy => Codec::Snappy,
        CompressionType::Lz4 => Codec::Lz4 { level: config.compression_lz4_level },
        CompressionType::Zstd => Codec::Zstd { level: config.compression_zstd_level },
    })
}
