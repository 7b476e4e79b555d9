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
