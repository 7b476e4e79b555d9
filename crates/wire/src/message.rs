//! The messages of the APIs that are served or spoken, as the generated codec has them, behind one trait.
//!
//! Each API is a module with `Request`, `Response` and the structures inside them. Produce and
//! Fetch have codecs of their own for the broker's side (they must not copy records); the generated
//! ones serve clients and tests and live in their `message` submodules.
//!
//! A null array where null is not allowed is read as an empty one.

mod admin;

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};

use crate::{ApiKey, DecodeError, EncodeError};

pub use admin::{
    alter_client_quotas, alter_configs, alter_partition_reassignments, alter_replica_log_dirs,
    delete_records, describe_client_quotas, describe_log_dirs, describe_producers, describe_quorum,
    elect_leaders, incremental_alter_configs, list_config_resources, list_partition_reassignments,
    unregister_broker, update_features,
};

/// A message that the generated codec reads and writes.
pub trait Message: Sized + Debug + Send + Sync {
    /// Which API it belongs to.
    const KEY: ApiKey;

    /// Reads a body. Bytes after the message are ignored, as Kafka does.
    fn decode(body: Bytes, version: i16) -> Result<Self, DecodeError>;

    /// Appends the body to `buf`.
    fn encode(&self, buf: &mut BytesMut, version: i16) -> Result<(), EncodeError>;

    /// How many bytes [`Message::encode`] will write.
    fn encoded_len(&self, version: i16) -> Result<usize, EncodeError>;
}

/// A request and the response that answers it.
pub trait Request: Message {
    /// What answers it.
    type Response: Message;
}

// A macro because the types are foreign, have the same methods and no common trait.
macro_rules! messages {
    ($($key:ident: $request:ty => $response:ty;)*) => {$(
        impl Request for $request {
            type Response = $response;
        }
        messages!(impl $key $request);
        messages!(impl $key $response);
    )*};
    (impl $key:ident $message:ty) => {
        impl Message for $message {
            const KEY: ApiKey = ApiKey::$key;

            fn decode(mut body: Bytes, version: i16) -> Result<Self, DecodeError> {
                Self::read(&mut body, version)
                    .map_err(|source| DecodeError::Malformed { key: Self::KEY, source: source.into() })
            }

            fn encode(&self, buf: &mut BytesMut, version: i16) -> Result<(), EncodeError> {
                self.write(buf, version).map_err(|source| unrepresentable(Self::KEY, version, source))
            }

            fn encoded_len(&self, version: i16) -> Result<usize, EncodeError> {
                Self::encoded_len(self, version)
                    .map_err(|source| unrepresentable(Self::KEY, version, source))
            }
        }
    };
}

fn unrepresentable(
    key: ApiKey,
    version: i16,
    source: kacrab_protocol::ProtocolError,
) -> EncodeError {
    EncodeError::Unrepresentable { key, version, source: source.into() }
}

messages! {
    Produce: crate::produce::message::Request => crate::produce::message::Response;
    Fetch: crate::fetch::message::Request => crate::fetch::message::Response;
    ListOffsets: list_offsets::Request => list_offsets::Response;
    Metadata: metadata::Request => metadata::Response;
    OffsetCommit: offset_commit::Request => offset_commit::Response;
    OffsetFetch: offset_fetch::Request => offset_fetch::Response;
    FindCoordinator: find_coordinator::Request => find_coordinator::Response;
    JoinGroup: join_group::Request => join_group::Response;
    Heartbeat: heartbeat::Request => heartbeat::Response;
    LeaveGroup: leave_group::Request => leave_group::Response;
    SyncGroup: sync_group::Request => sync_group::Response;
    DescribeGroups: describe_groups::Request => describe_groups::Response;
    ListGroups: list_groups::Request => list_groups::Response;
    ApiVersions: api_versions::Request => api_versions::Response;
    CreateTopics: create_topics::Request => create_topics::Response;
    DeleteTopics: delete_topics::Request => delete_topics::Response;
    InitProducerId: init_producer_id::Request => init_producer_id::Response;
    OffsetForLeaderEpoch: offset_for_leader_epoch::Request => offset_for_leader_epoch::Response;
    DescribeConfigs: describe_configs::Request => describe_configs::Response;
    CreatePartitions: create_partitions::Request => create_partitions::Response;
    DeleteGroups: delete_groups::Request => delete_groups::Response;
    OffsetDelete: offset_delete::Request => offset_delete::Response;
    DescribeQuorum: describe_quorum::Request => describe_quorum::Response;
    UpdateFeatures: update_features::Request => update_features::Response;
    UnregisterBroker: unregister_broker::Request => unregister_broker::Response;
    DescribeCluster: describe_cluster::Request => describe_cluster::Response;
    AlterReplicaLogDirs: alter_replica_log_dirs::Request => alter_replica_log_dirs::Response;
    DescribeLogDirs: describe_log_dirs::Request => describe_log_dirs::Response;
    ElectLeaders: elect_leaders::Request => elect_leaders::Response;
    AlterPartitionReassignments: alter_partition_reassignments::Request => alter_partition_reassignments::Response;
    ListPartitionReassignments: list_partition_reassignments::Request => list_partition_reassignments::Response;
    DescribeProducers: describe_producers::Request => describe_producers::Response;
    DescribeClientQuotas: describe_client_quotas::Request => describe_client_quotas::Response;
    AlterClientQuotas: alter_client_quotas::Request => alter_client_quotas::Response;
    AlterConfigs: alter_configs::Request => alter_configs::Response;
    DescribeTopicPartitions:
        describe_topic_partitions::Request => describe_topic_partitions::Response;
    DeleteRecords: delete_records::Request => delete_records::Response;
    IncrementalAlterConfigs:
        incremental_alter_configs::Request => incremental_alter_configs::Response;
    ConsumerGroupDescribe: consumer_group_describe::Request => consumer_group_describe::Response;
    ListConfigResources: list_config_resources::Request => list_config_resources::Response;
}

/// Finds offsets by time.
pub mod list_offsets {
    pub use kacrab_protocol::generated::list_offsets_request::{
        ListOffsetsPartition, ListOffsetsRequestData as Request, ListOffsetsTopic,
    };
    pub use kacrab_protocol::generated::list_offsets_response::{
        ListOffsetsPartitionResponse, ListOffsetsResponseData as Response, ListOffsetsTopicResponse,
    };
}

/// Describes brokers and topics.
pub mod metadata {
    pub use kacrab_protocol::generated::metadata_request::{
        MetadataRequestData as Request, MetadataRequestTopic,
    };
    pub use kacrab_protocol::generated::metadata_response::{
        MetadataResponseBroker, MetadataResponseData as Response, MetadataResponsePartition,
        MetadataResponseTopic,
    };
}

/// Keeps how far a group has read.
pub mod offset_commit {
    pub use kacrab_protocol::generated::offset_commit_request::{
        OffsetCommitRequestData as Request, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    };
    pub use kacrab_protocol::generated::offset_commit_response::{
        OffsetCommitResponseData as Response, OffsetCommitResponsePartition,
        OffsetCommitResponseTopic,
    };
}

/// Tells how far a group has read.
pub mod offset_fetch {
    pub use kacrab_protocol::generated::offset_fetch_request::{
        OffsetFetchRequestData as Request, OffsetFetchRequestGroup, OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
    };
    pub use kacrab_protocol::generated::offset_fetch_response::{
        OffsetFetchResponseData as Response, OffsetFetchResponseGroup,
        OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
        OffsetFetchResponseTopics,
    };
}

/// Finds the broker that coordinates a group or a transaction.
pub mod find_coordinator {
    pub use kacrab_protocol::generated::find_coordinator_request::FindCoordinatorRequestData as Request;
    pub use kacrab_protocol::generated::find_coordinator_response::{
        Coordinator, FindCoordinatorResponseData as Response,
    };
}

/// Makes a client a member of a group's next generation.
pub mod join_group {
    pub use kacrab_protocol::generated::join_group_request::{
        JoinGroupRequestData as Request, JoinGroupRequestProtocol,
    };
    pub use kacrab_protocol::generated::join_group_response::{
        JoinGroupResponseData as Response, JoinGroupResponseMember,
    };
}

/// Keeps a member alive.
pub mod heartbeat {
    pub use kacrab_protocol::generated::heartbeat_request::HeartbeatRequestData as Request;
    pub use kacrab_protocol::generated::heartbeat_response::HeartbeatResponseData as Response;
}

/// Removes members from a group.
pub mod leave_group {
    pub use kacrab_protocol::generated::leave_group_request::{
        LeaveGroupRequestData as Request, MemberIdentity,
    };
    pub use kacrab_protocol::generated::leave_group_response::{
        LeaveGroupResponseData as Response, MemberResponse,
    };
}

/// Hands out and fetches assignments.
pub mod sync_group {
    pub use kacrab_protocol::generated::sync_group_request::{
        SyncGroupRequestAssignment, SyncGroupRequestData as Request,
    };
    pub use kacrab_protocol::generated::sync_group_response::SyncGroupResponseData as Response;
}

/// Describes groups.
pub mod describe_groups {
    pub use kacrab_protocol::generated::describe_groups_request::DescribeGroupsRequestData as Request;
    pub use kacrab_protocol::generated::describe_groups_response::{
        DescribeGroupsResponseData as Response, DescribedGroup, DescribedGroupMember,
    };
}

/// Lists groups.
pub mod list_groups {
    pub use kacrab_protocol::generated::list_groups_request::ListGroupsRequestData as Request;
    pub use kacrab_protocol::generated::list_groups_response::{
        ListGroupsResponseData as Response, ListedGroup,
    };
}

/// Says what is served.
pub mod api_versions {
    pub use kacrab_protocol::generated::api_versions_request::ApiVersionsRequestData as Request;
    pub use kacrab_protocol::generated::api_versions_response::{
        ApiVersion, ApiVersionsResponseData as Response, FinalizedFeatureKey, SupportedFeatureKey,
    };
}

/// Creates topics.
pub mod create_topics {
    pub use kacrab_protocol::generated::create_topics_request::{
        CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
        CreateTopicsRequestData as Request,
    };
    pub use kacrab_protocol::generated::create_topics_response::{
        CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponseData as Response,
    };
}

/// Deletes topics.
pub mod delete_topics {
    pub use kacrab_protocol::generated::delete_topics_request::{
        DeleteTopicState, DeleteTopicsRequestData as Request,
    };
    pub use kacrab_protocol::generated::delete_topics_response::{
        DeletableTopicResult, DeleteTopicsResponseData as Response,
    };
}

/// Gives a producer its id and epoch.
pub mod init_producer_id {
    pub use kacrab_protocol::generated::init_producer_id_request::InitProducerIdRequestData as Request;
    pub use kacrab_protocol::generated::init_producer_id_response::InitProducerIdResponseData as Response;
}

/// Finds where a leader epoch ends.
pub mod offset_for_leader_epoch {
    pub use kacrab_protocol::generated::offset_for_leader_epoch_request::{
        OffsetForLeaderEpochRequestData as Request, OffsetForLeaderPartition, OffsetForLeaderTopic,
    };
    pub use kacrab_protocol::generated::offset_for_leader_epoch_response::{
        EpochEndOffset, OffsetForLeaderEpochResponseData as Response, OffsetForLeaderTopicResult,
    };
}

/// Reads configuration.
pub mod describe_configs {
    pub use kacrab_protocol::generated::describe_configs_request::{
        DescribeConfigsRequestData as Request, DescribeConfigsResource,
    };
    pub use kacrab_protocol::generated::describe_configs_response::{
        DescribeConfigsResourceResult, DescribeConfigsResponseData as Response,
        DescribeConfigsResult, DescribeConfigsSynonym,
    };
}

/// Adds partitions to topics.
pub mod create_partitions {
    pub use kacrab_protocol::generated::create_partitions_request::{
        CreatePartitionsAssignment, CreatePartitionsRequestData as Request, CreatePartitionsTopic,
    };
    pub use kacrab_protocol::generated::create_partitions_response::{
        CreatePartitionsResponseData as Response, CreatePartitionsTopicResult,
    };
}

/// Deletes groups.
pub mod delete_groups {
    pub use kacrab_protocol::generated::delete_groups_request::DeleteGroupsRequestData as Request;
    pub use kacrab_protocol::generated::delete_groups_response::{
        DeletableGroupResult, DeleteGroupsResponseData as Response,
    };
}

/// Forgets how far a group has read.
pub mod offset_delete {
    pub use kacrab_protocol::generated::offset_delete_request::{
        OffsetDeleteRequestData as Request, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    };
    pub use kacrab_protocol::generated::offset_delete_response::{
        OffsetDeleteResponseData as Response, OffsetDeleteResponsePartition,
        OffsetDeleteResponseTopic,
    };
}

/// Describes the cluster.
pub mod describe_cluster {
    pub use kacrab_protocol::generated::describe_cluster_request::DescribeClusterRequestData as Request;
    pub use kacrab_protocol::generated::describe_cluster_response::{
        DescribeClusterBroker, DescribeClusterResponseData as Response,
    };
}

/// Describes topics, page by page.
pub mod describe_topic_partitions {
    pub use kacrab_protocol::generated::describe_topic_partitions_request::{
        Cursor as RequestCursor, DescribeTopicPartitionsRequestData as Request, TopicRequest,
    };
    pub use kacrab_protocol::generated::describe_topic_partitions_response::{
        Cursor, DescribeTopicPartitionsResponseData as Response,
        DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
    };
}

/// Describes groups of the consumer protocol.
pub mod consumer_group_describe {
    pub use kacrab_protocol::generated::consumer_group_describe_request::ConsumerGroupDescribeRequestData as Request;
    pub use kacrab_protocol::generated::consumer_group_describe_response::{
        Assignment, ConsumerGroupDescribeResponseData as Response, DescribedGroup, Member,
        TopicPartitions,
    };
}
