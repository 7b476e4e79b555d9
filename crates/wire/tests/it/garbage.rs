//! Bytes that are no message: every decoder of every version says so, and nothing panics.

use bytes::BytesMut;
use proptest::prelude::*;
use strandline_wire::{
    Api, ApiKey, DecodeError, Message, alter_client_quotas, alter_configs,
    alter_partition_reassignments, alter_replica_log_dirs, api_versions, create_partitions,
    create_topics, delete_groups, delete_records, delete_topics, describe_client_quotas,
    describe_cluster, describe_configs, describe_groups, describe_log_dirs, describe_producers,
    describe_topic_partitions, elect_leaders, fetch, find_coordinator, heartbeat,
    incremental_alter_configs, init_producer_id, join_group, leave_group, list_config_resources,
    list_groups, list_offsets, list_partition_reassignments, metadata, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, produce, served, sync_group,
};

/// Decodes a request body as the broker does.
pub(crate) fn decode(body: BytesMut, api: Api) -> Result<(), DecodeError> {
    fn generated<M: Message>(body: BytesMut, api: Api) -> Result<(), DecodeError> {
        M::decode(body.freeze(), api.version()).map(drop)
    }
    let decode = match api.key() {
        ApiKey::Produce => return produce::Request::decode(body, api).map(drop),
        ApiKey::Fetch => return fetch::Request::decode(body, api).map(drop),
        ApiKey::ListOffsets => generated::<list_offsets::Request>,
        ApiKey::Metadata => generated::<metadata::Request>,
        ApiKey::OffsetCommit => generated::<offset_commit::Request>,
        ApiKey::OffsetFetch => generated::<offset_fetch::Request>,
        ApiKey::FindCoordinator => generated::<find_coordinator::Request>,
        ApiKey::JoinGroup => generated::<join_group::Request>,
        ApiKey::Heartbeat => generated::<heartbeat::Request>,
        ApiKey::LeaveGroup => generated::<leave_group::Request>,
        ApiKey::SyncGroup => generated::<sync_group::Request>,
        ApiKey::DescribeGroups => generated::<describe_groups::Request>,
        ApiKey::ListGroups => generated::<list_groups::Request>,
        ApiKey::ApiVersions => generated::<api_versions::Request>,
        ApiKey::CreateTopics => generated::<create_topics::Request>,
        ApiKey::DeleteTopics => generated::<delete_topics::Request>,
        ApiKey::InitProducerId => generated::<init_producer_id::Request>,
        ApiKey::OffsetForLeaderEpoch => generated::<offset_for_leader_epoch::Request>,
        ApiKey::DescribeConfigs => generated::<describe_configs::Request>,
        ApiKey::CreatePartitions => generated::<create_partitions::Request>,
        ApiKey::DeleteGroups => generated::<delete_groups::Request>,
        ApiKey::OffsetDelete => generated::<offset_delete::Request>,
        ApiKey::DescribeCluster => generated::<describe_cluster::Request>,
        ApiKey::AlterConfigs => generated::<alter_configs::Request>,
        ApiKey::IncrementalAlterConfigs => generated::<incremental_alter_configs::Request>,
        ApiKey::ListConfigResources => generated::<list_config_resources::Request>,
        ApiKey::AlterReplicaLogDirs => generated::<alter_replica_log_dirs::Request>,
        ApiKey::DescribeLogDirs => generated::<describe_log_dirs::Request>,
        ApiKey::ElectLeaders => generated::<elect_leaders::Request>,
        ApiKey::AlterPartitionReassignments => generated::<alter_partition_reassignments::Request>,
        ApiKey::ListPartitionReassignments => generated::<list_partition_reassignments::Request>,
        ApiKey::DescribeProducers => generated::<describe_producers::Request>,
        ApiKey::DeleteRecords => generated::<delete_records::Request>,
        ApiKey::DescribeClientQuotas => generated::<describe_client_quotas::Request>,
        ApiKey::AlterClientQuotas => generated::<alter_client_quotas::Request>,
        ApiKey::DescribeTopicPartitions => generated::<describe_topic_partitions::Request>,
        other @ ApiKey::ConsumerGroupDescribe => unreachable!("{other} is not served"),
    };
    decode(body, api)
}

fn every_api() -> impl Iterator<Item = Api> {
    served().iter().flat_map(|row| {
        (row.min_version..=row.max_version).map(|version| row.at(version).expect("served"))
    })
}

/// Runs of bytes that lengths are made of, more often than chance would have them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let run = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        Just(vec![0x7f, 0xff, 0xff, 0xff]),
        Just(vec![0xff, 0xff, 0xff, 0xff, 0x0f]),
        Just(vec![0, 0, 0, 1]),
        prop::collection::vec(0_u8..4, 0..40),
    ];
    prop::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
}

proptest! {
    #[test]
    fn garbage_is_read_or_refused_in_every_version(bytes in bytes()) {
        for api in every_api() {
            // Either verdict is right; a panic or an abort is not.
            drop(decode(BytesMut::from(&bytes[..]), api));
        }
    }
}

#[test]
fn an_empty_body_is_refused_wherever_fields_are_expected() {
    for api in every_api() {
        let without_fields = [ApiKey::ApiVersions, ApiKey::ListGroups];
        let is_empty = without_fields.contains(&api.key()) && api.version() < 3;
        assert_eq!(
            decode(BytesMut::new(), api).is_ok(),
            is_empty,
            "{} v{}",
            api.key(),
            api.version()
        );
    }
}
