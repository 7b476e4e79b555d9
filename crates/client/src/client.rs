//! A client of a cluster: connections by broker, leaders by partition.

use std::collections::BTreeMap;
use std::time::Duration;

use strandline_model::TopicId;
use strandline_wire::{Api, ApiKey, ErrorCode, KafkaString, Request, metadata};
use tokio::time::{Instant, sleep};

use crate::{Address, ClientError, Cluster, Config, Connection, Origin, Topic};

/// Times that one call looks up a leader. Reached: the call fails with the broker's answer.
pub(crate) const LOOKUPS_MAX: u32 = 10;
/// Between two lookups.
pub(crate) const LOOKUP_PAUSE: Duration = Duration::from_millis(100);

/// A client of a cluster. One call at a time.
#[derive(Debug)]
pub struct Client {
    config: Config,
    /// To the bootstrap address that answered. `None` after it broke: the next call connects anew.
    home: Option<Connection>,
    /// To brokers that listen elsewhere.
    others: BTreeMap<i32, Connection>,
    brokers: BTreeMap<i32, Address>,
    topics: BTreeMap<String, Topic>,
}

/// Where a request about a partition goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leader {
    pub(crate) node_id: i32,
    pub(crate) epoch: i32,
    /// Zero when the broker knows no topic ids.
    pub(crate) topic_id: TopicId,
}

impl Client {
    /// Connects to the first bootstrap address that answers.
    pub async fn connect(config: Config) -> Result<Self, ClientError> {
        let home = Some(Self::bootstrap(&config).await?);
        let (others, brokers, topics) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { config, home, others, brokers, topics })
    }

    /// How this client behaves.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Describes the cluster and `topics`, or all topics for `None`. Creates nothing.
    pub async fn cluster(&mut self, topics: Option<&[&str]>) -> Result<Cluster, ClientError> {
        self.describe(topics, false).await
    }

    async fn describe(
        &mut self,
        topics: Option<&[&str]>,
        create: bool,
    ) -> Result<Cluster, ClientError> {
        let topic = |name: &&str| metadata::MetadataRequestTopic {
            name: Some(KafkaString::from((*name).to_owned())),
            ..Default::default()
        };
        let request = metadata::Request {
            topics: topics.map(|names| names.iter().map(topic).collect()),
            allow_auto_topic_creation: create,
            ..Default::default()
        };
        let response = self.call(&request).await?;
        ClientError::check(response.error_code, || "metadata".to_owned(), None)?;
        let cluster = Cluster::from_wire(response);
        self.brokers =
            cluster.brokers.iter().map(|broker| (broker.id, broker.address.clone())).collect();
        Ok(cluster)
    }

    /// The newest version of an API that the broker at hand and this client know.
    pub(crate) async fn version_of(&mut self, key: ApiKey) -> Result<i16, ClientError> {
        Ok(self.home().await?.version(key, i16::MAX)?.version())
    }

    /// Sends a request that any broker can answer.
    pub async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let within = self.config.request_timeout;
        let result = self.home().await?.call(request, within).await;
        if result.as_ref().is_err_and(loses_connection) {
            self.home = None;
        }
        result
    }

    /// Sends a request about a partition to its leader; looks the leader up again when the answer
    /// says that it moved, a bounded number of times within the call's deadline.
    pub(crate) async fn call_leader<R: Request, T>(
        &mut self,
        topic: &str,
        partition: i32,
        create: bool,
        request: impl Fn(Api, Leader) -> R,
        answer: impl Fn(R::Response) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + self.config.request_timeout;
        let mut lookups = 0;
        loop {
            let outcome = match self.leader(topic, partition, create).await {
                Ok(leader) => self.call_once(leader, deadline, &request).await.and_then(&answer),
                Err(error) => Err(error),
            };
            lookups += 1;
            match outcome {
                Err(error)
                    if asks_for_lookup(&error, create)
                        && lookups < LOOKUPS_MAX
                        && Instant::now() + LOOKUP_PAUSE < deadline =>
                {
                    self.forget(topic);
                    sleep(LOOKUP_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn call_once<R: Request>(
        &mut self,
        leader: Leader,
        deadline: Instant,
        request: impl Fn(Api, Leader) -> R,
    ) -> Result<R::Response, ClientError> {
        let connection = self.broker(leader.node_id).await?;
        let api = version_for(connection, R::KEY, leader.topic_id)?;
        let within = deadline.saturating_duration_since(Instant::now());
        let result = connection.call_at(api, &request(api, leader), within).await;
        if result.as_ref().is_err_and(loses_connection) {
            self.lose(leader.node_id);
        }
        result
    }

    /// Who leads a partition, from what is known or from the cluster.
    pub(crate) async fn leader(
        &mut self,
        topic: &str,
        partition: i32,
        create: bool,
    ) -> Result<Leader, ClientError> {
        if !self.topics.contains_key(topic) {
            let cluster = self.describe(Some(&[topic]), create).await?;
            for described in cluster.topics {
                ClientError::check(described.error.get(), || subject_of(topic, partition), None)?;
                self.topics.insert(described.name.clone(), described);
            }
        }
        let unknown = || ClientError::Broker {
            subject: subject_of(topic, partition),
            code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            message: None,
        };
        let described = self.topics.get(topic).ok_or_else(unknown)?;
        let found = described.partitions.iter().find(|found| found.index == partition);
        let found = found.ok_or_else(unknown)?;
        ClientError::check(found.error.get(), || subject_of(topic, partition), None)?;
        Ok(Leader { node_id: found.leader, epoch: found.leader_epoch, topic_id: described.id })
    }

    /// Looks a topic up again when it is needed next.
    pub(crate) fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// The connection to a broker that the cluster described.
    pub(crate) async fn broker(&mut self, node_id: i32) -> Result<&mut Connection, ClientError> {
        let address = self.brokers.get(&node_id).cloned().ok_or_else(|| ClientError::Broker {
            subject: format!("broker {node_id}"),
            code: ErrorCode::BROKER_NOT_AVAILABLE,
            message: None,
        })?;
        if self.home.as_ref().is_some_and(|home| *home.address() == address) {
            return self.home().await;
        }
        if self.others.get(&node_id).is_none_or(|other| *other.address() != address) {
            let by = self.home().await?.address().clone();
            let origin = Origin::Advertised { by };
            let connection = Connection::open(&address, origin, &self.config).await?;
            self.others.insert(node_id, connection);
        }
        Ok(self.others.get_mut(&node_id).expect("it is there or was just opened"))
    }

    /// Whether the cluster has described this broker.
    pub(crate) fn knows_broker(&self, node_id: i32) -> bool {
        self.brokers.contains_key(&node_id)
    }

    /// Notes where a broker says that it listens.
    pub(crate) fn learn_broker(&mut self, node_id: i32, address: Address) {
        self.brokers.insert(node_id, address);
    }

    /// Gives up the connection to a broker after it broke.
    pub(crate) fn lose(&mut self, node_id: i32) {
        if self.others.remove(&node_id).is_none() {
            self.home = None;
        }
    }

    async fn home(&mut self) -> Result<&mut Connection, ClientError> {
        if self.home.is_none() {
            self.home = Some(Self::bootstrap(&self.config).await?);
        }
        Ok(self.home.as_mut().expect("it is there or was just opened"))
    }

    async fn bootstrap(config: &Config) -> Result<Connection, ClientError> {
        let mut last = None;
        for address in &config.bootstrap {
            match Connection::open(address, Origin::Bootstrap, config).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("a configuration has at least one address"))
    }
}

/// The newest version, short of those that need a topic id when there is none.
pub(crate) fn version_for(
    connection: &Connection,
    key: ApiKey,
    topic_id: TopicId,
) -> Result<Api, ClientError> {
    let by_name = matches!(key, ApiKey::Produce | ApiKey::Fetch) && topic_id == TopicId::ZERO;
    connection.version(key, if by_name { 12 } else { i16::MAX })
}

/// What an error about a partition is about.
pub(crate) fn subject_of(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// Whether the connection is of no use any more.
pub(crate) const fn loses_connection(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Broken { .. } | ClientError::Timeout { .. } | ClientError::Garbled { .. }
    )
}

/// Whether the answer says that the partition is elsewhere, or not yet anywhere.
pub(crate) fn asks_for_lookup(error: &ClientError, create: bool) -> bool {
    error.code().is_some_and(|code| {
        matches!(
            code,
            ErrorCode::NOT_LEADER_OR_FOLLOWER
                | ErrorCode::LEADER_NOT_AVAILABLE
                | ErrorCode::FENCED_LEADER_EPOCH
                | ErrorCode::UNKNOWN_LEADER_EPOCH
                | ErrorCode::UNKNOWN_TOPIC_ID
                | ErrorCode::INCONSISTENT_TOPIC_ID
        ) || create && code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    })
}
