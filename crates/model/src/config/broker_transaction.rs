//! Broker configs: transactions.

use super::key::{ConfigKey, boolean, int, short};
use super::reason;

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    int("transaction.max.timeout.ms", "900000")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("The longest timeout that a transaction may ask for."),
    int("transactional.id.expiration.ms", "604800000")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("How long an unused transactional id is remembered."),
    int("transaction.state.log.num.partitions", "50")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("Partitions of the transaction topic."),
    short("transaction.state.log.replication.factor", "3")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("Replication factor of the transaction topic."),
    int("transaction.state.log.min.isr", "2")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("`min.insync.replicas` of the transaction topic."),
    int("transaction.state.log.segment.bytes", "104857600")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("Segment size of the transaction topic."),
    int("transaction.state.log.load.buffer.size", "5242880")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("Bytes read at a time when transactions are loaded."),
    int("transaction.abort.timed.out.transaction.cleanup.interval.ms", "10000")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("How often transactions past their timeout are looked for."),
    int("transaction.remove.expired.transaction.cleanup.interval.ms", "3600000")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("How often expired transactional ids are looked for."),
    boolean("transaction.partition.verification.enable", "true")
        .cluster_wide()
        .ignored(reason::TRANSACTIONS)
        .doc("Whether a transactional batch must belong to an open transaction."),
    boolean("transaction.two.phase.commit.enable", "false")
        .ignored(reason::TRANSACTIONS)
        .doc("Whether an external coordinator may hold transactions open."),
    int("add.partitions.to.txn.retry.backoff.ms", "20")
        .at_least(1)
        .ignored(reason::TRANSACTIONS)
        .doc("Time between two attempts to add a partition to a transaction."),
    int("add.partitions.to.txn.retry.backoff.max.ms", "100")
        .at_least(0)
        .ignored(reason::TRANSACTIONS)
        .doc("How long adding a partition to a transaction is tried."),
];
