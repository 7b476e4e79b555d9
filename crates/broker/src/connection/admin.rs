//! The requests with which tools look after a broker.

use bytes::BytesMut;
use strandline_wire::{
    Api, ApiKey, alter_client_quotas, alter_configs, alter_partition_reassignments,
    alter_replica_log_dirs, create_partitions, delete_records, describe_client_quotas,
    describe_configs, describe_log_dirs, describe_producers, describe_quorum, elect_leaders,
    incremental_alter_configs, list_config_resources, list_partition_reassignments,
    unregister_broker, update_features,
};

use super::{Connection, Disconnect, decode, reply};
use crate::{Reply, api};

/// Whether [`Connection::configure`] answers it.
pub(super) const fn is_of_configs(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::DescribeConfigs
            | ApiKey::AlterConfigs
            | ApiKey::IncrementalAlterConfigs
            | ApiKey::ListConfigResources
            | ApiKey::DescribeClientQuotas
            | ApiKey::AlterClientQuotas
    )
}

/// Whether [`Connection::administer`] answers it.
pub(super) const fn is_of_tools(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::DeleteRecords
            | ApiKey::AlterReplicaLogDirs
            | ApiKey::DescribeLogDirs
            | ApiKey::ElectLeaders
            | ApiKey::AlterPartitionReassignments
            | ApiKey::DescribeProducers
            | ApiKey::DescribeQuorum
            | ApiKey::UpdateFeatures
            | ApiKey::UnregisterBroker
            | ApiKey::ListPartitionReassignments
            | ApiKey::CreatePartitions
    )
}

impl Connection {
    /// Answers a request about configuration or quotas.
    pub(super) async fn configure(
        &self,
        api: Api,
        id: i32,
        body: BytesMut,
    ) -> Result<Reply, Disconnect> {
        let broker = &self.broker;
        let replied = match api.key() {
            ApiKey::DescribeConfigs => {
                let request: describe_configs::Request = decode(body, api)?;
                reply(broker, api, id, &api::describe_configs::handle(broker, &request))
            }
            ApiKey::AlterConfigs => {
                let request: alter_configs::Request = decode(body, api)?;
                reply(broker, api, id, &api::alter_configs::handle(broker, request).await)
            }
            ApiKey::IncrementalAlterConfigs => {
                let request: incremental_alter_configs::Request = decode(body, api)?;
                reply(
                    broker,
                    api,
                    id,
                    &api::incremental_alter_configs::handle(broker, request).await,
                )
            }
            ApiKey::ListConfigResources => {
                let request: list_config_resources::Request = decode(body, api)?;
                reply(
                    broker,
                    api,
                    id,
                    &api::list_config_resources::handle(broker, &request, api.version()),
                )
            }
            ApiKey::DescribeClientQuotas => {
                let request: describe_client_quotas::Request = decode(body, api)?;
                reply(broker, api, id, &api::describe_client_quotas::handle(broker, &request))
            }
            ApiKey::AlterClientQuotas => {
                let request: alter_client_quotas::Request = decode(body, api)?;
                reply(broker, api, id, &api::alter_client_quotas::handle(broker, request).await)
            }
            key => unreachable!("{key} is not about configuration"),
        };
        Ok(replied?)
    }

    /// Answers a request of another API that only tools use.
    pub(super) async fn administer(
        &self,
        api: Api,
        id: i32,
        body: BytesMut,
    ) -> Result<Reply, Disconnect> {
        let broker = &self.broker;
        let version = api.version();
        let replied = match api.key() {
            ApiKey::DeleteRecords => {
                let request: delete_records::Request = decode(body, api)?;
                reply(broker, api, id, &api::delete_records::handle(broker, request).await)
            }
            ApiKey::AlterReplicaLogDirs => {
                let request: alter_replica_log_dirs::Request = decode(body, api)?;
                reply(broker, api, id, &api::alter_replica_log_dirs::handle(broker, &request))
            }
            ApiKey::DescribeLogDirs => {
                let request: describe_log_dirs::Request = decode(body, api)?;
                reply(broker, api, id, &api::describe_log_dirs::handle(broker, &request).await)
            }
            ApiKey::ElectLeaders => {
                let request: elect_leaders::Request = decode(body, api)?;
                reply(broker, api, id, &api::elect_leaders::handle(broker, &request))
            }
            ApiKey::AlterPartitionReassignments => {
                let request: alter_partition_reassignments::Request = decode(body, api)?;
                reply(
                    broker,
                    api,
                    id,
                    &api::alter_partition_reassignments::handle(broker, &request),
                )
            }
            ApiKey::DescribeProducers => {
                let request: describe_producers::Request = decode(body, api)?;
                reply(broker, api, id, &api::describe_producers::handle(broker, &request).await)
            }
            ApiKey::DescribeQuorum => {
                let request: describe_quorum::Request = decode(body, api)?;
                reply(broker, api, id, &api::describe_quorum::handle(broker, &request, version))
            }
            ApiKey::UpdateFeatures => {
                let request: update_features::Request = decode(body, api)?;
                reply(
                    broker,
                    api,
                    id,
                    &api::update_features::handle(broker, request, version).await,
                )
            }
            ApiKey::UnregisterBroker => {
                let request: unregister_broker::Request = decode(body, api)?;
                reply(broker, api, id, &api::unregister_broker::handle(broker, &request))
            }
            ApiKey::ListPartitionReassignments => {
                let _: list_partition_reassignments::Request = decode(body, api)?;
                reply(broker, api, id, &api::list_partition_reassignments::handle())
            }
            ApiKey::CreatePartitions => {
                let request: create_partitions::Request = decode(body, api)?;
                reply(broker, api, id, &api::create_partitions::handle(broker, request).await)
            }
            key => unreachable!("{key} is not for tools alone"),
        };
        Ok(replied?)
    }
}
