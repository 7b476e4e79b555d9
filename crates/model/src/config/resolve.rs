//! Which value counts: the layers of settings, one over the other.
//!
//! Kafka merges by name first (dynamic broker over dynamic default over static over built-in) and
//! walks a chain of synonyms afterwards. So `log.retention.ms`, set anywhere, beats
//! `log.retention.hours`, set anywhere else.

use super::broker_key;
use super::key::ConfigKey;
use super::overrides::Overrides;
use super::value::Value;

/// Where the value of a broker key came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Set for this broker while it ran.
    DynamicBroker,
    /// Set for all brokers while they ran.
    DynamicDefault,
    /// From the file, the environment or the command line.
    StaticBroker,
    /// Built in.
    Default,
}

/// What was set for a broker, by where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokerLayers {
    /// File, environment and command line.
    pub static_broker: Overrides,
    /// For all brokers, while running.
    pub dynamic_default: Overrides,
    /// For this broker, while running.
    pub dynamic_broker: Overrides,
}

impl BrokerLayers {
    /// The layers with something set, the strongest first.
    pub(super) fn set_layers(&self) -> [(Layer, &Overrides); 3] {
        [
            (Layer::DynamicBroker, &self.dynamic_broker),
            (Layer::DynamicDefault, &self.dynamic_default),
            (Layer::StaticBroker, &self.static_broker),
        ]
    }

    /// The value of a broker key by itself, without synonyms, and its layer; `None` when unset.
    pub fn value(&self, key: &ConfigKey) -> Option<(Value, Layer)> {
        for (layer, overrides) in self.set_layers() {
            if let Some(value) = overrides.value(key.name) {
                return Some((value.clone(), layer));
            }
        }
        default_value(key).map(|value| (value, Layer::Default))
    }

    /// The value of a topic key: the topic's own, else the first of its chain, else the default.
    pub fn topic_value(&self, topic: &Overrides, key: &ConfigKey) -> Option<Value> {
        if let Some(value) = topic.value(key.name) {
            return Some(value.clone());
        }
        for fallback in key.fallbacks {
            let broker = broker_key(fallback.name).expect("a fallback names a broker key");
            if let Some((value, _)) = self.value(broker) {
                return Some(fallback.convert(&value));
            }
        }
        default_value(key)
    }
}

fn default_value(key: &ConfigKey) -> Option<Value> {
    key.default.map(|text| key.parse(text).expect("a default is a value of its key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Scope, topic_key};

    fn set(overrides: &mut Overrides, scope: Scope, name: &str, text: &str) {
        overrides.set(scope, name, text).expect("a good value");
    }

    #[test]
    fn the_strongest_layer_counts() {
        let mut layers = BrokerLayers::default();
        let key = broker_key("log.retention.ms").expect("a key");
        assert_eq!(layers.value(key), None);
        set(&mut layers.static_broker, Scope::Broker, key.name, "1");
        assert_eq!(layers.value(key), Some((Value::Number(1), Layer::StaticBroker)));
        set(&mut layers.dynamic_default, Scope::Broker, key.name, "2");
        assert_eq!(layers.value(key), Some((Value::Number(2), Layer::DynamicDefault)));
        set(&mut layers.dynamic_broker, Scope::Broker, key.name, "3");
        assert_eq!(layers.value(key), Some((Value::Number(3), Layer::DynamicBroker)));
    }

    #[test]
    fn a_topic_walks_the_chain_of_synonyms() {
        let mut layers = BrokerLayers::default();
        let mut topic = Overrides::default();
        let key = topic_key("retention.ms").expect("a key");
        let value = |layers: &BrokerLayers, topic: &Overrides| layers.topic_value(topic, key);
        assert_eq!(value(&layers, &topic), Some(Value::Number(604_800_000)));
        set(&mut layers.static_broker, Scope::Broker, "log.retention.hours", "2");
        assert_eq!(value(&layers, &topic), Some(Value::Number(7_200_000)));
        set(&mut layers.static_broker, Scope::Broker, "log.retention.minutes", "3");
        assert_eq!(value(&layers, &topic), Some(Value::Number(180_000)));
        set(&mut layers.dynamic_default, Scope::Broker, "log.retention.ms", "4");
        assert_eq!(value(&layers, &topic), Some(Value::Number(4)));
        set(&mut topic, Scope::Topic, "retention.ms", "5");
        assert_eq!(value(&layers, &topic), Some(Value::Number(5)));
    }

    #[test]
    fn a_negative_span_of_hours_is_unlimited() {
        let mut layers = BrokerLayers::default();
        set(&mut layers.static_broker, Scope::Broker, "log.retention.hours", "-1");
        let key = topic_key("retention.ms").expect("a key");
        assert_eq!(layers.topic_value(&Overrides::default(), key), Some(Value::Number(-1)));
    }
}
