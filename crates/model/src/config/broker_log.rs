//! Broker configs: defaults of topics, logs, compaction.

use super::key::{ARRAY_MAX, ConfigKey, LONG_MAX, UNSET, boolean, double, int, list, long, string};
use super::reason;

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    int("num.partitions", "1")
        .at_least(1)
        .doc("Partitions of a new topic that asks for no number."),
    int("default.replication.factor", "1").doc(
        "Replication factor of a new topic that asks for none; every factor but 1 is \
            refused.",
    ),
    boolean("auto.create.topics.enable", "true")
        .doc("Whether asking for the metadata of a missing topic creates it."),
    boolean("delete.topic.enable", "true").doc("Whether clients may delete topics."),
    int("min.insync.replicas", "1").at_least(1).cluster_wide().doc(
        "Default of `min.insync.replicas`; a number above 1 refuses `acks=all`, since \
            there is one replica.",
    ),
    int("message.max.bytes", "1048588")
        .at_least(0)
        .cluster_wide()
        .doc("Default of `max.message.bytes`: the largest record batch."),
    int("max.decompressed.message.bytes", "2147483639")
        .between(1, ARRAY_MAX)
        .cluster_wide()
        .ignored(reason::DECOMPRESSION)
        .doc("Default of `max.decompressed.message.bytes`."),
    string("compression.type", "producer")
        .one_of(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])
        .cluster_wide()
        .doc("Default of `compression.type`."),
    int("compression.gzip.level", "-1")
        .gzip_level()
        .cluster_wide()
        .doc("Default of `compression.gzip.level`."),
    int("compression.lz4.level", "9")
        .between(1, 17)
        .cluster_wide()
        .doc("Default of `compression.lz4.level`."),
    int("compression.zstd.level", "3")
        .between(-131_072, 22)
        .cluster_wide()
        .doc("Default of `compression.zstd.level`."),
    list("log.dir", UNSET).doc("The data folder, when `log.dirs` and `data.dir` are not set."),
    list("log.dirs", UNSET).doc("The data folder, when `data.dir` is not set; one only."),
    list("cordoned.log.dirs", "")
        .per_broker()
        .ignored(reason::ONE_FOLDER)
        .doc("Folders that take no new partitions."),
    long("log.dir.failure.timeout.ms", "30000")
        .at_least(1)
        .ignored(reason::QUORUM)
        .doc("How long a failed folder may stay unknown to the controller."),
    int("log.segment.bytes", "1073741824")
        .at_least(1_048_576)
        .cluster_wide()
        .doc("Default of `segment.bytes`."),
    long("log.roll.ms", UNSET).at_least(1).cluster_wide().doc("Default of `segment.ms`."),
    int("log.roll.hours", "168")
        .at_least(1)
        .doc("Default of `segment.ms` in hours, when `log.roll.ms` is not set."),
    long("log.roll.jitter.ms", UNSET)
        .cluster_wide()
        .ignored(reason::JITTER)
        .doc("Default of `segment.jitter.ms`."),
    int("log.roll.jitter.hours", "0")
        .at_least(0)
        .ignored(reason::JITTER)
        .doc("Default of `segment.jitter.ms` in hours, when `log.roll.jitter.ms` is not set."),
    long("log.retention.ms", UNSET)
        .unlimited_or_positive()
        .cluster_wide()
        .doc("Default of `retention.ms`."),
    int("log.retention.minutes", UNSET)
        .unlimited_or_positive()
        .doc("Default of `retention.ms` in minutes, when `log.retention.ms` is not set."),
    int("log.retention.hours", "168").unlimited_or_positive().doc(
        "Default of `retention.ms` in hours, when `log.retention.minutes` is not set \
            either.",
    ),
    long("log.retention.bytes", "-1").cluster_wide().doc("Default of `retention.bytes`."),
    long("log.retention.check.interval.ms", "300000").at_least(1).cluster_wide().doc(
        "How often retention looks at every partition. Unlike in Kafka it may change at run time.",
    ),
    list("log.cleanup.policy", "delete")
        .one_of(&["compact", "delete"])
        .cluster_wide()
        .doc("Default of `cleanup.policy`."),
    int("log.index.interval.bytes", "4096")
        .at_least(0)
        .cluster_wide()
        .doc("Default of `index.interval.bytes`."),
    int("log.index.size.max.bytes", "10485760")
        .at_least(4)
        .cluster_wide()
        .ignored(reason::INDEXES)
        .doc("Default of `segment.index.bytes`."),
    long("log.flush.interval.messages", LONG_MAX)
        .at_least(1)
        .cluster_wide()
        .doc("Default of `flush.messages`."),
    long("log.flush.interval.ms", UNSET)
        .cluster_wide()
        .ignored(reason::FLUSHING)
        .doc("Default of `flush.ms`."),
    long("log.flush.scheduler.interval.ms", LONG_MAX)
        .ignored(reason::FLUSHING)
        .doc("How often logs are looked at for flushing."),
    int("log.flush.offset.checkpoint.interval.ms", "60000")
        .at_least(0)
        .ignored(reason::FLUSHING)
        .doc("How often the recovery point is written."),
    int("log.flush.start.offset.checkpoint.interval.ms", "60000")
        .at_least(0)
        .ignored(reason::FLUSHING)
        .doc("How often log start offsets are written."),
    boolean("log.preallocate", "false")
        .cluster_wide()
        .ignored(reason::INDEXES)
        .doc("Default of `preallocate`."),
    long("log.segment.delete.delay.ms", "60000")
        .at_least(0)
        .cluster_wide()
        .ignored(reason::REMOVAL)
        .doc("Default of `file.delete.delay.ms`."),
    string("log.message.timestamp.type", "CreateTime")
        .one_of(&["CreateTime", "LogAppendTime"])
        .cluster_wide()
        .doc("Default of `message.timestamp.type`."),
    long("log.message.timestamp.before.max.ms", LONG_MAX)
        .at_least(0)
        .cluster_wide()
        .doc("Default of `message.timestamp.before.max.ms`."),
    long("log.message.timestamp.after.max.ms", "3600000")
        .at_least(0)
        .cluster_wide()
        .doc("Default of `message.timestamp.after.max.ms`."),
    long("log.initial.task.delay.ms", "30000")
        .at_least(0)
        .internal()
        .ignored(reason::FOR_TESTS)
        .doc("How long background work waits after the start."),
    int("num.recovery.threads.per.data.dir", "2")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::THREADS)
        .doc("Threads that recover a folder at start."),
    int("num.replica.alter.log.dirs.threads", UNSET)
        .ignored(reason::THREADS)
        .doc("Threads that move partitions between folders."),
    boolean("log.cleaner.enable", "true")
        .doc("Whether compaction runs."),
    int("log.cleaner.threads", "1")
        .at_least(0)
        .cluster_wide()
        .doc("Logs that are compacted at a time; 0 stops compaction."),
    long("log.cleaner.dedupe.buffer.size", "134217728")
        .cluster_wide()
        .doc(
            "Memory for the keys of all compaction passes together: 24 bytes a key. When it is \
             full, a pass compacts a part of the log and another one goes on.",
        ),
    int("log.cleaner.io.buffer.size", "524288")
        .at_least(0)
        .cluster_wide()
        .doc("Bytes that a compaction pass reads at a time, from 64 KiB to 16 MiB."),
    double("log.cleaner.io.buffer.load.factor", "0.9")
        .cluster_wide()
        .doc("How full the memory for keys may become, up to 0.95."),
    double("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308")
        .cluster_wide()
        .doc("Bytes that compaction may read and write per second, all passes together."),
    long("log.cleaner.backoff.ms", "15000")
        .at_least(0)
        .cluster_wide()
        .doc("How long compaction waits when there is nothing to do, and leaves a log alone after a pass."),
    long("log.cleaner.delete.retention.ms", "86400000")
        .at_least(0)
        .cluster_wide()
        .doc("Default of `delete.retention.ms`."),
    double("log.cleaner.min.cleanable.ratio", "0.5")
        .ratio(1.0)
        .cluster_wide()
        .doc("Default of `min.cleanable.dirty.ratio`."),
    long("log.cleaner.min.compaction.lag.ms", "0")
        .at_least(0)
        .cluster_wide()
        .doc("Default of `min.compaction.lag.ms`."),
    long("log.cleaner.max.compaction.lag.ms", LONG_MAX)
        .at_least(1)
        .cluster_wide()
        .doc("Default of `max.compaction.lag.ms`."),
    long("log.local.retention.bytes", "-2")
        .at_least(-2)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Default of `local.retention.bytes`."),
    long("log.local.retention.ms", "-2")
        .at_least(-2)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Default of `local.retention.ms`."),
    long("log.remote.copy.lag.bytes", "-1")
        .at_least(-1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Default of `remote.copy.lag.bytes`."),
    long("log.remote.copy.lag.ms", "0")
        .at_least(-1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Default of `remote.copy.lag.ms`."),
    int("producer.id.expiration.ms", "86400000")
        .at_least(1)
        .cluster_wide()
        .doc("How long an idle producer's sequence numbers are remembered."),
    int("producer.id.expiration.check.interval.ms", "600000")
        .at_least(1)
        .internal()
        .doc("How often idle producers are looked for."),
];
