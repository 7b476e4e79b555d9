//! Broker keys of Kafka 3 that Kafka 4 no longer has and that old files still carry.

use super::key::{ConfigKey, UNSET, boolean, int, long, string};
use super::reason;

pub(super) const KEYS: &[ConfigKey] = &[
    string("zookeeper.connect", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Where ZooKeeper was."),
    int("zookeeper.connection.timeout.ms", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("How long connecting to ZooKeeper could take."),
    int("zookeeper.session.timeout.ms", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("How long ZooKeeper waited for a silent broker."),
    int("zookeeper.max.in.flight.requests", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Requests to ZooKeeper under way at a time."),
    boolean("zookeeper.metadata.migration.enable", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Whether metadata moved away from ZooKeeper."),
    boolean("broker.id.generation.enable", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Whether ZooKeeper chose the broker's id."),
    int("reserved.broker.max.id", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("The highest id that was not chosen by ZooKeeper."),
    string("inter.broker.protocol.version", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("The version that brokers spoke among themselves."),
    string("log.message.format.version", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("The format that records were stored in."),
    boolean("log.message.downconversion.enable", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Whether old clients got old formats."),
    long("log.message.timestamp.difference.max.ms", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("How far a record's timestamp could lie from the broker's clock."),
    int("leader.imbalance.per.broker.percentage", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("How many leaders could be away from their preferred broker."),
    int("controlled.shutdown.max.retries", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("How often moving leadership away was tried."),
    long("controlled.shutdown.retry.backoff.ms", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Time between two such attempts."),
    boolean("group.coordinator.new.enable", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Whether the new group coordinator was used."),
    int("offsets.commit.required.acks", UNSET)
        .ignored(reason::OLD_KAFKA)
        .internal()
        .doc("Acknowledgements that a commit waited for."),
];
