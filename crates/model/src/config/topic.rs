//! Topic configs: Kafka's, and which broker config each falls back to.

use super::key::{
    ARRAY_MAX, ConfigKey, LONG_MAX, UNSET, boolean, double, hours, int, list, long, minutes, same,
    string,
};
use super::reason;

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    list("cleanup.policy", "delete")
        .one_of(&["compact", "delete"])
        .falls_back_to(&[same("log.cleanup.policy")])
        .doc(
            "What becomes of old records: `delete` drops whole segments by time, size and \
            count, `compact` keeps the newest record of each key; empty keeps \
            everything.",
        ),
    string("compression.type", "producer")
        .one_of(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])
        .falls_back_to(&[same("compression.type")])
        .doc("The codec that batches are stored with; `producer` keeps each as it came."),
    int("compression.gzip.level", "-1")
        .gzip_level()
        .falls_back_to(&[same("compression.gzip.level")])
        .doc("The level when batches are re-compressed with gzip."),
    int("compression.lz4.level", "9")
        .between(1, 17)
        .falls_back_to(&[same("compression.lz4.level")])
        .doc("The level when batches are re-compressed with lz4."),
    int("compression.zstd.level", "3")
        .between(-131_072, 22)
        .falls_back_to(&[same("compression.zstd.level")])
        .doc("The level when batches are re-compressed with zstd."),
    long("delete.retention.ms", "86400000")
        .at_least(0)
        .falls_back_to(&[same("log.cleaner.delete.retention.ms")])
        .doc(
            "How long the record that deletes a key can be read after it was compacted first; it is \
             gone after about twice as long.",
        ),
    boolean("errors.deadletterqueue.group.enable", "false")
        .ignored(reason::SHARE_GROUPS)
        .doc("Whether share groups may write undeliverable records to this topic."),
    long("file.delete.delay.ms", "60000")
        .at_least(0)
        .falls_back_to(&[same("log.segment.delete.delay.ms")])
        .ignored(reason::REMOVAL)
        .doc("How long a dropped segment's file stays."),
    long("flush.messages", LONG_MAX)
        .at_least(1)
        .falls_back_to(&[same("log.flush.interval.messages")])
        .doc(
            "1 makes every acknowledgement of this topic wait for the disk, whatever \
            `storage.file.fsync` says; other numbers change nothing.",
        ),
    long("flush.ms", LONG_MAX)
        .at_least(0)
        .falls_back_to(&[same("log.flush.interval.ms"), same("log.flush.scheduler.interval.ms")])
        .ignored(reason::FLUSHING)
        .doc("How long records may stay unsynced."),
    list("follower.replication.throttled.replicas", "")
        .throttled_replicas()
        .ignored(reason::REPLICATION)
        .doc("Replicas that are throttled as followers."),
    int("index.interval.bytes", "4096")
        .at_least(0)
        .falls_back_to(&[same("log.index.interval.bytes")])
        .doc("Bytes of records between two entries of the offset index."),
    int("internal.segment.bytes", UNSET)
        .internal()
        .doc("`segment.bytes` without its lower bound, for tests."),
    list("leader.replication.throttled.replicas", "")
        .throttled_replicas()
        .ignored(reason::REPLICATION)
        .doc("Replicas that are throttled as leaders."),
    long("local.retention.bytes", "-2")
        .at_least(-2)
        .falls_back_to(&[same("log.local.retention.bytes")])
        .ignored(reason::TIERED)
        .doc("Bytes that stay local when a topic is tiered."),
    long("local.retention.ms", "-2")
        .at_least(-2)
        .falls_back_to(&[same("log.local.retention.ms")])
        .ignored(reason::TIERED)
        .doc("How long records stay local when a topic is tiered."),
    long("max.compaction.lag.ms", LONG_MAX)
        .at_least(1)
        .falls_back_to(&[same("log.cleaner.max.compaction.lag.ms")])
        .doc(
            "The longest that a record stays uncompacted, counted from its segment's first append: \
             the active segment is closed for it.",
        ),
    int("max.decompressed.message.bytes", "2147483639")
        .between(1, ARRAY_MAX)
        .falls_back_to(&[same("max.decompressed.message.bytes")])
        .ignored(reason::DECOMPRESSION)
        .doc("The largest record once decompressed."),
    int("max.message.bytes", "1048588")
        .at_least(0)
        .falls_back_to(&[same("message.max.bytes")])
        .doc("The largest record batch that is taken, as it is sent."),
    long("message.timestamp.after.max.ms", "3600000")
        .at_least(0)
        .falls_back_to(&[same("log.message.timestamp.after.max.ms")])
        .doc("How far a record's timestamp may lie ahead of the broker's clock."),
    long("message.timestamp.before.max.ms", LONG_MAX)
        .at_least(0)
        .falls_back_to(&[same("log.message.timestamp.before.max.ms")])
        .doc("How far a record's timestamp may lie behind the broker's clock."),
    string("message.timestamp.type", "CreateTime")
        .one_of(&["CreateTime", "LogAppendTime"])
        .falls_back_to(&[same("log.message.timestamp.type")])
        .doc(
            "Whether records keep their producer's timestamp or get the time of their \
            append.",
        ),
    double("min.cleanable.dirty.ratio", "0.5")
        .ratio(1.0)
        .falls_back_to(&[same("log.cleaner.min.cleanable.ratio")])
        .doc("The part of a log that must be uncompacted before compaction looks at it."),
    long("min.compaction.lag.ms", "0")
        .at_least(0)
        .falls_back_to(&[same("log.cleaner.min.compaction.lag.ms")])
        .doc("The shortest that a record stays uncompacted."),
    int("min.insync.replicas", "1")
        .at_least(1)
        .falls_back_to(&[same("min.insync.replicas")])
        .doc("Replicas that `acks=all` needs; there is one."),
    boolean("preallocate", "false")
        .falls_back_to(&[same("log.preallocate")])
        .ignored(reason::INDEXES)
        .doc("Whether a segment's file gets its full size at once."),
    long("remote.copy.lag.bytes", "-1")
        .at_least(-1)
        .falls_back_to(&[same("log.remote.copy.lag.bytes")])
        .ignored(reason::TIERED)
        .doc("How many bytes copying to the remote tier may lag."),
    long("remote.copy.lag.ms", "0")
        .at_least(-1)
        .falls_back_to(&[same("log.remote.copy.lag.ms")])
        .ignored(reason::TIERED)
        .doc("How long copying to the remote tier may lag."),
    boolean("remote.log.copy.disable", "false")
        .ignored(reason::TIERED)
        .doc("Whether copying to the remote tier has stopped."),
    boolean("remote.log.delete.on.disable", "false")
        .ignored(reason::TIERED)
        .doc("Whether remote data goes when tiering is turned off."),
    boolean("remote.storage.enable", "false")
        .ignored(reason::TIERED)
        .doc("Whether the topic is tiered."),
    long("retention.bytes", "-1").falls_back_to(&[same("log.retention.bytes")]).doc(
        "The largest size of a partition: the oldest segments go while it is over, never the \
         newest; segments are closed at an eighth of it; -1 for no limit.",
    ),
    long("retention.ms", "604800000")
        .at_least(-1)
        .falls_back_to(&[
            same("log.retention.ms"),
            minutes("log.retention.minutes"),
            hours("log.retention.hours"),
        ])
        .doc(
            "How long records are kept: a segment goes when its newest record is older, an idle \
             partition empties; -1 for ever.",
        ),
    int("segment.bytes", "1073741824")
        .at_least(1_048_576)
        .falls_back_to(&[same("log.segment.bytes")])
        .doc("The largest size of a segment."),
    int("segment.index.bytes", "10485760")
        .at_least(4)
        .falls_back_to(&[same("log.index.size.max.bytes")])
        .ignored(reason::INDEXES)
        .doc("The largest size of a segment's index."),
    long("segment.jitter.ms", "0")
        .at_least(0)
        .falls_back_to(&[same("log.roll.jitter.ms"), hours("log.roll.jitter.hours")])
        .ignored(reason::JITTER)
        .doc("How much earlier than `segment.ms` a segment may close, at random."),
    long("segment.ms", "604800000")
        .at_least(1)
        .falls_back_to(&[same("log.roll.ms"), hours("log.roll.hours")])
        .doc("The longest that a segment takes appends."),
    boolean("unclean.leader.election.enable", "false")
        .falls_back_to(&[same("unclean.leader.election.enable")])
        .ignored(reason::REPLICATION)
        .doc("Whether a replica that is behind may lead."),
];
