//! A broker's configuration as the code uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::connection_limits::ConnectionLimits;
use super::fsync::FsyncPolicy;
use super::key::Effect;
use super::listener::{Listener, SecurityProtocol};
use super::postgres::PostgresPlace;
use super::resolve::BrokerLayers;
use super::topic_config::StorageEngine;
use super::typed::Reader;
use super::{Value, broker_key, broker_keys};
use crate::{ByteCount, NodeId};

/// A broker's configuration, resolved and checked as a whole. Made by
/// [`BrokerLayers::broker_config`]; defaults of topics are in [`super::TopicConfig`].
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerConfig {
    /// `node.id`.
    pub node_id: NodeId,
    /// `listeners`, without those of the controller.
    pub listeners: Vec<Listener>,
    /// `advertised.listeners`; empty when each client is told the address that it used.
    pub advertised_listeners: Vec<Listener>,
    /// `data.dir`, `log.dirs` or `log.dir`; `None` when none is set.
    pub data_dir: Option<String>,
    /// `storage.default`.
    pub storage_default: StorageEngine,
    /// `storage.file.fsync`.
    pub storage_file_fsync: FsyncPolicy,
    /// `meta.store`.
    pub meta_store: StorageEngine,
    /// `postgres.*`; `None` when no host is named.
    pub postgres: Option<PostgresPlace>,
    /// `num.partitions`.
    pub num_partitions: u32,
    /// `default.replication.factor`.
    pub default_replication_factor: i32,
    /// `replication.factor.lenient`.
    pub replication_factor_lenient: bool,
    /// `auto.create.topics.enable`.
    pub auto_create_topics_enable: bool,
    /// `delete.topic.enable`.
    pub delete_topic_enable: bool,
    /// `socket.request.max.bytes`.
    pub socket_request_max_bytes: ByteCount,
    /// `socket.listen.backlog.size`.
    pub socket_listen_backlog_size: u32,
    /// `max.connections`, `max.connections.per.ip` and its overrides.
    pub connection_limits: ConnectionLimits,
    /// `connections.max.idle.ms`; `None` lets connections idle for ever.
    pub connections_max_idle_ms: Option<u64>,
    /// `fetch.max.bytes`.
    pub fetch_max_bytes: ByteCount,
    /// `max.incremental.fetch.session.cache.slots`.
    pub max_incremental_fetch_session_cache_slots: u32,
    /// `max.request.partition.size.limit`.
    pub max_request_partition_size_limit: u32,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// `producer.id.expiration.check.interval.ms`.
    pub producer_id_expiration_check_interval_ms: u64,
    /// `log.retention.check.interval.ms`.
    pub log_retention_check_interval_ms: u64,
    /// `log.cleaner.enable`.
    pub log_cleaner_enable: bool,
    /// `log.cleaner.threads`: logs that are compacted at a time.
    pub log_cleaner_threads: u32,
    /// `log.cleaner.dedupe.buffer.size`.
    pub log_cleaner_dedupe_buffer_size: ByteCount,
    /// `log.cleaner.io.buffer.size`.
    pub log_cleaner_io_buffer_size: ByteCount,
    /// `log.cleaner.io.buffer.load.factor`.
    pub log_cleaner_io_buffer_load_factor: f64,
    /// `log.cleaner.io.max.bytes.per.second`.
    pub log_cleaner_io_max_bytes_per_second: f64,
    /// `log.cleaner.backoff.ms`.
    pub log_cleaner_backoff_ms: u64,
    /// `deletion.grace.ms`.
    pub deletion_grace_ms: i64,
    /// `deletion.max.bytes.per.sec`; `None` for no limit.
    pub deletion_max_bytes_per_sec: Option<u64>,
    /// `deletion.paused`.
    pub deletion_paused: bool,
    /// `reconciliation.interval.ms`.
    pub reconciliation_interval_ms: u64,
    /// `log.idle.close.ms`; `None` for never.
    pub log_idle_close_ms: Option<u64>,
    /// `quarantine.retention.ms`; `None` for ever.
    pub quarantine_retention_ms: Option<u64>,
    /// `group.initial.rebalance.delay.ms`; below zero counts as zero.
    pub group_initial_rebalance_delay_ms: u64,
    /// `group.min.session.timeout.ms`.
    pub group_min_session_timeout_ms: i64,
    /// `group.max.session.timeout.ms`.
    pub group_max_session_timeout_ms: i64,
    /// `group.max.size`.
    pub group_max_size: u32,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.topic.num.partitions`.
    pub offsets_topic_num_partitions: u32,
    /// `offsets.topic.segment.bytes`.
    pub offsets_topic_segment_bytes: u32,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval_ms: u64,
    /// `offset.metadata.max.bytes`; below zero counts as zero.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.commit.timeout.ms`.
    pub offsets_commit_timeout_ms: u64,
    /// `shutdown.timeout.ms`.
    pub shutdown_timeout_ms: u64,
    /// `http.listeners`; empty for none.
    pub http_listeners: Vec<Listener>,
    /// `logging.level`.
    pub logging_level: String,
    /// `logging.format`.
    pub logging_format: String,
}

/// Values that are good by themselves and not together, or that ask for what is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerConfigError {
    /// The key to change.
    pub name: &'static str,
    /// What is wrong, without the key.
    pub why: String,
}

impl fmt::Display for BrokerConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl std::error::Error for BrokerConfigError {}

impl BrokerLayers {
    /// The broker's configuration; fails when values contradict each other or promise a security
    /// that is not served.
    pub fn broker_config(&self) -> Result<BrokerConfig, BrokerConfigError> {
        let read = Reader(|name| {
            self.value(broker_key(name).expect("a broker key")).map(|(value, _)| value)
        });
        self.refuse_unserved_security()?;
        let listeners = listeners(&read)?;
        Ok(BrokerConfig {
            node_id: NodeId::new(i32::try_from(read.number("node.id")).expect("an int key")),
            advertised_listeners: advertised_listeners(&read, &listeners)?,
            listeners,
            data_dir: data_dir(&read)?,
            storage_default: engine(&read, "storage.default"),
            storage_file_fsync: fsync(&read),
            meta_store: engine(&read, "meta.store"),
            postgres: PostgresPlace::read(&read)?,
            num_partitions: read.count("num.partitions"),
            default_replication_factor: i32::try_from(read.number("default.replication.factor"))
                .expect("an int key"),
            replication_factor_lenient: read.boolean("replication.factor.lenient"),
            auto_create_topics_enable: read.boolean("auto.create.topics.enable"),
            delete_topic_enable: read.boolean("delete.topic.enable"),
            socket_request_max_bytes: read.bytes("socket.request.max.bytes"),
            socket_listen_backlog_size: read.count("socket.listen.backlog.size"),
            connection_limits: ConnectionLimits::read(&read)?,
            connections_max_idle_ms: read.limit("connections.max.idle.ms"),
            fetch_max_bytes: read.bytes("fetch.max.bytes"),
            max_incremental_fetch_session_cache_slots: read
                .count("max.incremental.fetch.session.cache.slots"),
            max_request_partition_size_limit: read.count("max.request.partition.size.limit"),
            producer_id_expiration_ms: read.number("producer.id.expiration.ms"),
            producer_id_expiration_check_interval_ms: read
                .bytes("producer.id.expiration.check.interval.ms")
                .get(),
            log_retention_check_interval_ms: read.bytes("log.retention.check.interval.ms").get(),
            log_cleaner_enable: read.boolean("log.cleaner.enable"),
            log_cleaner_threads: read.count("log.cleaner.threads"),
            log_cleaner_dedupe_buffer_size: read.bytes_or_none("log.cleaner.dedupe.buffer.size"),
            log_cleaner_io_buffer_size: read.bytes("log.cleaner.io.buffer.size"),
            log_cleaner_io_buffer_load_factor: read.double("log.cleaner.io.buffer.load.factor"),
            log_cleaner_io_max_bytes_per_second: read.double("log.cleaner.io.max.bytes.per.second"),
            log_cleaner_backoff_ms: read.bytes("log.cleaner.backoff.ms").get(),
            deletion_grace_ms: read.number("deletion.grace.ms"),
            deletion_max_bytes_per_sec: read.limit("deletion.max.bytes.per.sec"),
            deletion_paused: read.boolean("deletion.paused"),
            reconciliation_interval_ms: read.bytes("reconciliation.interval.ms").get(),
            log_idle_close_ms: read.limit("log.idle.close.ms"),
            quarantine_retention_ms: read.limit("quarantine.retention.ms"),
            group_initial_rebalance_delay_ms: read
                .limit("group.initial.rebalance.delay.ms")
                .unwrap_or(0),
            group_min_session_timeout_ms: read.number("group.min.session.timeout.ms"),
            group_max_session_timeout_ms: read.number("group.max.session.timeout.ms"),
            group_max_size: read.count("group.max.size"),
            offsets_retention_ms: read.number("offsets.retention.minutes").saturating_mul(60_000),
            offsets_topic_num_partitions: read.count("offsets.topic.num.partitions"),
            offsets_topic_segment_bytes: read.count("offsets.topic.segment.bytes"),
            offsets_retention_check_interval_ms: read
                .bytes("offsets.retention.check.interval.ms")
                .get(),
            offset_metadata_max_bytes: read
                .limit("offset.metadata.max.bytes")
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(0),
            offsets_commit_timeout_ms: u64::from(read.count("offsets.commit.timeout.ms")),
            shutdown_timeout_ms: u64::from(read.count("shutdown.timeout.ms")),
            http_listeners: http_listeners(&read)?,
            logging_level: read.text("logging.level"),
            logging_format: read.text("logging.format"),
        })
    }

    /// Nobody may believe that a listener is encrypted or guarded when it is not.
    fn refuse_unserved_security(&self) -> Result<(), BrokerConfigError> {
        for key in broker_keys().filter(|key| key.effect == Effect::UnservedSecurity) {
            let value = self.value(key).map(|(value, _)| value.to_string());
            // An empty value promises as little as none.
            let promises = value.as_deref().filter(|value| !value.is_empty());
            if promises.is_some() && promises != key.default {
                return Err(BrokerConfigError {
                    name: key.name,
                    why: "promises a security that is not served yet; remove it".to_owned(),
                });
            }
        }
        Ok(())
    }
}

fn fsync<F: Fn(&str) -> Option<Value>>(read: &Reader<F>) -> FsyncPolicy {
    FsyncPolicy::parse(&read.text("storage.file.fsync")).expect("the table checks the policy")
}

fn engine<F: Fn(&str) -> Option<Value>>(read: &Reader<F>, name: &str) -> StorageEngine {
    StorageEngine::of_name(&read.text(name)).expect("the table names every engine")
}

fn parse_listeners(
    name: &'static str,
    texts: &[String],
) -> Result<Vec<Listener>, BrokerConfigError> {
    let wrong = |why: String| BrokerConfigError { name, why };
    texts
        .iter()
        .map(|text| Listener::parse(text).map_err(|error| wrong(error.to_string())))
        .collect()
}

fn listeners<F: Fn(&str) -> Option<Value>>(
    read: &Reader<F>,
) -> Result<Vec<Listener>, BrokerConfigError> {
    let wrong = |why: String| BrokerConfigError { name: "listeners", why };
    let protocols = protocol_map(&read.text("listener.security.protocol.map"))?;
    let controllers = controller_names(read);
    let mut listeners = parse_listeners("listeners", &read.list("listeners"))?;
    listeners.retain(|listener| !controllers.contains(&listener.name));
    let mut names = BTreeSet::new();
    let mut addresses = BTreeSet::new();
    for listener in &listeners {
        match protocols.get(&listener.name) {
            None => {
                return Err(wrong(format!(
                    "No security protocol defined for listener {}; add it to \
                     listener.security.protocol.map",
                    listener.name
                )));
            }
            Some(SecurityProtocol::Plaintext) => {}
            Some(_) => {
                return Err(wrong(format!(
                    "{listener} promises a security that is not served yet; only PLAINTEXT is"
                )));
            }
        }
        if !names.insert(&listener.name) {
            return Err(wrong(format!(
                "Each listener must have a different name, listeners: {}",
                listener.name
            )));
        }
        if listener.port != 0 && !addresses.insert((&listener.host, listener.port)) {
            return Err(wrong(format!(
                "Each listener must have a different port, listeners: {}",
                listener.port
            )));
        }
    }
    if listeners.is_empty() {
        return Err(wrong("no listener for clients is left".to_owned()));
    }
    Ok(listeners)
}

fn controller_names<F: Fn(&str) -> Option<Value>>(read: &Reader<F>) -> BTreeSet<String> {
    let names = read.list("controller.listener.names");
    names.iter().map(|name| name.to_ascii_uppercase()).collect()
}

fn advertised_listeners<F: Fn(&str) -> Option<Value>>(
    read: &Reader<F>,
    listeners: &[Listener],
) -> Result<Vec<Listener>, BrokerConfigError> {
    let name = "advertised.listeners";
    let wrong = |why: String| Err(BrokerConfigError { name, why });
    let controllers = controller_names(read);
    let mut advertised = parse_listeners(name, &read.list(name))?;
    advertised.retain(|address| !controllers.contains(&address.name));
    for address in &advertised {
        if !listeners.iter().any(|listener| listener.name == address.name) {
            return wrong(format!("{} is the name of no listener", address.name));
        }
        if matches!(address.host.as_deref(), Some("0.0.0.0" | "::")) {
            return wrong(format!(
                "advertised.listeners cannot use the nonroutable meta-address {}. Use a routable \
                 IP address.",
                address.host.as_deref().unwrap_or_default()
            ));
        }
    }
    Ok(advertised)
}

fn http_listeners<F: Fn(&str) -> Option<Value>>(
    read: &Reader<F>,
) -> Result<Vec<Listener>, BrokerConfigError> {
    let name = "http.listeners";
    let listeners = parse_listeners(name, &read.list(name))?;
    match listeners.iter().find(|listener| listener.name != "HTTP") {
        Some(other) => Err(BrokerConfigError {
            name,
            why: format!("\"{}\" is not served; write http://host:port", other.name),
        }),
        None => Ok(listeners),
    }
}

/// `NAME:PROTOCOL`, several with commas.
fn protocol_map(text: &str) -> Result<BTreeMap<String, SecurityProtocol>, BrokerConfigError> {
    let wrong = |why: String| BrokerConfigError { name: "listener.security.protocol.map", why };
    let mut map = BTreeMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, protocol) = entry
            .rsplit_once(':')
            .ok_or_else(|| wrong(format!("\"{entry}\" is not NAME:PROTOCOL")))?;
        let protocol = SecurityProtocol::of_name(protocol.trim())
            .ok_or_else(|| wrong(format!("No enum constant for security protocol {protocol}")))?;
        map.insert(name.trim().to_ascii_uppercase(), protocol);
    }
    Ok(map)
}

fn data_dir<F: Fn(&str) -> Option<Value>>(
    read: &Reader<F>,
) -> Result<Option<String>, BrokerConfigError> {
    if let Some(folder) = read.text_or_unset("data.dir") {
        return Ok(Some(folder));
    }
    for name in ["log.dirs", "log.dir"] {
        match read.list(name).as_slice() {
            [] => {}
            [folder] => return Ok(Some(folder.clone())),
            folders => {
                let why = format!("names {} folders; there is one data folder", folders.len());
                return Err(BrokerConfigError { name, why });
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Scope;

    fn config(settings: &[(&str, &str)]) -> Result<BrokerConfig, BrokerConfigError> {
        let mut layers = BrokerLayers::default();
        for (name, text) in settings {
            layers.static_broker.set(Scope::Broker, name, text).expect("a good value");
        }
        layers.broker_config()
    }

    #[test]
    fn defaults_serve_everybody_with_one_plain_listener() {
        let config = config(&[]).expect("defaults");
        assert_eq!(config.node_id, NodeId::new(1));
        assert_eq!(
            config.listeners,
            [Listener::parse("PLAINTEXT://localhost:9092").expect("good")]
        );
        assert!(config.advertised_listeners.is_empty());
        assert_eq!(config.data_dir, None);
        assert_eq!(config.storage_file_fsync, FsyncPolicy::Commit);
        assert_eq!(config.connections_max_idle_ms, Some(600_000));
        assert_eq!(config.http_listeners[0].port, 9644);
        assert_eq!(config.deletion_grace_ms, 60_000);
        assert_eq!(config.reconciliation_interval_ms, 3_600_000);
        assert_eq!(config.quarantine_retention_ms, Some(7 * 24 * 3_600_000));
        assert_eq!(config.log_idle_close_ms, Some(60_000));
    }

    #[test]
    fn kafkas_own_server_properties_are_taken() {
        let config = config(&[
            ("process.roles", "broker,controller"),
            ("controller.listener.names", "CONTROLLER"),
            ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
            ("inter.broker.listener.name", "PLAINTEXT"),
            ("advertised.listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
            ("log.dirs", "/var/lib/kafka"),
            ("security.inter.broker.protocol", "PLAINTEXT"),
            ("authorizer.class.name", ""),
        ])
        .expect("taken");
        assert_eq!(config.listeners.len(), 1);
        assert_eq!(config.advertised_listeners[0].host.as_deref(), Some("localhost"));
        assert_eq!(config.data_dir.as_deref(), Some("/var/lib/kafka"));
    }

    #[test]
    fn own_data_dir_wins_over_kafkas() {
        let config = config(&[("data.dir", "/a"), ("log.dirs", "/b")]).expect("good");
        assert_eq!(config.data_dir.as_deref(), Some("/a"));
    }

    #[test]
    fn contradictions_are_refused() {
        for (settings, name, words) in [
            (&[("log.dirs", "/a,/b")][..], "log.dirs", "names 2 folders"),
            (&[("listeners", "foo")], "listeners", "no listener; write NAME://host:port"),
            (&[("listeners", "INTERNAL://:1")], "listeners", "No security protocol defined"),
            (
                &[("listeners", "PLAINTEXT://:1,PLAINTEXT://:2")],
                "listeners",
                "Each listener must have a different name",
            ),
            (
                &[
                    ("listeners", "A://:1,B://:1"),
                    ("listener.security.protocol.map", "A:PLAINTEXT,B:PLAINTEXT"),
                ],
                "listeners",
                "Each listener must have a different port",
            ),
            (
                &[("controller.listener.names", "PLAINTEXT")],
                "listeners",
                "no listener for clients is left",
            ),
            (
                &[("advertised.listeners", "OTHER://a:1")],
                "advertised.listeners",
                "OTHER is the name of no listener",
            ),
            (
                &[("advertised.listeners", "PLAINTEXT://0.0.0.0:1")],
                "advertised.listeners",
                "nonroutable meta-address 0.0.0.0",
            ),
            (
                &[("listener.security.protocol.map", "A:B")],
                "listener.security.protocol.map",
                "No enum constant",
            ),
            (&[("http.listeners", "https://a:1")], "http.listeners", "\"HTTPS\" is not served"),
        ] {
            let error = config(settings).expect_err(words);
            assert_eq!(error.name, name);
            assert!(error.why.contains(words), "{error}");
        }
    }

    #[test]
    fn unserved_security_is_refused_and_its_defaults_are_not() {
        for (name, text) in [
            ("ssl.keystore.location", "/etc/key.jks"),
            ("ssl.client.auth", "required"),
            ("sasl.enabled.mechanisms", "SCRAM-SHA-512"),
            ("sasl.jaas.config", "x required;"),
            ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
            ("super.users", "User:admin"),
        ] {
            let error = config(&[(name, text)]).expect_err(name);
            assert_eq!(error.name, name);
        }
        for (name, text) in [("ssl.client.auth", "none"), ("authorizer.class.name", "")] {
            assert!(config(&[(name, text)]).is_ok(), "{name}");
        }
        let error = config(&[("listeners", "SASL_SSL://:9093")]).expect_err("not served");
        assert!(error.to_string().contains("not served yet"), "{error}");
    }
}
