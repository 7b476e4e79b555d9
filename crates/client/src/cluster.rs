//! What a cluster looks like: brokers, topics, partitions and their leaders.

use strandline_model::TopicId;
use strandline_wire::{ErrorCode, metadata, topic_id_from_wire};

use crate::Address;

/// A cluster, as one broker described it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The cluster's id.
    pub id: Option<String>,
    /// The broker that is its controller, or stands for it.
    pub controller_id: i32,
    /// Brokers that are alive.
    pub brokers: Vec<Broker>,
    /// The topics that were asked for, by name.
    pub topics: Vec<Topic>,
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its id.
    pub id: i32,
    /// Where it says that it listens.
    pub address: Address,
    /// Its rack.
    pub rack: Option<String>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id; zero from a broker that knows no ids.
    pub id: TopicId,
    /// Whether it belongs to the cluster itself.
    pub internal: bool,
    /// What the broker says about it.
    pub error: ErrorCode,
    /// Its partitions, by index.
    pub partitions: Vec<Partition>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its index.
    pub index: i32,
    /// What the broker says about it.
    pub error: ErrorCode,
    /// Who leads it; −1 for nobody.
    pub leader: i32,
    /// Its leader epoch; −1 when not known.
    pub leader_epoch: i32,
    /// The brokers that keep it.
    pub replicas: Vec<i32>,
    /// Those of them that are in sync.
    pub in_sync: Vec<i32>,
}

impl Cluster {
    pub(crate) fn from_wire(response: metadata::Response) -> Self {
        let broker = |broker: metadata::MetadataResponseBroker| Broker {
            id: broker.node_id,
            // A port that no address can have: connecting fails, with this address in the error.
            address: Address::new(broker.host.to_string(), u16::try_from(broker.port).unwrap_or(0)),
            rack: broker.rack.map(|rack| rack.to_string()),
        };
        let mut topics: Vec<Topic> = response.topics.into_iter().map(Topic::from_wire).collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            id: response.cluster_id.map(|id| id.to_string()),
            controller_id: response.controller_id,
            brokers: response.brokers.into_iter().map(broker).collect(),
            topics,
        }
    }
}

impl Topic {
    fn from_wire(topic: metadata::MetadataResponseTopic) -> Self {
        let partition = |partition: metadata::MetadataResponsePartition| Partition {
            index: partition.partition_index,
            error: ErrorCode::from_wire(partition.error_code),
            leader: partition.leader_id,
            leader_epoch: partition.leader_epoch,
            replicas: partition.replica_nodes,
            in_sync: partition.isr_nodes,
        };
        let mut partitions: Vec<_> = topic.partitions.into_iter().map(partition).collect();
        partitions.sort_by_key(|partition| partition.index);
        Self {
            name: topic.name.map(|name| name.to_string()).unwrap_or_default(),
            id: topic_id_from_wire(topic.topic_id),
            internal: topic.is_internal,
            error: ErrorCode::from_wire(topic.error_code),
            partitions,
        }
    }
}
