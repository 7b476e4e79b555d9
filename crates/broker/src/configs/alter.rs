//! Changing what is set of a topic, a broker, a group or a subscription to the metrics of clients.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use strandline_model::config::{
    Alteration, ClientMetricsError, DynamicError, DynamicLayer, GroupConfigError, NotAList,
    Overrides, Scope, SetError, alter,
};
use strandline_model::{InvalidTopicName, QuotaEntity, QuotaEntityType, QuotaError, TopicName};
use strandline_storage::StorageError;

use super::{Owner, Texts};
use crate::Broker;
use crate::loggers::LoggerError;
use crate::row_codec::TEXT_BYTES_MAX;
use crate::settings::InvalidSetting;
use crate::topic::AlterTopicError;

/// Kafka's number of the loggers of a broker as a resource.
const LOGGERS: i8 = 8;

/// What has configuration, as a client names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConfigResource {
    /// A topic.
    Topic(String),
    /// A broker by its id, or all of them by the empty name.
    Broker(String),
    /// The loggers of a broker.
    BrokerLogger(String),
    /// A subscription to the metrics of clients.
    ClientMetrics(String),
    /// A group.
    Group(String),
    /// Nothing that there is.
    Unknown(i8, String),
}

/// What a client wants to change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Some keys.
    Incremental(Vec<Alteration>),
    /// Everything: what is not named is no longer set.
    Replace(Texts),
}

/// Why configuration was not changed. In Kafka's words: tools show them.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum AlterError {
    #[error("Unknown resource type {0}")]
    UnknownResource(i8),
    #[error("{0}")]
    Name(&'static str),
    #[error("Node id must be an integer, but it is: {0}")]
    BrokerName(String),
    #[error("Unexpected broker id, expected {ours}, but received {asked}")]
    OtherBroker { ours: i32, asked: String },
    #[error(transparent)]
    Logger(#[from] LoggerError),
    #[error(transparent)]
    TopicName(#[from] InvalidTopicName),
    #[error("The topic '{0}' does not exist.")]
    UnknownTopic(String),
    #[error(transparent)]
    NotAList(#[from] NotAList),
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    #[error("{0}")]
    Dynamic(DynamicError),
    #[error("{0}")]
    Group(GroupConfigError),
    #[error("{0}")]
    ClientMetrics(ClientMetricsError),
    #[error("Unknown client metrics configuration: {0}")]
    UnknownClientMetrics(String),
    #[error("{0}")]
    Quota(#[from] QuotaError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Change {
    /// All that is set after the change of `kept`.
    pub(crate) fn applied_to(&self, scope: Scope, kept: &Texts) -> Result<Texts, AlterError> {
        let set = match self {
            Self::Incremental(alterations) => alter(scope, kept, alterations)?,
            Self::Replace(texts) => texts.clone(),
        };
        match set.iter().find(|(_, text)| text.len() > TEXT_BYTES_MAX) {
            Some((name, _)) => Err(InvalidSetting::TooLong(name.clone()).into()),
            None => Ok(set),
        }
    }
}

impl Broker {
    /// Changes what is set of `resource`, or only checks whether it could be. In effect, and
    /// durable, when it returns.
    pub(crate) async fn alter_configs(
        self: &Arc<Self>,
        resource: ConfigResource,
        change: Change,
        validate_only: bool,
    ) -> Result<(), AlterError> {
        let broker = Arc::clone(self);
        let altered = async move {
            let configs = broker.configs();
            let permit = configs.changing.acquire().await.expect("the semaphore is never closed");
            let altered = broker.alter_one(resource, &change, validate_only).await;
            drop(permit);
            altered
        };
        self.to_the_end("alter configuration", altered).await?
    }

    async fn alter_one(
        &self,
        resource: ConfigResource,
        change: &Change,
        validate_only: bool,
    ) -> Result<(), AlterError> {
        match resource {
            ConfigResource::Topic(name) => self.alter_topic(&name, change, validate_only).await,
            ConfigResource::Broker(name) => self.alter_broker(&name, change, validate_only).await,
            ConfigResource::BrokerLogger(name) => {
                self.check_own_id(&name)?;
                match change {
                    Change::Incremental(alterations) => {
                        Ok(self.loggers().alter(alterations, validate_only)?)
                    }
                    Change::Replace(_) => Err(AlterError::UnknownResource(LOGGERS)),
                }
            }
            ConfigResource::ClientMetrics(name) if name.is_empty() => {
                Err(AlterError::Name("Subscription name can't be empty"))
            }
            ConfigResource::ClientMetrics(name) => {
                let owner = Owner::ClientMetrics(name);
                let texts = change.applied_to(Scope::ClientMetrics, &self.configs().of(&owner))?;
                check_client_metrics(&texts)?;
                self.commit_unless(validate_only, owner, texts).await
            }
            ConfigResource::Group(name) if name.is_empty() => {
                Err(AlterError::Name("Default group resources are not allowed."))
            }
            ConfigResource::Group(name) => {
                let owner = Owner::Group(name);
                let texts = change.applied_to(Scope::Group, &self.configs().of(&owner))?;
                self.settings().check_group(&texts)?;
                self.commit_unless(validate_only, owner, texts).await
            }
            ConfigResource::Unknown(number, _) => Err(AlterError::UnknownResource(number)),
        }
    }

    /// Changes quotas of `entity`: sets each to its number, or forgets it.
    pub(crate) async fn alter_client_quotas(
        self: &Arc<Self>,
        entity: QuotaEntity,
        ops: BTreeMap<String, Option<f64>>,
        validate_only: bool,
    ) -> Result<(), AlterError> {
        if let Some(Some(address)) = entity.name(QuotaEntityType::Ip)
            && address.parse::<IpAddr>().is_err()
        {
            return Err(QuotaError::Address(address.to_owned()).into());
        }
        let broker = Arc::clone(self);
        let altered = async move {
            let configs = broker.configs();
            let permit = configs.changing.acquire().await.expect("the semaphore is never closed");
            let mut texts = configs.of(&Owner::ClientQuota(entity.clone()));
            for (key, value) in ops {
                match value {
                    Some(value) => {
                        entity.check(&key, value)?;
                        texts.insert(key, value.to_string());
                    }
                    None => drop(texts.remove(&key)),
                }
            }
            let owner = Owner::ClientQuota(entity);
            let committed = broker.commit_unless(validate_only, owner, texts).await;
            drop(permit);
            committed
        };
        self.to_the_end("alter client quotas", altered).await?
    }

    async fn commit_unless(
        &self,
        validate_only: bool,
        owner: Owner,
        texts: Texts,
    ) -> Result<(), AlterError> {
        if !validate_only {
            tracing::info!(?owner, keys = ?texts.keys(), "configuration set");
            self.configs().replace(owner, texts).await?;
        }
        Ok(())
    }

    async fn alter_topic(
        &self,
        name: &str,
        change: &Change,
        validate_only: bool,
    ) -> Result<(), AlterError> {
        if name.is_empty() {
            return Err(AlterError::Name("Default topic resources are not allowed."));
        }
        TopicName::new(name)?;
        let altered = if let Some(topic) = self.registry().by_name(name) {
            self.registry().alter_topic(&topic, change, validate_only).await
        } else {
            // As Kafka: what is wrong by itself is told first.
            let texts = change.applied_to(Scope::Topic, &Texts::new())?;
            self.settings().check_topic(&texts)?;
            Err(AlterTopicError::UnknownTopic)
        };
        altered.map_err(|error| match error {
            AlterTopicError::UnknownTopic => AlterError::UnknownTopic(name.to_owned()),
            AlterTopicError::Refused(error) => *error,
        })
    }

    fn check_own_id(&self, name: &str) -> Result<(), AlterError> {
        let asked: i32 = name.parse().map_err(|_| AlterError::BrokerName(name.to_owned()))?;
        let ours = self.node_id().get();
        if asked == ours {
            return Ok(());
        }
        Err(AlterError::OtherBroker { ours, asked: name.to_owned() })
    }

    async fn alter_broker(
        &self,
        name: &str,
        change: &Change,
        validate_only: bool,
    ) -> Result<(), AlterError> {
        let (owner, layer) = if name.is_empty() {
            (Owner::AllBrokers, DynamicLayer::Default)
        } else {
            self.check_own_id(name)?;
            (Owner::Broker(self.node_id()), DynamicLayer::Broker)
        };
        let texts = change.applied_to(Scope::Broker, &self.configs().of(&owner))?;
        let (layers, config) =
            self.settings().changed_dynamic(layer, &texts).map_err(AlterError::Dynamic)?;
        if validate_only {
            return Ok(());
        }
        self.commit_unless(validate_only, owner, texts).await?;
        self.settings().replace(layer, layers, config);
        self.registry().refresh_settings();
        Ok(())
    }
}

fn check_client_metrics(texts: &Texts) -> Result<(), AlterError> {
    let mut own = Overrides::default();
    for (name, text) in texts {
        own.set(Scope::ClientMetrics, name, text).map_err(|error| match error {
            SetError::UnknownKey { name, .. } => AlterError::UnknownClientMetrics(name),
            SetError::InvalidValue(_) => AlterError::Setting(error.into()),
        })?;
    }
    own.check_client_metrics().map_err(AlterError::ClientMetrics)
}
