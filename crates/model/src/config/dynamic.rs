//! Broker configs that are set while the broker runs (KIP-226): which may be, and where.
//!
//! The order of the checks is Kafka's; the first that fails is told.

use std::collections::BTreeMap;
use std::fmt;

use super::broker_config::{BrokerConfig, BrokerConfigError};
use super::broker_key;
use super::key::{Effect, Scope, Update};
use super::overrides::{Overrides, SetError};
use super::parse::InvalidValue;
use super::resolve::BrokerLayers;
use super::suggest;

/// For whom a broker config is set while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DynamicLayer {
    /// For all brokers.
    Default,
    /// For this broker.
    Broker,
}

/// Why broker configs can't be set while the broker runs. In Kafka's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DynamicError {
    /// There is no such key. Kafka keeps it unseen, for plug-ins that may know it. Here are none,
    /// and a key that does nothing for want of a letter would be found out too late.
    Unknown(SetError),
    /// Keys that only a restart changes.
    ReadOnly(Vec<String>),
    /// Keys that only make sense for one listener, which are named with its prefix.
    PerListener(Vec<String>),
    /// A value that its key does not take.
    Invalid(InvalidValue),
    /// Keys that are set for one broker at a time.
    PerBroker(Vec<String>),
    /// Values that are good by themselves and not together.
    Conflict(BrokerConfigError),
    /// Values that a broker may start with and not change to while it runs, with the reason.
    Change(String),
}

impl fmt::Display for DynamicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) => error.fmt(f),
            Self::ReadOnly(names) => {
                write!(f, "Cannot update these configs dynamically: [{}]", names.join(", "))
            }
            Self::PerListener(names) => write!(
                f,
                "These security configs can be dynamically updated only per-listener using the \
                 listener prefix: [{}]",
                names.join(", ")
            ),
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::PerBroker(names) => write!(
                f,
                "Cannot update these configs at default cluster level, broker id must be \
                 specified: [{}]",
                names.join(", ")
            ),
            Self::Conflict(error) => error.fmt(f),
            // Kafka puts the text of one exception into another.
            Self::Change(why) => write!(
                f,
                "Invalid value org.apache.kafka.common.config.ConfigException: {why} for \
                 configuration Invalid dynamic configuration"
            ),
        }
    }
}

impl std::error::Error for DynamicError {}

impl BrokerLayers {
    /// These layers with `texts` as all that is set in `layer`, and the configuration that they
    /// come to.
    pub fn with_dynamic(
        &self,
        layer: DynamicLayer,
        texts: &BTreeMap<String, String>,
    ) -> Result<(Self, BrokerConfig), DynamicError> {
        let overrides = parse_dynamic(layer, texts)?;
        let mut layers = self.clone();
        match layer {
            DynamicLayer::Default => layers.dynamic_default = overrides,
            DynamicLayer::Broker => layers.dynamic_broker = overrides,
        }
        let config = layers.broker_config().map_err(DynamicError::Conflict)?;
        Ok((layers, config))
    }
}

fn parse_dynamic(
    layer: DynamicLayer,
    texts: &BTreeMap<String, String>,
) -> Result<Overrides, DynamicError> {
    let mut keys = Vec::with_capacity(texts.len());
    for (name, text) in texts {
        let key = broker_key(name).ok_or_else(|| {
            DynamicError::Unknown(SetError::UnknownKey {
                scope: Scope::Broker,
                name: name.clone(),
                suggestion: suggest(Scope::Broker, name),
            })
        })?;
        keys.push((key, text));
    }
    let names = |wanted: &dyn Fn(&super::ConfigKey) -> bool| -> Vec<String> {
        let found = keys.iter().filter(|(key, _)| wanted(key));
        found.map(|(key, _)| key.name.to_owned()).collect()
    };
    let read_only = names(&|key| key.update == Update::ReadOnly);
    if !read_only.is_empty() {
        return Err(DynamicError::ReadOnly(read_only));
    }
    let per_listener =
        names(&|key| key.effect == Effect::UnservedSecurity && key.name.starts_with("ssl."));
    if !per_listener.is_empty() {
        return Err(DynamicError::PerListener(per_listener));
    }
    let mut overrides = Overrides::default();
    for (key, text) in &keys {
        overrides.insert(key, key.parse(text).map_err(DynamicError::Invalid)?);
    }
    let per_broker = names(&|key| key.update == Update::PerBroker);
    if layer == DynamicLayer::Default && !per_broker.is_empty() {
        return Err(DynamicError::PerBroker(per_broker));
    }
    Ok(overrides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(layer: DynamicLayer, settings: &[(&str, &str)]) -> Result<BrokerLayers, String> {
        let texts = settings.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let set = BrokerLayers::default().with_dynamic(layer, &texts.collect());
        set.map(|(layers, _)| layers).map_err(|error| error.to_string())
    }

    /// As Apache Kafka 4.4 answered, but for the unknown key, which it keeps.
    #[test]
    fn what_a_running_broker_refuses_is_told_in_kafkas_words() {
        for (layer, settings, words) in [
            (
                DynamicLayer::Broker,
                &[("num.partitions", "3")][..],
                "Cannot update these configs dynamically: [num.partitions]",
            ),
            (
                DynamicLayer::Default,
                &[
                    ("num.partitions", "3"),
                    ("log.retention.hours", "3"),
                    ("message.max.bytes", "x"),
                ],
                "Cannot update these configs dynamically: [log.retention.hours, num.partitions]",
            ),
            (
                DynamicLayer::Broker,
                &[("ssl.keystore.location", "x")],
                "These security configs can be dynamically updated only per-listener using the \
                 listener prefix: [ssl.keystore.location]",
            ),
            (
                DynamicLayer::Broker,
                &[("message.max.bytes", "x")],
                "Invalid value x for configuration message.max.bytes: Not a number of type INT",
            ),
            (
                DynamicLayer::Default,
                &[("cordoned.log.dirs", "*")],
                "Cannot update these configs at default cluster level, broker id must be \
                 specified: [cordoned.log.dirs]",
            ),
            (
                DynamicLayer::Broker,
                &[("message.max.byte", "1")],
                "Unknown broker config name: message.max.byte (did you mean message.max.bytes?)",
            ),
            (
                DynamicLayer::Broker,
                &[("sasl.enabled.mechanisms", "PLAIN")],
                "sasl.enabled.mechanisms: promises a security that is not served yet; remove it",
            ),
        ] {
            assert_eq!(set(layer, settings).expect_err("refused"), words, "{settings:?}");
        }
    }

    #[test]
    fn what_is_set_replaces_the_whole_layer() {
        let layers = set(DynamicLayer::Default, &[("message.max.bytes", "5")]).expect("good");
        let key = broker_key("message.max.bytes").expect("a key");
        assert_eq!(layers.value(key).map(|(value, _)| value.to_string()).as_deref(), Some("5"));
        let (layers, _) =
            layers.with_dynamic(DynamicLayer::Default, &BTreeMap::new()).expect("good");
        assert_eq!(layers, BrokerLayers::default());
    }
}
