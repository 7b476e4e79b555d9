//! Every API whose messages are generated, once: what a test does for each of them it says of one.

/// Calls `generated::<M>` of the place of use with the `Request` or `Response` of an API; before that
/// come arms for those whose messages are our own.
macro_rules! each_message {
    ($key:expr, $message:ident, $($own:pat => $answer:expr,)*) => {
        match $key {
            $($own => $answer,)*
            strandline_wire::ApiKey::ListOffsets => generated::<strandline_wire::list_offsets::$message>,
            strandline_wire::ApiKey::Metadata => generated::<strandline_wire::metadata::$message>,
            strandline_wire::ApiKey::OffsetCommit => generated::<strandline_wire::offset_commit::$message>,
            strandline_wire::ApiKey::OffsetFetch => generated::<strandline_wire::offset_fetch::$message>,
            strandline_wire::ApiKey::FindCoordinator => generated::<strandline_wire::find_coordinator::$message>,
            strandline_wire::ApiKey::JoinGroup => generated::<strandline_wire::join_group::$message>,
            strandline_wire::ApiKey::Heartbeat => generated::<strandline_wire::heartbeat::$message>,
            strandline_wire::ApiKey::LeaveGroup => generated::<strandline_wire::leave_group::$message>,
            strandline_wire::ApiKey::SyncGroup => generated::<strandline_wire::sync_group::$message>,
            strandline_wire::ApiKey::DescribeGroups => generated::<strandline_wire::describe_groups::$message>,
            strandline_wire::ApiKey::ListGroups => generated::<strandline_wire::list_groups::$message>,
            strandline_wire::ApiKey::ApiVersions => generated::<strandline_wire::api_versions::$message>,
            strandline_wire::ApiKey::CreateTopics => generated::<strandline_wire::create_topics::$message>,
            strandline_wire::ApiKey::DeleteTopics => generated::<strandline_wire::delete_topics::$message>,
            strandline_wire::ApiKey::InitProducerId => generated::<strandline_wire::init_producer_id::$message>,
            strandline_wire::ApiKey::OffsetForLeaderEpoch => generated::<strandline_wire::offset_for_leader_epoch::$message>,
            strandline_wire::ApiKey::DescribeConfigs => generated::<strandline_wire::describe_configs::$message>,
            strandline_wire::ApiKey::CreatePartitions => generated::<strandline_wire::create_partitions::$message>,
            strandline_wire::ApiKey::DeleteGroups => generated::<strandline_wire::delete_groups::$message>,
            strandline_wire::ApiKey::OffsetDelete => generated::<strandline_wire::offset_delete::$message>,
            strandline_wire::ApiKey::DescribeCluster => generated::<strandline_wire::describe_cluster::$message>,
            strandline_wire::ApiKey::AlterConfigs => generated::<strandline_wire::alter_configs::$message>,
            strandline_wire::ApiKey::IncrementalAlterConfigs => generated::<strandline_wire::incremental_alter_configs::$message>,
            strandline_wire::ApiKey::ListConfigResources => generated::<strandline_wire::list_config_resources::$message>,
            strandline_wire::ApiKey::AlterReplicaLogDirs => generated::<strandline_wire::alter_replica_log_dirs::$message>,
            strandline_wire::ApiKey::DescribeLogDirs => generated::<strandline_wire::describe_log_dirs::$message>,
            strandline_wire::ApiKey::ElectLeaders => generated::<strandline_wire::elect_leaders::$message>,
            strandline_wire::ApiKey::AlterPartitionReassignments => generated::<strandline_wire::alter_partition_reassignments::$message>,
            strandline_wire::ApiKey::ListPartitionReassignments => generated::<strandline_wire::list_partition_reassignments::$message>,
            strandline_wire::ApiKey::DescribeQuorum => generated::<strandline_wire::describe_quorum::$message>,
            strandline_wire::ApiKey::UpdateFeatures => generated::<strandline_wire::update_features::$message>,
            strandline_wire::ApiKey::UnregisterBroker => generated::<strandline_wire::unregister_broker::$message>,
            strandline_wire::ApiKey::DescribeProducers => generated::<strandline_wire::describe_producers::$message>,
            strandline_wire::ApiKey::DeleteRecords => generated::<strandline_wire::delete_records::$message>,
            strandline_wire::ApiKey::DescribeClientQuotas => generated::<strandline_wire::describe_client_quotas::$message>,
            strandline_wire::ApiKey::AlterClientQuotas => generated::<strandline_wire::alter_client_quotas::$message>,
            strandline_wire::ApiKey::DescribeTopicPartitions => generated::<strandline_wire::describe_topic_partitions::$message>,
            other @ strandline_wire::ApiKey::ConsumerGroupDescribe => {
                unreachable!("{other} is not served")
            }
        }
    };
}

pub(crate) use each_message;
