//! Broker configs: replication, quotas, the controller quorum, tiered storage.

use super::key::{ConfigKey, LONG_MAX, UNSET, boolean, double, int, list, long, string};
use super::reason;

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    int("num.replica.fetchers", "1")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::REPLICATION)
        .doc("Threads that copy from each other broker."),
    int("replica.fetch.backoff.ms", "1000")
        .at_least(0)
        .ignored(reason::REPLICATION)
        .doc("How long a follower waits after an error."),
    int("replica.fetch.max.bytes", "1048576")
        .at_least(0)
        .ignored(reason::REPLICATION)
        .doc("Bytes that a follower asks for per partition."),
    int("replica.fetch.min.bytes", "1")
        .ignored(reason::REPLICATION)
        .doc("Bytes that a follower waits for."),
    int("replica.fetch.response.max.bytes", "10485760")
        .at_least(0)
        .ignored(reason::REPLICATION)
        .doc("Bytes that a follower asks for in all."),
    int("replica.fetch.wait.max.ms", "500")
        .ignored(reason::REPLICATION)
        .doc("How long a follower waits for bytes."),
    long("replica.high.watermark.checkpoint.interval.ms", "5000")
        .ignored(reason::REPLICATION)
        .doc("How often high watermarks are written."),
    long("replica.lag.time.max.ms", "30000")
        .ignored(reason::REPLICATION)
        .doc("How long a follower may lag and stay in sync."),
    int("replica.socket.receive.buffer.bytes", "65536")
        .ignored(reason::REPLICATION)
        .doc("Size of the kernel's receive buffer of a follower."),
    int("replica.socket.timeout.ms", "30000")
        .ignored(reason::REPLICATION)
        .doc("How long a follower's request may take."),
    boolean("auto.leader.rebalance.enable", "true")
        .ignored(reason::REPLICATION)
        .doc("Whether leadership returns to preferred replicas."),
    long("leader.imbalance.check.interval.seconds", "300")
        .at_least(1)
        .ignored(reason::REPLICATION)
        .doc("How often preferred leaders are checked."),
    boolean("unclean.leader.election.enable", "false")
        .cluster_wide()
        .ignored(reason::REPLICATION)
        .doc("Whether a replica that is behind may lead."),
    long("unclean.leader.election.interval.ms", "300000")
        .at_least(1)
        .internal()
        .ignored(reason::REPLICATION)
        .doc("How often leaderless partitions are looked at."),
    boolean("controlled.shutdown.enable", "true")
        .ignored(reason::REPLICATION)
        .doc("Whether leadership moves away before the stop."),
    int("controller.socket.timeout.ms", "30000")
        .ignored(reason::REPLICATION)
        .doc("How long a request of the controller may take."),
    boolean("follower.fetch.last.tiered.offset.enable", "false")
        .cluster_wide()
        .ignored(reason::REPLICATION)
        .doc("Whether an empty follower begins after what is tiered."),
    long("leader.replication.throttled.rate", UNSET)
        .at_least(0)
        .cluster_wide()
        .internal()
        .ignored(reason::REPLICATION)
        .doc("Bytes per second that throttled leaders send."),
    long("follower.replication.throttled.rate", UNSET)
        .at_least(0)
        .cluster_wide()
        .internal()
        .ignored(reason::REPLICATION)
        .doc("Bytes per second that throttled followers receive."),
    long("replica.alter.log.dirs.io.max.bytes.per.second", UNSET)
        .at_least(0)
        .cluster_wide()
        .internal()
        .ignored(reason::ONE_FOLDER)
        .doc("Bytes per second for moves between folders."),
    int("quota.window.num", "11")
        .at_least(1)
        .ignored(reason::QUOTAS)
        .doc("Samples of a client quota."),
    int("quota.window.size.seconds", "1")
        .at_least(1)
        .ignored(reason::QUOTAS)
        .doc("The span of a client quota's sample."),
    int("controller.quota.window.num", "11")
        .at_least(1)
        .ignored(reason::QUOTAS)
        .doc("Samples of the quota on changes."),
    int("controller.quota.window.size.seconds", "1")
        .at_least(1)
        .ignored(reason::QUOTAS)
        .doc("The span of a sample of the quota on changes."),
    int("replication.quota.window.num", "11")
        .at_least(1)
        .ignored(reason::REPLICATION)
        .doc("Samples of the replication quota."),
    int("replication.quota.window.size.seconds", "1")
        .at_least(1)
        .ignored(reason::REPLICATION)
        .doc("The span of a replication quota's sample."),
    int("alter.log.dirs.replication.quota.window.num", "11")
        .at_least(1)
        .ignored(reason::ONE_FOLDER)
        .doc("Samples of the quota on moves between folders."),
    int("alter.log.dirs.replication.quota.window.size.seconds", "1")
        .at_least(1)
        .ignored(reason::ONE_FOLDER)
        .doc("The span of a sample of the quota on moves between folders."),
    int("broker.heartbeat.interval.ms", "2000")
        .ignored(reason::QUORUM)
        .doc("How often a broker reports to the controller."),
    int("broker.session.timeout.ms", "9000")
        .ignored(reason::QUORUM)
        .doc("How long a silent broker stays registered."),
    int("initial.broker.registration.timeout.ms", "60000")
        .ignored(reason::QUORUM)
        .doc("How long a broker tries to register."),
    list("controller.quorum.voters", "")
        .ignored(reason::QUORUM)
        .doc("The voters of the metadata quorum."),
    list("controller.quorum.bootstrap.servers", "")
        .ignored(reason::QUORUM)
        .doc("Where the metadata quorum is found."),
    boolean("controller.quorum.auto.join.enable", "false")
        .ignored(reason::QUORUM)
        .doc("Whether a controller joins the quorum by itself."),
    int("controller.quorum.append.linger.ms", "25")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("How long the quorum's leader collects writes."),
    int("controller.quorum.election.backoff.max.ms", "1000")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("The longest wait before another election."),
    int("controller.quorum.election.timeout.ms", "1000")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("How long a leader may be silent before an election."),
    int("controller.quorum.fetch.max.bytes", "1048576")
        .at_least(1)
        .ignored(reason::QUORUM)
        .doc("Bytes of one fetch of metadata."),
    int("controller.quorum.fetch.snapshot.max.bytes", "1048576")
        .at_least(1)
        .ignored(reason::QUORUM)
        .doc("Bytes of one fetch of a metadata snapshot."),
    int("controller.quorum.fetch.timeout.ms", "2000")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("How long a voter may go without a successful fetch."),
    int("controller.quorum.request.timeout.ms", "2000")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("How long a request of the quorum may take."),
    int("controller.quorum.retry.backoff.ms", "20")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("Time between two attempts of a quorum request."),
    long("controller.performance.always.log.threshold.ms", "2000")
        .at_least(0)
        .internal()
        .ignored(reason::QUORUM)
        .doc("Controller events slower than this are logged."),
    long("controller.performance.sample.period.ms", "60000")
        .at_least(100)
        .internal()
        .ignored(reason::QUORUM)
        .doc("How often the controller logs its performance."),
    string("metadata.log.dir", UNSET)
        .ignored(reason::QUORUM)
        .doc("The folder of the metadata log."),
    long("metadata.log.max.record.bytes.between.snapshots", "20971520")
        .at_least(1)
        .ignored(reason::QUORUM)
        .doc("Bytes of metadata between two snapshots."),
    long("metadata.log.max.snapshot.interval.ms", "3600000")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("Time between two snapshots of metadata."),
    int("metadata.log.segment.bytes", "1073741824")
        .at_least(8_388_608)
        .ignored(reason::QUORUM)
        .doc("Segment size of the metadata log."),
    long("metadata.log.segment.ms", "604800000")
        .ignored(reason::QUORUM)
        .doc("Segment age of the metadata log."),
    int("metadata.max.idle.interval.ms", "500")
        .at_least(0)
        .ignored(reason::QUORUM)
        .doc("How often an idle controller writes."),
    long("metadata.max.retention.bytes", "104857600")
        .ignored(reason::QUORUM)
        .doc("How large the metadata log may grow."),
    long("metadata.max.retention.ms", "604800000")
        .ignored(reason::QUORUM)
        .doc("How long the metadata log is kept."),
    long("internal.metadata.delete.delay.millis", "60000")
        .internal()
        .ignored(reason::QUORUM)
        .doc("Delay before a metadata file is deleted."),
    int("internal.metadata.log.segment.bytes", UNSET)
        .internal()
        .ignored(reason::QUORUM)
        .doc("Segment size of the metadata log in tests."),
    int("internal.metadata.max.batch.size.in.bytes", "8388608")
        .internal()
        .ignored(reason::QUORUM)
        .doc("The largest batch of metadata in tests."),
    boolean("remote.log.storage.system.enable", "false")
        .ignored(reason::TIERED)
        .doc("Whether tiered storage is on."),
    int("remote.fetch.max.wait.ms", "500")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("How long a fetch waits for the remote tier."),
    long("remote.list.offsets.request.timeout.ms", "30000")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("How long a remote lookup of offsets may take."),
    long("remote.log.index.file.cache.total.size.bytes", "1073741824")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Size of the cache of remote indexes."),
    long("remote.log.index.file.cache.ttl.ms", "900000")
        .at_least(-1)
        .internal()
        .ignored(reason::TIERED)
        .doc("How long an unused remote index stays cached."),
    int("remote.log.manager.copier.thread.pool.size", "10")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Threads that copy to the remote tier."),
    long("remote.log.manager.copy.max.bytes.per.second", LONG_MAX)
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Bytes copied to the remote tier per second."),
    int("remote.log.manager.copy.quota.window.num", "11")
        .at_least(1)
        .ignored(reason::TIERED)
        .doc("Samples of the remote copy quota."),
    int("remote.log.manager.copy.quota.window.size.seconds", "1")
        .at_least(1)
        .ignored(reason::TIERED)
        .doc("The span of a remote copy quota's sample."),
    int("remote.log.manager.expiration.thread.pool.size", "10")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Threads that expire remote segments."),
    long("remote.log.manager.fetch.max.bytes.per.second", LONG_MAX)
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Bytes fetched from the remote tier per second."),
    int("remote.log.manager.fetch.quota.window.num", "11")
        .at_least(1)
        .ignored(reason::TIERED)
        .doc("Samples of the remote fetch quota."),
    int("remote.log.manager.fetch.quota.window.size.seconds", "1")
        .at_least(1)
        .ignored(reason::TIERED)
        .doc("The span of a remote fetch quota's sample."),
    int("remote.log.manager.follower.thread.pool.size", "2")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Threads that follow the remote tier."),
    long("remote.log.manager.task.interval.ms", "30000")
        .at_least(1)
        .ignored(reason::TIERED)
        .doc("How often remote tasks run."),
    long("remote.log.manager.task.retry.backoff.max.ms", "30000")
        .at_least(1)
        .internal()
        .ignored(reason::TIERED)
        .doc("The longest wait before a remote task is tried again."),
    long("remote.log.manager.task.retry.backoff.ms", "500")
        .at_least(1)
        .internal()
        .ignored(reason::TIERED)
        .doc("The first wait before a remote task is tried again."),
    double("remote.log.manager.task.retry.jitter", "0.2")
        .ratio(0.5)
        .internal()
        .ignored(reason::TIERED)
        .doc("How much the wait of a remote task varies."),
    int("remote.log.manager.thread.pool.size", "2")
        .at_least(1)
        .ignored(reason::TIERED)
        .doc("Threads that follow the remote tier, by its old name."),
    int("remote.log.metadata.custom.metadata.max.bytes", "128")
        .at_least(0)
        .ignored(reason::TIERED)
        .doc("The largest custom metadata of a remote segment."),
    string(
        "remote.log.metadata.manager.class.name",
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    )
    .not_empty()
    .ignored(reason::TIERED)
    .doc("The class that keeps the remote tier's metadata."),
    string("remote.log.metadata.manager.class.path", UNSET)
        .ignored(reason::TIERED)
        .doc("Where that class is loaded from."),
    string("remote.log.metadata.manager.impl.prefix", "rlmm.config.")
        .not_empty()
        .ignored(reason::TIERED)
        .doc("Prefix of that class's own settings."),
    string("remote.log.metadata.manager.listener.name", UNSET)
        .not_empty()
        .ignored(reason::TIERED)
        .doc("The listener that that class connects to."),
    int("remote.log.reader.max.pending.tasks", "100")
        .at_least(1)
        .ignored(reason::TIERED)
        .doc("Remote reads that may wait."),
    int("remote.log.reader.threads", "10")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::TIERED)
        .doc("Threads that read from the remote tier."),
    string("remote.log.storage.manager.class.name", UNSET)
        .not_empty()
        .ignored(reason::TIERED)
        .doc("The class that stores remote segments."),
    string("remote.log.storage.manager.class.path", UNSET)
        .ignored(reason::TIERED)
        .doc("Where that class is loaded from."),
    string("remote.log.storage.manager.impl.prefix", "rsm.config.")
        .not_empty()
        .ignored(reason::TIERED)
        .doc("Prefix of that class's own settings."),
];
