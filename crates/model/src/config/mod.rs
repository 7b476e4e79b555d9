//! Every topic, broker, group and client-metrics config, defined once.
//!
//! A [`ConfigKey`] is a name with its type, default, allowed values, doc sentence and effect.
//! DescribeConfigs, the properties parser, `config reference` and `docs/configuration.md` read the
//! same tables. Values are parsed once, where they enter ([`Overrides`]), and resolved by
//! [`BrokerLayers`]: topic override, dynamic broker, dynamic default, static broker, default; with
//! Kafka's chains of synonyms in between (`retention.ms` ← `log.retention.ms` ←
//! `log.retention.minutes` ← `log.retention.hours`).
//!
//! ```
//! use strandline_model::config::{BrokerLayers, Overrides, Scope};
//!
//! let mut layers = BrokerLayers::default();
//! layers.static_broker.set(Scope::Broker, "log.retention.hours", "24").unwrap();
//! let mut topic = Overrides::default();
//! topic.set(Scope::Topic, "segment.bytes", "1048576").unwrap();
//!
//! let config = layers.topic_config(&topic);
//! assert_eq!(config.retention_ms, Some(86_400_000));
//! ```
//!
//! # Invariants
//! - Each default is a value of its key and is written in canonical form.
//! - Each fallback names a broker key of the same type.
//! - A value inside [`Overrides`] has passed its key's checks.

mod alter;
mod broker_cluster;
mod broker_config;
mod broker_group;
mod broker_log;
mod broker_network;
mod broker_security;
mod broker_streams;
mod broker_transaction;
mod client_metrics;
mod connection_limits;
mod describe;
mod dynamic;
mod fsync;
mod group;
mod group_config;
mod iso_duration;
mod key;
mod legacy;
mod listener;
mod overrides;
mod own;
mod parse;
mod postgres;
mod postgres_tls;
mod reason;
mod reconfigure;
mod reference;
mod resolve;
mod suggest;
mod topic;
mod topic_config;
mod typed;
mod units;
mod value;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use alter::{AlterOp, Alteration, NotAList, alter};
pub use broker_config::{BrokerConfig, BrokerConfigError};
pub use client_metrics::ClientMetricsError;
pub use connection_limits::ConnectionLimits;
pub use describe::{ConfigSource, Described, Synonym, describe_client_metrics};
pub use dynamic::{DynamicError, DynamicLayer};
pub use fsync::FsyncPolicy;
pub use group_config::{GroupConfigError, check_group_tags};
pub use iso_duration::parse_iso_duration_ms;
pub use key::{ConfigKey, ConfigType, Effect, Fallback, Scope, Update};
pub use listener::{Listener, ListenerError, SecurityProtocol};
pub use overrides::{Overrides, SetError};
pub use parse::InvalidValue;
pub use postgres::PostgresPlace;
pub use postgres_tls::{ClientCertificate, PostgresTls, PostgresTlsMode, is_on_this_machine};
pub use reference::reference_markdown;
pub use resolve::{BrokerLayers, Layer};
pub use suggest::nearest;
pub use topic_config::{
    CleanupPolicy, CompressionType, StorageEngine, TimestampType, TopicConfig, TopicConfigError,
};
pub use value::Value;

/// A topic's configuration takes thirty look-ups and a start may resolve thousands of topics.
static TOPIC_KEYS_BY_NAME: LazyLock<BTreeMap<&str, &ConfigKey>> =
    LazyLock::new(|| topic_keys().map(|key| (key.name, key)).collect());
static BROKER_KEYS_BY_NAME: LazyLock<BTreeMap<&str, &ConfigKey>> =
    LazyLock::new(|| broker_keys().map(|key| (key.name, key)).collect());

static GROUP_KEYS_BY_NAME: LazyLock<BTreeMap<&str, &ConfigKey>> =
    LazyLock::new(|| group_keys().map(|key| (key.name, key)).collect());

/// Every group key.
pub fn group_keys() -> impl Iterator<Item = &'static ConfigKey> {
    group::KEYS.iter()
}

/// Every key of a subscription to the metrics of clients.
pub fn client_metrics_keys() -> impl Iterator<Item = &'static ConfigKey> {
    client_metrics::KEYS.iter()
}

/// Every topic key: Kafka's, then our own.
pub fn topic_keys() -> impl Iterator<Item = &'static ConfigKey> {
    topic::KEYS.iter().chain(own::TOPIC_KEYS)
}

/// Every broker key: our own, Kafka's by area, and those that only old files carry.
pub fn broker_keys() -> impl Iterator<Item = &'static ConfigKey> {
    broker_areas().flat_map(|(_, keys)| keys)
}

/// The broker keys by area, in the order of the reference.
fn broker_areas() -> impl Iterator<Item = (&'static str, &'static [ConfigKey])> {
    [
        ("Strandline's own", own::BROKER_KEYS),
        ("Identity, listeners, requests", broker_network::KEYS),
        ("Topics and logs", broker_log::KEYS),
        ("Consumer groups and share groups", broker_group::KEYS),
        ("Streams groups", broker_streams::KEYS),
        ("Transactions", broker_transaction::KEYS),
        ("Replication, quotas, quorum, tiered storage", broker_cluster::KEYS),
        ("Security", broker_security::KEYS),
        ("Gone since Kafka 4", legacy::KEYS),
    ]
    .into_iter()
}

/// The topic key of this name.
pub fn topic_key(name: &str) -> Option<&'static ConfigKey> {
    TOPIC_KEYS_BY_NAME.get(name).copied()
}

/// The broker key of this name.
pub fn broker_key(name: &str) -> Option<&'static ConfigKey> {
    BROKER_KEYS_BY_NAME.get(name).copied()
}

/// The group key of this name.
pub fn group_key(name: &str) -> Option<&'static ConfigKey> {
    GROUP_KEYS_BY_NAME.get(name).copied()
}

/// The key of this name in its scope.
pub fn key(scope: Scope, name: &str) -> Option<&'static ConfigKey> {
    match scope {
        Scope::Topic => topic_key(name),
        Scope::Broker => broker_key(name),
        Scope::Group => group_key(name),
        Scope::ClientMetrics => client_metrics_keys().find(|key| key.name == name),
    }
}

/// The known name nearest to a wrong one, if it may be a typo.
pub fn suggest(scope: Scope, name: &str) -> Option<&'static str> {
    match scope {
        Scope::Topic => nearest(name, topic_keys().map(|key| key.name)),
        Scope::Broker => nearest(name, broker_keys().map(|key| key.name)),
        Scope::Group => nearest(name, group_keys().map(|key| key.name)),
        Scope::ClientMetrics => nearest(name, client_metrics_keys().map(|key| key.name)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all_keys() -> impl Iterator<Item = &'static ConfigKey> {
        topic_keys().chain(broker_keys()).chain(group_keys()).chain(client_metrics_keys())
    }

    #[test]
    fn every_default_is_a_canonical_value_of_its_key() {
        for key in all_keys() {
            let Some(default) = key.default else { continue };
            let value = key.parse(default).unwrap_or_else(|invalid| panic!("{invalid}"));
            assert_eq!(value.to_string(), default, "{}", key.name);
        }
    }

    #[test]
    fn names_are_unique_in_their_scope() {
        for names in [
            topic_keys().map(|key| key.name).collect::<Vec<_>>(),
            broker_keys().map(|key| key.name).collect(),
            group_keys().map(|key| key.name).collect(),
            client_metrics_keys().map(|key| key.name).collect(),
        ] {
            let unique: BTreeSet<_> = names.iter().collect();
            assert_eq!(unique.len(), names.len());
        }
    }

    #[test]
    fn every_fallback_is_a_broker_key_of_the_same_kind() {
        for key in all_keys() {
            for fallback in key.fallbacks {
                let broker = broker_key(fallback.name)
                    .unwrap_or_else(|| panic!("{} falls back to nothing", key.name));
                let is_number =
                    |key: &ConfigKey| matches!(key.kind, ConfigType::Int | ConfigType::Long);
                let is_item = fallback.conversion == key::Conversion::FirstItem
                    && broker.kind == ConfigType::List;
                assert!(
                    broker.kind == key.kind || is_item || (is_number(broker) && is_number(key)),
                    "{} <- {}",
                    key.name,
                    fallback.name
                );
                assert!(broker.fallbacks.is_empty(), "chains are flat: {}", key.name);
            }
        }
    }

    #[test]
    fn a_topic_default_is_the_default_of_its_chain() {
        let layers = BrokerLayers::default();
        for key in topic_keys().chain(group_keys()).filter(|key| !key.fallbacks.is_empty()) {
            let resolved = layers.topic_value(&Overrides::default(), key);
            assert_eq!(
                resolved.map(|value| value.to_string()).as_deref(),
                key.default,
                "{}",
                key.name
            );
        }
    }

    #[test]
    fn every_key_has_a_sentence() {
        for key in all_keys() {
            assert!(key.doc.ends_with('.') && key.doc.len() > 10, "{}: {}", key.name, key.doc);
        }
    }

    #[test]
    fn typos_find_their_key() {
        assert_eq!(suggest(Scope::Broker, "log.retention.mss"), Some("log.retention.ms"));
        assert_eq!(suggest(Scope::Topic, "retention.mss"), Some("retention.ms"));
        assert_eq!(suggest(Scope::Broker, "zzzzzzzzzzzz"), None);
    }
}
