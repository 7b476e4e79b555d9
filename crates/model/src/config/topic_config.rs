//! A topic's configuration as the code uses it.

use std::fmt;

use super::overrides::Overrides;
use super::resolve::BrokerLayers;
use super::topic_key;
use super::typed::Reader;
use crate::ByteCount;

/// What becomes of old records. Both or neither may be set; neither keeps everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Old segments are dropped by time, size and count.
    pub delete: bool,
    /// Only the newest record of each key is kept.
    pub compact: bool,
}

/// The codec that batches are stored with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionType {
    /// As they came.
    Producer,
    /// None.
    Uncompressed,
    /// gzip.
    Gzip,
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
    /// zstd.
    Zstd,
}

/// Which timestamp records carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// That of the append.
    LogAppendTime,
}

/// Where a topic's records live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageEngine {
    /// Files in the data folder.
    File,
    /// Memory: gone when the broker stops.
    Memory,
    /// A PostgreSQL database.
    Postgres,
}

impl StorageEngine {
    /// The word in `storage.engine`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Memory => "memory",
            Self::Postgres => "postgres",
        }
    }

    /// The engine of that word.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "file" => Some(Self::File),
            "memory" => Some(Self::Memory),
            "postgres" => Some(Self::Postgres),
            _ => None,
        }
    }
}

/// A topic's configuration, resolved. Made by [`BrokerLayers::topic_config`].
#[derive(Clone, Debug, PartialEq)]
pub struct TopicConfig {
    /// `storage.engine`.
    pub storage_engine: StorageEngine,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: u64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: u64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: u64,
    /// `compression.type`.
    pub compression_type: CompressionType,
    /// `compression.gzip.level`: 1 to 9, or -1 for the codec's own default.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`.
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`.
    pub compression_zstd_level: i32,
    /// `flush.messages`. At 1 every acknowledgement waits for the disk.
    pub flush_messages: u64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: ByteCount,
    /// `max.message.bytes`.
    pub max_message_bytes: ByteCount,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub message_timestamp_after_max_ms: i64,
    /// `min.insync.replicas`.
    pub min_insync_replicas: u32,
    /// `retention.ms`; `None` keeps records for ever.
    pub retention_ms: Option<u64>,
    /// `retention.bytes`; `None` for no limit.
    pub retention_bytes: Option<ByteCount>,
    /// `retention.records`; `None` for no limit.
    pub retention_records: Option<u64>,
    /// `retention.bytes.floor`.
    pub retention_bytes_floor: bool,
    /// `segment.bytes`, or the smaller `internal.segment.bytes` of a test.
    pub segment_bytes: ByteCount,
    /// `segment.ms`.
    pub segment_ms: u64,
    /// `validate.compressed`.
    pub validate_compressed: bool,
}

/// Why the values of a topic, each good by itself, can't be taken together. In Kafka's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicConfigError {
    /// Records would have to be compacted before they may be.
    CompactionLagConflict {
        /// `min.compaction.lag.ms`.
        min_ms: i64,
        /// `max.compaction.lag.ms`.
        max_ms: i64,
    },
    /// Tiered storage is asked for.
    TieredStorage,
}

impl fmt::Display for TopicConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CompactionLagConflict { min_ms, max_ms } => write!(
                f,
                "conflict topic config setting min.compaction.lag.ms ({min_ms}) > \
                 max.compaction.lag.ms ({max_ms})"
            ),
            Self::TieredStorage => f.write_str(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be \
                 configured with remote log storage.",
            ),
        }
    }
}

impl std::error::Error for TopicConfigError {}

impl BrokerLayers {
    /// The configuration of a topic with these overrides.
    pub fn topic_config(&self, topic: &Overrides) -> TopicConfig {
        let read = self.topic_reader(topic);
        let segment_bytes = read.number_or_unset("internal.segment.bytes");
        let cleanup = read.list("cleanup.policy");
        TopicConfig {
            storage_engine: StorageEngine::of_name(&read.text("storage.engine"))
                .expect("the table names every engine"),
            cleanup_policy: CleanupPolicy {
                delete: cleanup.iter().any(|policy| policy == "delete"),
                compact: cleanup.iter().any(|policy| policy == "compact"),
            },
            min_cleanable_dirty_ratio: read.double("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms: read.bytes("min.compaction.lag.ms").get(),
            max_compaction_lag_ms: read.bytes("max.compaction.lag.ms").get(),
            delete_retention_ms: read.bytes("delete.retention.ms").get(),
            compression_type: compression_type(&read.text("compression.type")),
            compression_gzip_level: level(read.number("compression.gzip.level")),
            compression_lz4_level: level(read.number("compression.lz4.level")),
            compression_zstd_level: level(read.number("compression.zstd.level")),
            flush_messages: read
                .limit("flush.messages")
                .expect("the table keeps it at one or more"),
            index_interval_bytes: read.bytes("index.interval.bytes"),
            max_message_bytes: read.bytes("max.message.bytes"),
            message_timestamp_type: match read.text("message.timestamp.type").as_str() {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            message_timestamp_before_max_ms: read.number("message.timestamp.before.max.ms"),
            message_timestamp_after_max_ms: read.number("message.timestamp.after.max.ms"),
            min_insync_replicas: read.count("min.insync.replicas"),
            retention_ms: read.limit("retention.ms"),
            retention_bytes: read.limit("retention.bytes").map(ByteCount::new),
            retention_records: read.limit("retention.records"),
            retention_bytes_floor: read.boolean("retention.bytes.floor"),
            segment_bytes: segment_bytes
                .and_then(|bytes| u64::try_from(bytes).ok())
                .filter(|bytes| *bytes > 0)
                .map_or_else(|| read.bytes("segment.bytes"), ByteCount::new),
            segment_ms: read.limit("segment.ms").expect("the table keeps it at one or more"),
            validate_compressed: read.boolean("validate.compressed"),
        }
    }

    /// Whether the values of a topic can be taken together: asked when a topic is created or its
    /// overrides change.
    pub fn check_topic(&self, topic: &Overrides) -> Result<(), TopicConfigError> {
        let read = self.topic_reader(topic);
        let min_ms = read.number("min.compaction.lag.ms");
        let max_ms = read.number("max.compaction.lag.ms");
        if min_ms > max_ms {
            return Err(TopicConfigError::CompactionLagConflict { min_ms, max_ms });
        }
        if read.boolean("remote.storage.enable") {
            return Err(TopicConfigError::TieredStorage);
        }
        Ok(())
    }

    fn topic_reader(&self, topic: &Overrides) -> Reader<impl Fn(&str) -> Option<super::Value>> {
        Reader(move |name| self.topic_value(topic, topic_key(name).expect("a topic key")))
    }
}

fn compression_type(text: &str) -> CompressionType {
    match text {
        "producer" => CompressionType::Producer,
        "uncompressed" => CompressionType::Uncompressed,
        "gzip" => CompressionType::Gzip,
        "snappy" => CompressionType::Snappy,
        "lz4" => CompressionType::Lz4,
        "zstd" => CompressionType::Zstd,
        other => unreachable!("the table allows no codec {other}"),
    }
}

fn level(number: i64) -> i32 {
    i32::try_from(number).expect("the table keeps levels small")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Scope;

    fn topic(settings: &[(&str, &str)]) -> Overrides {
        let mut overrides = Overrides::default();
        for (name, text) in settings {
            overrides.set(Scope::Topic, name, text).expect("a good value");
        }
        overrides
    }

    #[test]
    fn defaults_are_kafkas() {
        let config = BrokerLayers::default().topic_config(&Overrides::default());
        assert_eq!(
            config,
            TopicConfig {
                storage_engine: StorageEngine::File,
                cleanup_policy: CleanupPolicy { delete: true, compact: false },
                min_cleanable_dirty_ratio: 0.5,
                min_compaction_lag_ms: 0,
                max_compaction_lag_ms: i64::MAX.unsigned_abs(),
                delete_retention_ms: 86_400_000,
                compression_type: CompressionType::Producer,
                compression_gzip_level: -1,
                compression_lz4_level: 9,
                compression_zstd_level: 3,
                flush_messages: i64::MAX.unsigned_abs(),
                index_interval_bytes: ByteCount::kib(4),
                max_message_bytes: ByteCount::new(1_048_588),
                message_timestamp_type: TimestampType::CreateTime,
                message_timestamp_before_max_ms: i64::MAX,
                message_timestamp_after_max_ms: 3_600_000,
                min_insync_replicas: 1,
                retention_ms: Some(604_800_000),
                retention_bytes: None,
                retention_records: None,
                retention_bytes_floor: false,
                segment_bytes: ByteCount::gib(1),
                segment_ms: 604_800_000,
                validate_compressed: false,
            }
        );
    }

    #[test]
    fn overrides_arrive_typed() {
        let config = BrokerLayers::default().topic_config(&topic(&[
            ("cleanup.policy", "compact,delete"),
            ("compression.type", "zstd"),
            ("message.timestamp.type", "LogAppendTime"),
            ("retention.ms", "-1"),
            ("retention.bytes", "10"),
            ("storage.engine", "memory"),
            ("internal.segment.bytes", "4096"),
        ]));
        assert_eq!(config.cleanup_policy, CleanupPolicy { delete: true, compact: true });
        assert_eq!(config.compression_type, CompressionType::Zstd);
        assert_eq!(config.message_timestamp_type, TimestampType::LogAppendTime);
        assert_eq!(config.retention_ms, None);
        assert_eq!(config.retention_bytes, Some(ByteCount::new(10)));
        assert_eq!(config.storage_engine, StorageEngine::Memory);
        assert_eq!(config.segment_bytes, ByteCount::kib(4));
    }

    #[test]
    fn every_allowed_word_has_its_variant() {
        for (name, words) in [
            (
                "compression.type",
                ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"].as_slice(),
            ),
            ("storage.engine", &["file", "memory", "postgres"]),
            ("message.timestamp.type", &["CreateTime", "LogAppendTime"]),
        ] {
            for word in words {
                // Panics if a word that the table allows has no variant.
                BrokerLayers::default().topic_config(&topic(&[(name, word)]));
            }
        }
    }

    #[test]
    fn values_that_contradict_each_other_are_refused_in_kafkas_words() {
        let check = |settings| BrokerLayers::default().check_topic(&topic(settings));
        assert_eq!(check(&[]), Ok(()));
        let lags = check(&[("min.compaction.lag.ms", "100"), ("max.compaction.lag.ms", "50")]);
        assert_eq!(
            lags.expect_err("a conflict").to_string(),
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)"
        );
        assert_eq!(
            check(&[("remote.storage.enable", "true")]),
            Err(TopicConfigError::TieredStorage)
        );
    }
}
