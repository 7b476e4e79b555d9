//! Configuration of topics, brokers and groups: read and changed, key by key.

use std::fmt;

use strandline_wire::{KafkaString, describe_configs, incremental_alter_configs};

use crate::{Client, ClientError};

/// What has configuration of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigResource {
    /// A topic.
    Topic(String),
    /// A broker, by its id.
    Broker(i32),
    /// All brokers: what holds for each that has no value of its own.
    Cluster,
    /// A group.
    Group(String),
    /// A subscription to clients' metrics.
    ClientMetrics(String),
}

/// One key of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key.
    pub name: String,
    /// Its value; `None` when it has none, or the broker keeps it to itself.
    pub value: Option<String>,
    /// Where the value comes from, by Kafka's number: 1 is the topic itself, 5 the default.
    pub source: i8,
    /// Whether it can't be changed.
    pub read_only: bool,
    /// Whether the broker keeps the value to itself.
    pub sensitive: bool,
}

impl ConfigEntry {
    /// What people read of the value.
    pub fn shown(&self) -> &str {
        match &self.value {
            Some(value) => value,
            None if self.sensitive => "[hidden]",
            None => "[not set]",
        }
    }
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// The key.
    pub name: String,
    /// Its new value; `None` takes the value away, so that the next source counts again.
    pub value: Option<String>,
}

impl ConfigResource {
    /// Kafka's numbers.
    const fn kind(&self) -> i8 {
        match self {
            Self::Topic(_) => 2,
            Self::Broker(_) | Self::Cluster => 4,
            Self::ClientMetrics(_) => 16,
            Self::Group(_) => 32,
        }
    }

    fn name(&self) -> KafkaString {
        match self {
            Self::Topic(name) | Self::Group(name) | Self::ClientMetrics(name) => {
                KafkaString::from(name.clone())
            }
            Self::Broker(id) => KafkaString::from(id.to_string()),
            Self::Cluster => KafkaString::default(),
        }
    }
}

impl fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic(name) => write!(f, "topic {name}"),
            Self::Broker(id) => write!(f, "broker {id}"),
            Self::Cluster => f.write_str("cluster"),
            Self::Group(name) => write!(f, "group {name}"),
            Self::ClientMetrics(name) => write!(f, "client metrics {name}"),
        }
    }
}

impl Client {
    /// The whole configuration of a topic, defaults included.
    pub async fn topic_config(&mut self, topic: &str) -> Result<Vec<ConfigEntry>, ClientError> {
        self.describe_configs(&ConfigResource::Topic(topic.to_owned())).await
    }

    /// The whole configuration of a resource, defaults included, by key.
    pub async fn describe_configs(
        &mut self,
        resource: &ConfigResource,
    ) -> Result<Vec<ConfigEntry>, ClientError> {
        let request = || describe_configs::Request {
            resources: vec![describe_configs::DescribeConfigsResource {
                resource_type: resource.kind(),
                resource_name: resource.name(),
                configuration_keys: None,
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = match resource {
            // A broker knows only its own.
            ConfigResource::Broker(id) => self.call_node(*id, i16::MAX, |_| request()).await?,
            _ => self.call(&request()).await?,
        };
        let mut entries = Vec::new();
        for result in response.results {
            let message = result.error_message.as_ref().map(KafkaString::as_str);
            ClientError::check(result.error_code, || resource.to_string(), message)?;
            entries.extend(result.configs.into_iter().map(|entry| ConfigEntry {
                name: entry.name.to_string(),
                value: entry.value.map(|value| value.to_string()),
                source: entry.config_source,
                read_only: entry.read_only,
                sensitive: entry.is_sensitive,
            }));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Changes keys of a resource, all or none; or only checks whether it could be done.
    pub async fn alter_configs(
        &mut self,
        resource: &ConfigResource,
        changes: &[ConfigChange],
        validate_only: bool,
    ) -> Result<(), ClientError> {
        const SET: i8 = 0;
        const DELETE: i8 = 1;
        let change = |change: &ConfigChange| incremental_alter_configs::AlterableConfig {
            name: KafkaString::from(change.name.clone()),
            config_operation: if change.value.is_some() { SET } else { DELETE },
            value: change.value.clone().map(KafkaString::from),
            ..Default::default()
        };
        let request = || incremental_alter_configs::Request {
            resources: vec![incremental_alter_configs::AlterConfigsResource {
                resource_type: resource.kind(),
                resource_name: resource.name(),
                configs: changes.iter().map(change).collect(),
                ..Default::default()
            }],
            validate_only,
            ..Default::default()
        };
        let response = match resource {
            ConfigResource::Broker(id) => self.call_node(*id, i16::MAX, |_| request()).await?,
            _ => self.call(&request()).await?,
        };
        for result in response.responses {
            let message = result.error_message.as_ref().map(KafkaString::as_str);
            ClientError::check(result.error_code, || resource.to_string(), message)?;
        }
        Ok(())
    }
}
