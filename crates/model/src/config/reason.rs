//! Why a key that we know changes nothing here: clauses that follow "no effect: ".

pub(super) const BACK_PRESSURE: &str =
    "a busy connection is left unread until it has been answered";
pub(super) const CONNECTION_LIMITS: &str = "only max.connections limits connections yet";
pub(super) const COORDINATOR_ROWS: &str = "groups and positions are rows of the metadata store";
pub(super) const DECOMPRESSION: &str = "compressed batches are stored as they came";
pub(super) const FLUSHING: &str = "storage.file.fsync says when records are on disk";
pub(super) const FOR_TESTS: &str = "it serves Kafka's own tests";
pub(super) const GROUPS: &str = "groups of the consumer protocol (KIP-848) are not served yet";
pub(super) const INDEXES: &str = "indexes are derived data of the size that they need";
pub(super) const JAVA_CLASS: &str = "there is no Java class to load";
pub(super) const JITTER: &str = "closing a segment costs nothing that must be spread";
pub(super) const KERNEL_BUFFERS: &str = "the kernel sizes its buffers itself";
pub(super) const METRICS: &str = "metrics are counters without windows";
pub(super) const OLD_NAME: &str = "node.id is its name since Kafka 3.3";
pub(super) const ONE_FOLDER: &str = "there is one data folder";
pub(super) const OLD_KAFKA: &str = "Kafka itself dropped it in 4.0";
pub(super) const PURGATORY: &str = "waiting requests are woken, never searched";
pub(super) const QUORUM: &str = "there is no controller quorum";
pub(super) const QUOTAS: &str = "quotas are not served yet";
pub(super) const REMOVAL: &str = "a dropped segment goes when its last reader is done";
pub(super) const REPLICATION: &str = "one broker leads every partition";
pub(super) const SHARE_GROUPS: &str = "share groups are not served yet";
pub(super) const STREAMS_GROUPS: &str = "streams groups are not served yet";
pub(super) const TELEMETRY: &str = "client metrics are not served yet";
pub(super) const THREADS: &str = "the runtime has one thread per core";
pub(super) const TIERED: &str = "storage.engine says where a topic lives";
pub(super) const TRANSACTIONS: &str = "transactions are not served yet";
