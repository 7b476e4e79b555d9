//! Keys that Kafka does not have.

use super::fsync::FsyncPolicy;
use super::key::{ConfigKey, UNSET, boolean, int, list, long, password, same, string};
use super::postgres_tls;
use super::value::Value;

/// The engines that `storage.engine` may name.
const ENGINES: &[&str] = &["file", "memory", "postgres"];

pub(super) const TOPIC_KEYS: &[ConfigKey] = &[
    string("storage.engine", "file").one_of(ENGINES).falls_back_to(&[same("storage.default")]).doc(
        "Where the topic's records live. Fixed when the topic is made; another value is refused \
         afterwards.",
    ),
    long("retention.records", "-1")
        .at_least(-1)
        .falls_back_to(&[same("log.retention.records")])
        .doc("The most records of a partition: the oldest segments go while there are more, never the newest; -1 for no limit."),
    boolean("retention.bytes.floor", "false")
        .falls_back_to(&[same("log.retention.bytes.floor")])
        .doc(
            "Apache Kafka's reading of `retention.bytes`: a segment goes only when what is left is \
             still at or above the limit.",
        ),
    boolean("validate.compressed", "false")
        .falls_back_to(&[same("log.validate.compressed")])
        .doc("Whether compressed batches are decompressed and checked record by record."),
];

pub(super) const BROKER_KEYS: &[ConfigKey] = &[
    string("data.dir", UNSET).not_empty().doc(
        "The data folder. Unset: `log.dirs`, else `log.dir`, else `strandline-data` in the \
         working folder.",
    ),
    string("storage.default", "file").one_of(ENGINES).doc("Default of `storage.engine`."),
    string("storage.file.fsync", "commit")
        .check("commit, interval:DURATION or never", is_fsync_policy)
        .doc(
            "When the file engine makes records durable: `commit` before each acknowledgement, \
             `interval:100ms` in the background, `never` when the kernel pleases.",
        ),
    string("meta.store", "file").one_of(ENGINES).doc("Where topics, configs and offsets are kept."),
    string("postgres.host", UNSET).not_empty().doc(
        "The PostgreSQL server of the engine `postgres`: a name, an address, or the folder of a \
         Unix socket. Unset: there is no such engine. One broker uses a schema.",
    ),
    int("postgres.port", "5432").between(1, 65535).doc("The port of the server."),
    string("postgres.user", "strandline").not_empty().doc("Who connects to it."),
    string("postgres.database", "strandline").not_empty().doc("The database, which must exist."),
    string("postgres.schema", "strandline").not_empty().doc(
        "The schema that holds the engine's tables, which are made when they are missing: \
         lower-case letters, digits and `_`.",
    ),
    password("postgres.password", UNSET).doc(
        "The user's password. Better in the environment (`STRANDLINE_POSTGRES_PASSWORD`) or in a \
         file than in the properties.",
    ),
    string("postgres.password.file", UNSET).not_empty().doc(
        "A file that holds the user's password and nothing else; read for each new connection.",
    ),
    string("postgres.ssl.mode", "auto").one_of(postgres_tls::MODES).doc(
        "`disable`: nothing is encrypted; `require`: encrypted, the server may be anybody; \
         `verify-ca`: its certificate has a trusted root; `verify-full`: and names \
         `postgres.host`. `auto`: `disable` on a Unix socket and on loopback, else `verify-full`. \
         Never less than was asked for.",
    ),
    string("postgres.ssl.root.cert.file", UNSET)
        .not_empty()
        .doc("A PEM file of the root certificates that are trusted. Unset: those of the system."),
    string("postgres.ssl.cert.file", UNSET)
        .not_empty()
        .doc("A PEM file of our own certificate, for a server that asks for one."),
    string("postgres.ssl.key.file", UNSET)
        .not_empty()
        .doc("A PEM file of its private key, which is not encrypted."),
    int("postgres.append.connections", "2").between(1, 64).doc(
        "Connections that append, each for its share of the partitions. What waits for one is \
         committed together: few make large commits that cost little, more of them use a server \
         with many processors, or hide a network's way to it.",
    ),
    int("postgres.read.lease.ms", "10000").between(1000, 600_000).doc(
        "For how long records are read from memory after the last sign of life from the database: \
         somebody else may have changed them by then. The database is asked five times as often.",
    ),
    long("log.retention.records", "-1")
        .at_least(-1)
        .cluster_wide()
        .doc("Default of `retention.records`."),
    boolean("log.retention.bytes.floor", "false")
        .cluster_wide()
        .doc("Default of `retention.bytes.floor`."),
    boolean("log.validate.compressed", "false")
        .cluster_wide()
        .doc("Default of `validate.compressed`."),
    boolean("replication.factor.lenient", "false").doc(
        "Whether a topic may ask for several replicas and get one: for test suites that were \
         written for clusters.",
    ),
    long("deletion.grace.ms", "60000").at_least(0).cluster_wide().doc(
        "How long a deleted topic's records stay on disk, and the topic can be brought back \
             (`strandline topic undelete`); 0 removes them at once.",
    ),
    long("deletion.max.bytes.per.sec", "-1")
        .unlimited_or_positive()
        .cluster_wide()
        .doc("The most bytes of deleted topics that are removed in a second; -1 for no limit."),
    boolean("deletion.paused", "false")
        .cluster_wide()
        .doc("Whether the removal of deleted topics rests: names are free, bytes stay."),
    long("reconciliation.interval.ms", "3600000").at_least(1000).cluster_wide().doc(
        "How often what the storage engines hold is compared with what metadata says, both ways; \
         the first time is right after the start.",
    ),
    long("log.idle.close.ms", "60000").unlimited_or_positive().cluster_wide().doc(
        "How long nobody must have used a partition before its log is closed: memory and \
         descriptors are given back, and the next use opens it again. It happens within twice that \
         time; -1 for never.",
    ),
    long("quarantine.retention.ms", "604800000").at_least(-1).cluster_wide().doc(
        "How long logs that no topic knows are kept in quarantine before they are removed; \
         -1 for ever.",
    ),
    list("http.listeners", "http://localhost:9644")
        .doc("Where health and metrics are served: `http://host:port`; empty for nowhere."),
    string("advertised.mode", "auto")
        .one_of(&["auto"])
        .doc("How addresses are found when `advertised.listeners` is not set."),
    int("shutdown.timeout.ms", "30000")
        .at_least(0)
        .doc("How long a stop waits for requests under way."),
    string("logging.level", "info")
        .one_of(&["off", "error", "warn", "info", "debug", "trace"])
        .doc("The lowest level that is logged."),
    string("logging.format", "auto")
        .one_of(&["auto", "text", "json"])
        .doc("How log lines look: `auto` is text on a terminal and JSON elsewhere."),
];

fn is_fsync_policy(value: &Value) -> bool {
    matches!(value, Value::Text(text) if FsyncPolicy::parse(text).is_some())
}
