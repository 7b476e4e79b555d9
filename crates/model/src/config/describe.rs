//! What DescribeConfigs answers about a key: value, source, synonyms.
//!
//! Kafka's answer has a quirk that clients see and that we keep: the source is that of the first
//! synonym with the key's own (broker) name. A topic whose `retention.ms` comes from a static
//! `log.retention.hours` therefore reads `DEFAULT_CONFIG` with no synonyms, though the value is right.

use super::key::{ConfigKey, ConfigType, Update};
use super::overrides::Overrides;
use super::resolve::{BrokerLayers, Layer};
use super::{broker_key, topic_keys};

/// Where a value came from; the numbers are those of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// Set on the topic.
    DynamicTopic,
    /// Set for this broker while it ran.
    DynamicBroker,
    /// Set for all brokers while they ran.
    DynamicDefaultBroker,
    /// From the file, the environment or the command line.
    StaticBroker,
    /// Built in.
    Default,
    /// The level of a logger.
    DynamicBrokerLogger,
    /// Set on a subscription to the metrics of clients.
    ClientMetrics,
    /// Set on a group.
    Group,
}

impl ConfigSource {
    /// The number that DescribeConfigs carries.
    pub const fn to_wire(self) -> i8 {
        match self {
            Self::DynamicTopic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicDefaultBroker => 3,
            Self::StaticBroker => 4,
            Self::Default => 5,
            Self::DynamicBrokerLogger => 6,
            Self::ClientMetrics => 7,
            Self::Group => 8,
        }
    }
}

impl From<Layer> for ConfigSource {
    fn from(layer: Layer) -> Self {
        match layer {
            Layer::DynamicBroker => Self::DynamicBroker,
            Layer::DynamicDefault => Self::DynamicDefaultBroker,
            Layer::StaticBroker => Self::StaticBroker,
            Layer::Default => Self::Default,
        }
    }
}

/// A value that would count if the stronger ones were not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The key, which may be another one than was asked for.
    pub name: &'static str,
    /// Its value; `None` when it is a secret.
    pub value: Option<String>,
    /// Where it was set.
    pub source: ConfigSource,
}

/// A key's entry in a DescribeConfigs answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The key.
    pub name: &'static str,
    /// Its value; `None` when it is unset or a secret.
    pub value: Option<String>,
    /// Whether it can't be changed while the broker runs.
    pub is_read_only: bool,
    /// Where the value came from, by Kafka's rule.
    pub source: ConfigSource,
    /// Whether it is a secret.
    pub is_sensitive: bool,
    /// All settings that bear on it, the strongest first.
    pub synonyms: Vec<Synonym>,
    /// Its type.
    pub kind: ConfigType,
    /// Its doc sentence.
    pub documentation: &'static str,
}

impl Described {
    /// Whether somebody set it, anywhere.
    pub fn is_set(&self) -> bool {
        self.synonyms.iter().any(|synonym| synonym.source != ConfigSource::Default)
    }
}

impl BrokerLayers {
    /// The entry of a topic key.
    pub fn describe_topic(&self, topic: &Overrides, key: &'static ConfigKey) -> Described {
        let mut synonyms = Vec::new();
        if let Some(value) = topic.value(key.name) {
            synonyms.push(Synonym {
                name: key.name,
                value: Some(value.to_string()),
                source: ConfigSource::DynamicTopic,
            });
        }
        if let Some(fallback) = key.fallbacks.first() {
            synonyms.extend(self.synonyms(fallback.name));
        }
        let value = self.topic_value(topic, key).map(|value| value.to_string());
        Described { is_read_only: false, ..describe(key, value, synonyms) }
    }

    /// The entry of a group key.
    pub fn describe_group(&self, group: &Overrides, key: &'static ConfigKey) -> Described {
        let mut synonyms = Vec::new();
        if let Some(value) = group.value(key.name) {
            let source = ConfigSource::Group;
            synonyms.push(Synonym { name: key.name, value: Some(value.to_string()), source });
        }
        match (key.fallbacks.first(), key.default) {
            (Some(fallback), _) => synonyms.extend(self.synonyms(fallback.name)),
            // Kafka names the key itself where the broker has none for it.
            (None, Some(default)) => {
                synonyms.push(synonym(key, default.to_owned(), Layer::Default));
            }
            (None, None) => {}
        }
        let value = self.topic_value(group, key).map(|value| value.to_string());
        Described { is_read_only: false, ..describe(key, value, synonyms) }
    }

    /// The entry of a broker key.
    pub fn describe_broker(&self, key: &'static ConfigKey) -> Described {
        let value = self.value(key).map(|(value, _)| value.to_string());
        describe(key, value, self.synonyms(key.name))
    }

    /// The entry of a broker key for the resource "all brokers": `None` unless it is set there.
    pub fn describe_dynamic_default(&self, key: &'static ConfigKey) -> Option<Described> {
        let value = self.dynamic_default.value(key.name)?.to_string();
        let mut synonyms = self.synonyms(key.name);
        synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
        Some(describe(key, Some(value), synonyms))
    }

    /// The settings that bear on a broker key, by layer and then along its chain, from the first
    /// that has the key's own name on.
    fn synonyms(&self, name: &'static str) -> Vec<Synonym> {
        let chain: Vec<&ConfigKey> = chain_of(name);
        let mut synonyms = Vec::new();
        for (layer, overrides) in self.set_layers() {
            for key in &chain {
                let Some(value) = overrides.value(key.name) else { continue };
                synonyms.push(synonym(key, value.to_string(), layer));
            }
        }
        for key in &chain {
            let Some(default) = key.default else { continue };
            synonyms.push(synonym(key, default.to_owned(), Layer::Default));
        }
        let first = synonyms.iter().position(|synonym| synonym.name == name);
        synonyms.split_off(first.unwrap_or(synonyms.len()))
    }
}

/// The entry of a key of a subscription to the metrics of clients. Kafka tells no synonyms of an
/// unset one.
pub fn describe_client_metrics(own: &Overrides, key: &'static ConfigKey) -> Described {
    let source = ConfigSource::ClientMetrics;
    let set = own.value(key.name).map(ToString::to_string);
    let synonyms =
        set.iter().map(|value| Synonym { name: key.name, value: Some(value.clone()), source });
    let synonyms = synonyms.collect();
    let value = set.or_else(|| key.default.map(str::to_owned));
    Described { is_read_only: false, ..describe(key, value, synonyms) }
}

fn synonym(key: &ConfigKey, value: String, layer: Layer) -> Synonym {
    let value = if key.is_sensitive() { None } else { Some(value) };
    Synonym { name: key.name, value, source: layer.into() }
}

fn describe(key: &'static ConfigKey, value: Option<String>, synonyms: Vec<Synonym>) -> Described {
    Described {
        name: key.name,
        value: if key.is_sensitive() { None } else { value },
        is_read_only: key.update == Update::ReadOnly,
        source: synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source),
        is_sensitive: key.is_sensitive(),
        synonyms,
        kind: key.kind,
        documentation: key.doc,
    }
}

/// The broker keys that mean the same thing in other units as `name`, itself included, in the order
/// in which they count: the chain of the topic key that falls back to it.
fn chain_of(name: &str) -> Vec<&'static ConfigKey> {
    let of_topic = topic_keys()
        .map(|key| key.fallbacks)
        .find(|chain| chain.iter().any(|fallback| fallback.name == name));
    match of_topic {
        Some(chain) => chain.iter().filter_map(|fallback| broker_key(fallback.name)).collect(),
        None => broker_key(name).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Scope, topic_key};

    fn set(overrides: &mut Overrides, scope: Scope, name: &str, text: &str) {
        overrides.set(scope, name, text).expect("a good value");
    }

    fn told(described: &Described) -> Vec<String> {
        described
            .synonyms
            .iter()
            .map(|s| format!("{:?}:{}={}", s.source, s.name, s.value.as_deref().unwrap_or("null")))
            .collect()
    }

    /// As Apache Kafka 4.4 answered with the same settings.
    #[test]
    fn a_topic_key_lists_its_synonyms_as_kafka_does() {
        let mut layers = BrokerLayers::default();
        let mut topic = Overrides::default();
        set(&mut topic, Scope::Topic, "retention.ms", "5000");
        let key = topic_key("retention.ms").expect("a key");
        let described = layers.describe_topic(&topic, key);
        assert_eq!(told(&described), ["DynamicTopic:retention.ms=5000"]);

        set(&mut layers.dynamic_broker, Scope::Broker, "log.retention.ms", "77777");
        let described = layers.describe_topic(&topic, key);
        assert_eq!(described.value.as_deref(), Some("5000"));
        assert_eq!(described.source, ConfigSource::DynamicTopic);
        assert_eq!(
            told(&described),
            [
                "DynamicTopic:retention.ms=5000",
                "DynamicBroker:log.retention.ms=77777",
                "Default:log.retention.hours=168",
            ]
        );
    }

    #[test]
    fn a_value_from_another_unit_reads_as_a_default_as_in_kafka() {
        let mut layers = BrokerLayers::default();
        set(&mut layers.static_broker, Scope::Broker, "log.roll.hours", "1");
        let key = topic_key("segment.ms").expect("a key");
        let described = layers.describe_topic(&Overrides::default(), key);
        assert_eq!(described.value.as_deref(), Some("3600000"));
        assert_eq!(described.source, ConfigSource::Default);
        assert!(described.synonyms.is_empty());
    }

    #[test]
    fn broker_keys_tell_their_layers() {
        let mut layers = BrokerLayers::default();
        set(&mut layers.static_broker, Scope::Broker, "listeners", "PLAINTEXT://127.0.0.1:1");
        let described = layers.describe_broker(broker_key("listeners").expect("a key"));
        assert_eq!(
            told(&described),
            [
                "StaticBroker:listeners=PLAINTEXT://127.0.0.1:1",
                "Default:listeners=PLAINTEXT://localhost:9092",
            ]
        );
        // Not as in Kafka: listeners are bound at the start and at no other time.
        assert!(described.is_read_only);

        let described = layers.describe_broker(broker_key("log.roll.ms").expect("a key"));
        assert_eq!((described.value.as_deref(), told(&described)), (None, Vec::new()));
        let described = layers.describe_broker(broker_key("num.partitions").expect("a key"));
        assert!(described.is_read_only);
    }

    #[test]
    fn secrets_are_never_told() {
        let mut layers = BrokerLayers::default();
        set(&mut layers.static_broker, Scope::Broker, "ssl.key.password", "s3cret");
        let described = layers.describe_broker(broker_key("ssl.key.password").expect("a key"));
        assert_eq!((described.value.as_deref(), described.is_sensitive), (None, true));
        assert_eq!(told(&described), ["StaticBroker:ssl.key.password=null"]);
    }

    #[test]
    fn all_brokers_tell_only_what_was_set_for_all() {
        let mut layers = BrokerLayers::default();
        let key = broker_key("max.connections").expect("a key");
        assert_eq!(layers.describe_dynamic_default(key), None);
        set(&mut layers.dynamic_default, Scope::Broker, key.name, "9");
        set(&mut layers.dynamic_broker, Scope::Broker, key.name, "8");
        let described = layers.describe_dynamic_default(key).expect("set");
        assert_eq!(described.value.as_deref(), Some("9"));
        assert_eq!(told(&described), ["DynamicDefaultBroker:max.connections=9"]);
    }
}
