//! Broker configs: identity, listeners, connections, requests, metrics.

use super::key::{ConfigKey, INT_MAX, LONG_MAX, UNSET, boolean, class, int, list, long, string};
use super::reason;

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    int("node.id", "1")
        .at_least(0)
        .doc("The id of this broker, in Metadata and in every log that names it."),
    int("broker.id", "-1").ignored(reason::OLD_NAME).doc("The name of `node.id` before Kafka 3.3."),
    string("broker.rack", UNSET)
        .doc("The rack of this broker, as clients are told it that look for a broker near them."),
    // Kafka's default is every address; ours is this machine, since anybody may read and write.
    list("listeners", "PLAINTEXT://localhost:9092").not_empty().doc(
        "Where Kafka clients connect: `PLAINTEXT://host:port`, several with commas. \
            Port 0 takes a free one; localhost is both 127.0.0.1 and [::1]; no host means all addresses.",
    ),
    list("advertised.listeners", UNSET).doc(
        "The addresses that clients are told to connect to. Unset: the address that \
            each client really used.",
    ),
    string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    )
    .doc("Which protocol each listener name speaks."),
    string("inter.broker.listener.name", UNSET)
        .ignored(reason::REPLICATION)
        .doc("The listener that brokers use among themselves."),
    list("controller.listener.names", UNSET)
        .ignored(reason::QUORUM)
        .doc("The listeners of the controller; listeners with these names are not opened."),
    list("process.roles", "broker,controller")
        .one_of(&["broker", "controller"])
        .ignored(reason::QUORUM)
        .doc("The roles of this process."),
    list("early.start.listeners", UNSET)
        .security()
        .doc("Listeners that open before the authorizer is ready."),
    int("num.network.threads", "3")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::THREADS)
        .doc("Threads that serve the sockets."),
    int("num.io.threads", "8")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::THREADS)
        .doc("Threads that serve the requests."),
    int("background.threads", "10")
        .at_least(1)
        .cluster_wide()
        .ignored(reason::THREADS)
        .doc("Threads for background work."),
    int("queued.max.requests", "500")
        .at_least(1)
        .ignored(reason::BACK_PRESSURE)
        .doc("Requests that wait for a thread before sockets are left unread."),
    long("queued.max.request.bytes", "-1")
        .ignored(reason::BACK_PRESSURE)
        .doc("Bytes of requests that wait before sockets are left unread."),
    int("socket.send.buffer.bytes", "102400")
        .ignored(reason::KERNEL_BUFFERS)
        .doc("Size of the kernel's send buffer of each connection."),
    int("socket.receive.buffer.bytes", "102400")
        .ignored(reason::KERNEL_BUFFERS)
        .doc("Size of the kernel's receive buffer of each connection."),
    int("socket.request.max.bytes", "104857600")
        .at_least(1)
        .doc("The largest request; a larger one closes its connection."),
    int("socket.listen.backlog.size", "50")
        .at_least(1)
        .doc("Connections that may wait to be accepted."),
    int("max.connections", INT_MAX)
        .at_least(0)
        .cluster_wide()
        .doc("Connections of the whole broker; above it new ones are closed."),
    int("max.connections.per.ip", INT_MAX)
        .at_least(0)
        .cluster_wide()
        .doc("Connections from one address; above it new ones are closed."),
    string("max.connections.per.ip.overrides", "")
        .cluster_wide()
        .doc(
            "Other limits for single addresses: `address:count`, several with commas. Names of \
             hosts are not looked up.",
        ),
    int("max.connection.creation.rate", INT_MAX)
        .at_least(0)
        .cluster_wide()
        .ignored(reason::CONNECTION_LIMITS)
        .doc("Connections accepted per second."),
    long("connections.max.idle.ms", "600000")
        .doc("A connection without traffic for this long is closed."),
    long("socket.connection.setup.timeout.ms", "10000")
        .ignored(reason::KERNEL_BUFFERS)
        .doc("How long an outgoing connection may take to open."),
    long("socket.connection.setup.timeout.max.ms", "30000")
        .ignored(reason::KERNEL_BUFFERS)
        .doc("The longest that back-off may stretch the opening of an outgoing connection."),
    int("request.timeout.ms", "30000")
        .ignored(reason::REPLICATION)
        .doc("How long a request to another broker may take."),
    int("fetch.max.bytes", "57671680")
        .at_least(1024)
        .doc("The most bytes that one Fetch answers with, whatever the client asks for."),
    int("max.incremental.fetch.session.cache.slots", "1000")
        .at_least(0)
        .doc("Fetch sessions kept at a time; without a free slot clients send full requests."),
    int("max.request.partition.size.limit", "2000")
        .at_least(1)
        .doc("Partitions that one DescribeTopicPartitions answers with."),
    int("fetch.purgatory.purge.interval.requests", "1000")
        .ignored(reason::PURGATORY)
        .doc("Requests between two purges of waiting fetches."),
    int("producer.purgatory.purge.interval.requests", "1000")
        .ignored(reason::PURGATORY)
        .doc("Requests between two purges of waiting produces."),
    int("delete.records.purgatory.purge.interval.requests", "1")
        .ignored(reason::PURGATORY)
        .doc("Requests between two purges of waiting deletions."),
    int("share.fetch.purgatory.purge.interval.requests", "1000")
        .ignored(reason::PURGATORY)
        .doc("Requests between two purges of waiting share fetches."),
    int("telemetry.max.bytes", "1048576")
        .at_least(1)
        .ignored(reason::TELEMETRY)
        .doc("The largest push of client metrics."),
    list("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter")
        .cluster_wide()
        .ignored(reason::JAVA_CLASS)
        .doc("Classes that receive the broker's metrics."),
    list("kafka.metrics.reporters", "")
        .ignored(reason::JAVA_CLASS)
        .doc("Classes that receive the broker's Yammer metrics."),
    int("kafka.metrics.polling.interval.secs", "10")
        .at_least(1)
        .ignored(reason::JAVA_CLASS)
        .doc("How often metrics reporters poll."),
    int("metrics.num.samples", "2")
        .at_least(1)
        .ignored(reason::METRICS)
        .doc("Samples kept for a metric."),
    string("metrics.recording.level", "INFO")
        .ignored(reason::METRICS)
        .doc("The finest level of metrics that is recorded."),
    long("metrics.sample.window.ms", "30000")
        .at_least(1)
        .ignored(reason::METRICS)
        .doc("The span of a metric's sample."),
    list("config.providers", "")
        .cluster_wide()
        .ignored(reason::JAVA_CLASS)
        .doc("Classes that fetch configuration values from elsewhere."),
    class("alter.config.policy.class.name", UNSET)
        .ignored(reason::JAVA_CLASS)
        .doc("A class that judges configuration changes."),
    class("create.topic.policy.class.name", UNSET)
        .ignored(reason::JAVA_CLASS)
        .doc("A class that judges new topics."),
    class("client.quota.callback.class", UNSET)
        .ignored(reason::JAVA_CLASS)
        .doc("A class that decides quotas."),
    string("replica.selector.class", UNSET)
        .ignored(reason::JAVA_CLASS)
        .doc("A class that chooses the replica to read from."),
    boolean("unstable.api.versions.enable", "false")
        .internal()
        .ignored(reason::FOR_TESTS)
        .doc("Serves API versions that Kafka has not finished."),
    boolean("unstable.feature.versions.enable", "false")
        .internal()
        .ignored(reason::FOR_TESTS)
        .doc("Allows feature levels that Kafka has not finished."),
    long("server.max.startup.time.ms", LONG_MAX)
        .at_least(0)
        .internal()
        .ignored(reason::FOR_TESTS)
        .doc("How long the start may take."),
];
