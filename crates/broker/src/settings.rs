//! What configuration means for the broker's own parts: resolved once per topic, not per request.

use std::collections::BTreeMap;
use std::time::Duration;

use strandline_model::Limits;
use strandline_model::config::{
    BrokerConfig, BrokerLayers, CompressionType, Described, FsyncPolicy, Overrides, Scope,
    SetError, StorageEngine, TimestampType as ConfiguredTimestampType, TopicConfig,
    TopicConfigError, broker_key, broker_keys, topic_keys,
};
use strandline_records::{Codec, ProduceRules, TargetCompression, TimestampType};
use strandline_storage::{Durability, LogSettings};

/// The longest value that is kept: what a classic Kafka string can carry.
const VALUE_BYTES_MAX: usize = 32_767;

/// Topic keys for tests, which Kafka tells of only where they are set.
const HIDDEN: [&str; 1] = ["internal.segment.bytes"];

/// A topic's configuration, in the shapes that its users need.
#[derive(Clone, Debug)]
pub(crate) struct TopicSettings {
    /// What was set for the topic itself, as it is kept.
    pub(crate) overrides: BTreeMap<String, String>,
    /// What a batch must be.
    pub(crate) produce: ProduceRules,
    /// How its logs are kept.
    pub(crate) log: LogSettings,
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
}

/// The broker's configuration, from which every topic's is resolved.
#[derive(Debug)]
pub(crate) struct SettingsSource {
    layers: BrokerLayers,
    broker: BrokerConfig,
    /// The engines that exist here, by name.
    engines: Vec<String>,
}

impl SettingsSource {
    pub(crate) const fn new(
        layers: BrokerLayers,
        broker: BrokerConfig,
        engines: Vec<String>,
    ) -> Self {
        Self { layers, broker, engines }
    }

    pub(crate) const fn broker(&self) -> &BrokerConfig {
        &self.broker
    }

    /// The value of a broker key as text; `None` when it is unset.
    pub(crate) fn broker_value(&self, name: &str) -> Option<String> {
        let (value, _) = self.layers.value(broker_key(name)?)?;
        Some(value.to_string())
    }

    /// The settings of a topic that keeps `overrides`.
    pub(crate) fn topic(&self, overrides: BTreeMap<String, String>) -> TopicSettings {
        let config = self.layers.topic_config(&parse_kept(&overrides));
        TopicSettings {
            produce: produce_rules(&config),
            log: self.log_settings(&config),
            overrides,
        }
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
            if value.len() > VALUE_BYTES_MAX {
                return Err(InvalidSetting::TooLong(name.clone()));
            }
            overrides.set(Scope::Topic, name, value)?;
        }
        self.layers.check_topic(&overrides).map_err(InvalidSetting::Conflict)?;
        let engine = self.layers.topic_config(&overrides).storage_engine.name();
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
        let engine: StorageEngine = self.layers.topic_config(&parse_kept(overrides)).storage_engine;
        engine.name().to_owned()
    }

    /// Every topic key with its value for a topic that keeps `overrides`.
    pub(crate) fn describe_topic(&self, overrides: &BTreeMap<String, String>) -> Vec<Described> {
        let parsed = parse_kept(overrides);
        topic_keys()
            .filter(|key| !HIDDEN.contains(&key.name) || overrides.contains_key(key.name))
            .map(|key| {
                let mut entry = self.layers.describe_topic(&parsed, key);
                // As the client gave it, spaces and all: tools compare texts.
                if let (Some(_), Some(text)) = (parsed.value(key.name), overrides.get(key.name)) {
                    entry.value = entry.value.map(|_| text.clone());
                    if let Some(own) = entry.synonyms.first_mut() {
                        own.value = own.value.take().map(|_| text.clone());
                    }
                }
                entry
            })
            .collect()
    }

    /// Every broker key with its value.
    pub(crate) fn describe_broker(&self) -> Vec<Described> {
        broker_keys().map(|key| self.layers.describe_broker(key)).collect()
    }

    /// The broker keys that are set for all brokers while they run.
    pub(crate) fn describe_dynamic_defaults(&self) -> Vec<Described> {
        broker_keys().filter_map(|key| self.layers.describe_dynamic_default(key)).collect()
    }

    fn log_settings(&self, config: &TopicConfig) -> LogSettings {
        let durability = match self.broker.storage_file_fsync {
            // One topic may ask for more than the broker gives by default.
            _ if config.flush_messages == 1 => Durability::Commit,
            FsyncPolicy::Commit => Durability::Commit,
            FsyncPolicy::Interval(interval) => Durability::Interval(interval),
            FsyncPolicy::Never => Durability::Never,
        };
        LogSettings {
            segment_bytes: config.segment_bytes,
            segment_age: Duration::from_millis(config.segment_ms),
            index_interval_bytes: config.index_interval_bytes,
            durability,
        }
    }
}

/// Kept values were good when they came in. One that is not any more, after a downgrade, does not
/// keep the topic from being served: it counts as unset.
fn parse_kept(kept: &BTreeMap<String, String>) -> Overrides {
    let mut overrides = Overrides::default();
    for (name, value) in kept {
        if let Err(error) = overrides.set(Scope::Topic, name, value) {
            tracing::warn!(key = %name, %value, %error, "topic keeps a value that is not known here");
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
