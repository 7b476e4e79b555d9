//! The messages with which tools look after a broker.

/// Replaces configuration as a whole.
pub mod alter_configs {
    pub use kacrab_protocol::generated::alter_configs_request::{
        AlterConfigsRequestData as Request, AlterConfigsResource, AlterableConfig,
    };
    pub use kacrab_protocol::generated::alter_configs_response::{
        AlterConfigsResourceResponse, AlterConfigsResponseData as Response,
    };
}

/// Changes configuration, key by key.
pub mod incremental_alter_configs {
    pub use kacrab_protocol::generated::incremental_alter_configs_request::{
        AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequestData as Request,
    };
    pub use kacrab_protocol::generated::incremental_alter_configs_response::{
        AlterConfigsResourceResponse, IncrementalAlterConfigsResponseData as Response,
    };
}

/// Lists what has configuration of its own.
pub mod list_config_resources {
    pub use kacrab_protocol::generated::list_config_resources_request::ListConfigResourcesRequestData as Request;
    pub use kacrab_protocol::generated::list_config_resources_response::{
        ConfigResource, ListConfigResourcesResponseData as Response,
    };
}

/// Deletes the oldest records of partitions.
pub mod delete_records {
    pub use kacrab_protocol::generated::delete_records_request::{
        DeleteRecordsPartition, DeleteRecordsRequestData as Request, DeleteRecordsTopic,
    };
    pub use kacrab_protocol::generated::delete_records_response::{
        DeleteRecordsPartitionResult, DeleteRecordsResponseData as Response,
        DeleteRecordsTopicResult,
    };
}

/// Moves replicas between folders.
pub mod alter_replica_log_dirs {
    pub use kacrab_protocol::generated::alter_replica_log_dirs_request::{
        AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequestData as Request,
    };
    pub use kacrab_protocol::generated::alter_replica_log_dirs_response::{
        AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
        AlterReplicaLogDirsResponseData as Response,
    };
}

/// Tells how much partitions store, and where.
pub mod describe_log_dirs {
    pub use kacrab_protocol::generated::describe_log_dirs_request::{
        DescribableLogDirTopic, DescribeLogDirsRequestData as Request,
    };
    pub use kacrab_protocol::generated::describe_log_dirs_response::{
        DescribeLogDirsPartition, DescribeLogDirsResponseData as Response, DescribeLogDirsResult,
        DescribeLogDirsTopic,
    };
}

/// Elects leaders of partitions.
pub mod elect_leaders {
    pub use kacrab_protocol::generated::elect_leaders_request::{
        ElectLeadersRequestData as Request, TopicPartitions,
    };
    pub use kacrab_protocol::generated::elect_leaders_response::{
        ElectLeadersResponseData as Response, PartitionResult, ReplicaElectionResult,
    };
}

/// Moves partitions between brokers.
pub mod alter_partition_reassignments {
    pub use kacrab_protocol::generated::alter_partition_reassignments_request::{
        AlterPartitionReassignmentsRequestData as Request, ReassignablePartition, ReassignableTopic,
    };
    pub use kacrab_protocol::generated::alter_partition_reassignments_response::{
        AlterPartitionReassignmentsResponseData as Response, ReassignablePartitionResponse,
        ReassignableTopicResponse,
    };
}

/// Lists partitions that move between brokers.
pub mod list_partition_reassignments {
    pub use kacrab_protocol::generated::list_partition_reassignments_request::{
        ListPartitionReassignmentsRequestData as Request, ListPartitionReassignmentsTopics,
    };
    pub use kacrab_protocol::generated::list_partition_reassignments_response::{
        ListPartitionReassignmentsResponseData as Response, OngoingPartitionReassignment,
        OngoingTopicReassignment,
    };
}

/// Describes the producers of partitions.
pub mod describe_producers {
    pub use kacrab_protocol::generated::describe_producers_request::{
        DescribeProducersRequestData as Request, TopicRequest,
    };
    pub use kacrab_protocol::generated::describe_producers_response::{
        DescribeProducersResponseData as Response, PartitionResponse, ProducerState, TopicResponse,
    };
}

/// Describes quotas of clients.
pub mod describe_client_quotas {
    pub use kacrab_protocol::generated::describe_client_quotas_request::{
        ComponentData, DescribeClientQuotasRequestData as Request,
    };
    pub use kacrab_protocol::generated::describe_client_quotas_response::{
        DescribeClientQuotasResponseData as Response, EntityData, EntryData, ValueData,
    };
}

/// Changes quotas of clients.
pub mod alter_client_quotas {
    pub use kacrab_protocol::generated::alter_client_quotas_request::{
        AlterClientQuotasRequestData as Request, EntityData, EntryData, OpData,
    };
    pub use kacrab_protocol::generated::alter_client_quotas_response::{
        AlterClientQuotasResponseData as Response, EntityData as ResponseEntity,
        EntryData as ResponseEntry,
    };
}

/// Describes the quorum of controllers.
pub mod describe_quorum {
    pub use kacrab_protocol::generated::describe_quorum_request::{
        DescribeQuorumRequestData as Request, PartitionData, TopicData,
    };
    pub use kacrab_protocol::generated::describe_quorum_response::{
        DescribeQuorumResponseData as Response, Node, PartitionData as PartitionResponse,
        ReplicaState, TopicData as TopicResponse,
    };
}

/// Forgets a broker that is gone for good.
pub mod unregister_broker {
    pub use kacrab_protocol::generated::unregister_broker_request::UnregisterBrokerRequestData as Request;
    pub use kacrab_protocol::generated::unregister_broker_response::UnregisterBrokerResponseData as Response;
}

/// Raises and lowers the levels of features.
pub mod update_features {
    pub use kacrab_protocol::generated::update_features_request::{
        FeatureUpdateKey, UpdateFeaturesRequestData as Request,
    };
    pub use kacrab_protocol::generated::update_features_response::{
        UpdatableFeatureResult, UpdateFeaturesResponseData as Response,
    };
}
