//! Broker configs: consumer groups, share groups.

use super::key::{ConfigKey, INT_MAX, boolean, int, list, long, short, string};
use super::reason;

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    int("group.initial.rebalance.delay.ms", "3000")
        .doc("How long a new classic group waits for more members."),
    int("group.min.session.timeout.ms", "6000")
        .doc("The shortest session timeout of a classic member."),
    int("group.max.session.timeout.ms", "1800000")
        .doc("The longest session timeout of a classic member."),
    int("group.max.size", INT_MAX).at_least(1).doc("Members of a classic group."),
    int("offsets.topic.num.partitions", "50").at_least(1).doc("Partitions of the offsets topic."),
    short("offsets.topic.replication.factor", "3")
        .at_least(1)
        .ignored(reason::COORDINATOR_ROWS)
        .doc("Replication factor of the offsets topic."),
    int("offsets.topic.segment.bytes", "104857600")
        .at_least(1)
        .ignored(reason::COORDINATOR_ROWS)
        .doc("Segment size of the offsets topic."),
    int("offsets.topic.compression.codec", "0")
        .ignored(reason::COORDINATOR_ROWS)
        .doc("Codec of the offsets topic."),
    int("offsets.retention.minutes", "10080")
        .at_least(1)
        .doc("How long the offsets of an empty group are kept."),
    long("offsets.retention.check.interval.ms", "600000")
        .at_least(1)
        .doc("How often expired offsets are looked for."),
    int("offsets.load.buffer.size", "5242880")
        .at_least(1)
        .ignored(reason::COORDINATOR_ROWS)
        .doc("Bytes read at a time when groups are loaded."),
    int("offset.metadata.max.bytes", "4096")
        .doc("The largest metadata text of a committed offset."),
    int("offsets.commit.timeout.ms", "5000").at_least(1).doc("How long a commit may wait."),
    int("group.coordinator.threads", "4")
        .at_least(1)
        .ignored(reason::THREADS)
        .doc("Threads of the group coordinator."),
    int("group.coordinator.background.threads", "2")
        .at_least(1)
        .ignored(reason::THREADS)
        .doc("Threads for the group coordinator's background work."),
    int("group.coordinator.append.linger.ms", "-1")
        .at_least(-1)
        .ignored(reason::COORDINATOR_ROWS)
        .doc("How long the group coordinator collects writes."),
    int("group.coordinator.cached.buffer.max.bytes", "1048588")
        .at_least(524_288)
        .cluster_wide()
        .ignored(reason::COORDINATOR_ROWS)
        .doc("The largest write buffer that the group coordinator keeps."),
    list("group.coordinator.rebalance.protocols", "classic,consumer,streams")
        .one_of(&["consumer", "classic", "share", "streams"])
        .ignored(reason::GROUPS)
        .doc("The group protocols that are served."),
    int("group.consumer.session.timeout.ms", "45000")
        .at_least(1)
        .ignored(reason::GROUPS)
        .doc("Session timeout of consumer groups (KIP-848)."),
    int("group.consumer.min.session.timeout.ms", "45000")
        .at_least(1)
        .ignored(reason::GROUPS)
        .doc("The shortest session timeout that a consumer group may set."),
    int("group.consumer.max.session.timeout.ms", "60000")
        .at_least(1)
        .ignored(reason::GROUPS)
        .doc("The longest session timeout that a consumer group may set."),
    int("group.consumer.heartbeat.interval.ms", "5000")
        .at_least(1)
        .ignored(reason::GROUPS)
        .doc("Heartbeat interval of consumer groups (KIP-848)."),
    int("group.consumer.min.heartbeat.interval.ms", "5000")
        .at_least(1)
        .ignored(reason::GROUPS)
        .doc("The shortest heartbeat interval that a consumer group may set."),
    int("group.consumer.max.heartbeat.interval.ms", "15000")
        .at_least(1)
        .ignored(reason::GROUPS)
        .doc("The longest heartbeat interval that a consumer group may set."),
    int("group.consumer.assignment.interval.ms", "1000")
        .at_least(0)
        .cluster_wide()
        .ignored(reason::GROUPS)
        .doc("Time between two assignments of a consumer group."),
    int("group.consumer.min.assignment.interval.ms", "0")
        .at_least(0)
        .ignored(reason::GROUPS)
        .doc("The shortest assignment interval that a consumer group may set."),
    int("group.consumer.max.assignment.interval.ms", "15000")
        .at_least(0)
        .ignored(reason::GROUPS)
        .doc("The longest assignment interval that a consumer group may set."),
    int("group.consumer.max.size", INT_MAX)
        .at_least(1)
        .ignored(reason::GROUPS)
        .doc("Members of a consumer group."),
    list("group.consumer.assignors", "uniform,range")
        .ignored(reason::GROUPS)
        .doc("The assignors of consumer groups, the default one first."),
    string("group.consumer.migration.policy", "bidirectional")
        .one_of_any_case(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"])
        .ignored(reason::GROUPS)
        .doc("Whether classic groups and consumer groups turn into each other."),
    int("group.consumer.regex.refresh.interval.ms", "600000")
        .at_least(10_000)
        .internal()
        .ignored(reason::GROUPS)
        .doc("How often subscriptions by pattern are matched again."),
    boolean("group.consumer.assignor.offload.enable", "true")
        .cluster_wide()
        .internal()
        .ignored(reason::GROUPS)
        .doc("Whether assignments are computed in the background."),
    int("group.share.session.timeout.ms", "45000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("Session timeout of share groups."),
    int("group.share.min.session.timeout.ms", "45000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("The shortest session timeout that a share group may set."),
    int("group.share.max.session.timeout.ms", "60000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("The longest session timeout that a share group may set."),
    int("group.share.heartbeat.interval.ms", "5000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("Heartbeat interval of share groups."),
    int("group.share.min.heartbeat.interval.ms", "5000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("The shortest heartbeat interval that a share group may set."),
    int("group.share.max.heartbeat.interval.ms", "15000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("The longest heartbeat interval that a share group may set."),
    int("group.share.assignment.interval.ms", "1000")
        .at_least(0)
        .cluster_wide()
        .ignored(reason::SHARE_GROUPS)
        .doc("Time between two assignments of a share group."),
    int("group.share.min.assignment.interval.ms", "0")
        .at_least(0)
        .ignored(reason::SHARE_GROUPS)
        .doc("The shortest assignment interval that a share group may set."),
    int("group.share.max.assignment.interval.ms", "15000")
        .at_least(0)
        .ignored(reason::SHARE_GROUPS)
        .doc("The longest assignment interval that a share group may set."),
    int("group.share.max.size", "200")
        .between(1, 1000)
        .ignored(reason::SHARE_GROUPS)
        .doc("Members of a share group."),
    int("group.share.max.share.sessions", "2000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("Share sessions of this broker."),
    list("group.share.assignors", "simple")
        .ignored(reason::SHARE_GROUPS)
        .doc("The assignor of share groups."),
    boolean("group.share.assignor.offload.enable", "true")
        .cluster_wide()
        .internal()
        .ignored(reason::SHARE_GROUPS)
        .doc("Whether share assignments are computed in the background."),
    int("group.share.delivery.count.limit", "5")
        .between(2, 10)
        .ignored(reason::SHARE_GROUPS)
        .doc("How often a record is delivered before it is given up."),
    int("group.share.min.delivery.count.limit", "2")
        .between(2, 5)
        .ignored(reason::SHARE_GROUPS)
        .doc("The lowest delivery limit that a share group may set."),
    int("group.share.max.delivery.count.limit", "10")
        .between(5, 25)
        .ignored(reason::SHARE_GROUPS)
        .doc("The highest delivery limit that a share group may set."),
    int("group.share.record.lock.duration.ms", "30000")
        .between(1000, 3_600_000)
        .ignored(reason::SHARE_GROUPS)
        .doc("How long an acquired record stays locked."),
    int("group.share.min.record.lock.duration.ms", "15000")
        .between(1000, 30_000)
        .ignored(reason::SHARE_GROUPS)
        .doc("The shortest lock duration that a share group may set."),
    int("group.share.max.record.lock.duration.ms", "60000")
        .between(30_000, 3_600_000)
        .ignored(reason::SHARE_GROUPS)
        .doc("The longest lock duration that a share group may set."),
    int("group.share.partition.max.record.locks", "2000")
        .between(100, 10_000)
        .ignored(reason::SHARE_GROUPS)
        .doc("Records of one partition that a share group may have in flight."),
    int("group.share.min.partition.max.record.locks", "100")
        .between(100, 2000)
        .ignored(reason::SHARE_GROUPS)
        .doc("The lowest in-flight limit that a share group may set."),
    int("group.share.max.partition.max.record.locks", "4000")
        .between(2000, 10_000)
        .ignored(reason::SHARE_GROUPS)
        .doc("The highest in-flight limit that a share group may set."),
    int("group.share.initialize.retry.interval.ms", "30000")
        .at_least(1)
        .internal()
        .ignored(reason::SHARE_GROUPS)
        .doc("Time between two attempts to initialise share state."),
    string(
        "group.share.persister.class.name",
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
    )
    .internal()
    .ignored(reason::JAVA_CLASS)
    .doc("The class that keeps share state."),
    string(
        "group.share.dlq.manager.class.name",
        "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager",
    )
    .internal()
    .ignored(reason::JAVA_CLASS)
    .doc("The class that writes dead-letter queues."),
    boolean("errors.deadletterqueue.auto.create.topics.enable", "false")
        .cluster_wide()
        .ignored(reason::SHARE_GROUPS)
        .doc("Whether missing dead-letter topics are created."),
    string("errors.deadletterqueue.topic.name.prefix", "dlq.")
        .cluster_wide()
        .ignored(reason::SHARE_GROUPS)
        .doc("What names of dead-letter topics must begin with."),
    int("share.coordinator.state.topic.num.partitions", "50")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("Partitions of the share state topic."),
    short("share.coordinator.state.topic.replication.factor", "3")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("Replication factor of the share state topic."),
    short("share.coordinator.state.topic.min.isr", "2")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("`min.insync.replicas` of the share state topic."),
    int("share.coordinator.state.topic.segment.bytes", "104857600")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("Segment size of the share state topic."),
    int("share.coordinator.state.topic.compression.codec", "0")
        .ignored(reason::SHARE_GROUPS)
        .doc("Codec of the share state topic."),
    int("share.coordinator.state.topic.prune.interval.ms", "300000")
        .at_least(1)
        .internal()
        .ignored(reason::SHARE_GROUPS)
        .doc("How often the share state topic is pruned."),
    int("share.coordinator.snapshot.update.records.per.snapshot", "500")
        .between(0, 500)
        .ignored(reason::SHARE_GROUPS)
        .doc("Updates of share state between two snapshots."),
    int("share.coordinator.cold.partition.snapshot.interval.ms", "300000")
        .at_least(1)
        .internal()
        .ignored(reason::SHARE_GROUPS)
        .doc("How often idle share state is snapshotted."),
    int("share.coordinator.load.buffer.size", "5242880")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("Bytes read at a time when share state is loaded."),
    int("share.coordinator.append.linger.ms", "-1")
        .at_least(-1)
        .ignored(reason::SHARE_GROUPS)
        .doc("How long the share coordinator collects writes."),
    int("share.coordinator.cached.buffer.max.bytes", "1048588")
        .at_least(524_288)
        .cluster_wide()
        .ignored(reason::SHARE_GROUPS)
        .doc("The largest write buffer that the share coordinator keeps."),
    int("share.coordinator.write.timeout.ms", "5000")
        .at_least(1)
        .ignored(reason::SHARE_GROUPS)
        .doc("How long a write of share state may wait."),
    int("share.coordinator.threads", "1")
        .at_least(1)
        .ignored(reason::THREADS)
        .doc("Threads of the share coordinator."),
];
