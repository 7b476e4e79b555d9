//! Requests as they arrive on a connection: frames, headers, every body in every version.

use std::fmt::Debug;
use std::fs;

use bytes::{BufMut as _, BytesMut};
use strandline_model::ByteCount;
use strandline_wire::{
    Api, ApiKey, Arrival, DecodeError, FrameLimits, Message, alter_client_quotas, alter_configs,
    alter_partition_reassignments, alter_replica_log_dirs, api_versions, consumer_group_describe,
    create_partitions, create_topics, delete_groups, delete_records, delete_topics,
    describe_client_quotas, describe_cluster, describe_configs, describe_groups, describe_log_dirs,
    describe_producers, describe_quorum, describe_topic_partitions, elect_leaders, fetch,
    find_coordinator, heartbeat, incremental_alter_configs, init_producer_id, join_group,
    leave_group, list_config_resources, list_groups, list_offsets, list_partition_reassignments,
    metadata, next_request, offset_commit, offset_delete, offset_fetch, offset_for_leader_epoch,
    produce, served, sync_group, unregister_broker, update_features,
};

use super::{Target, kind_of, magnitude};
use crate::corpus;

pub(super) const TARGET: Target = Target { name: "frame", seeds, repair, run };

/// Requests of real clients, and an empty body for every API in every version.
fn seeds() -> Vec<Vec<u8>> {
    let folder = corpus::root().join("crates/wire/tests/golden");
    let files = fs::read_dir(folder).expect("the golden frames lie beside the codec");
    let paths = files.map(|file| file.expect("the folder can be listed").path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.to_string_lossy().contains("-request-")).collect();
    paths.sort();
    let mut seeds: Vec<_> =
        paths.iter().map(|path| fs::read(path).expect("it can be read")).collect();
    for row in served() {
        for version in row.min_version..=row.max_version {
            let mut frame = vec![0, 0, 0, 0];
            frame.put_i16(row.key.number());
            frame.put_i16(version);
            frame.put_i32(7);
            frame.put_i16(-1);
            frame.extend([0; 24]);
            repair(&mut frame);
            seeds.push(frame);
        }
    }
    seeds
}

fn repair(input: &mut [u8]) {
    let length = i32::try_from(input.len().saturating_sub(4)).expect("inputs are small");
    if let Some(field) = input.first_chunk_mut() {
        *field = length.to_be_bytes();
    }
}

fn run(input: &[u8]) -> u64 {
    let limits = FrameLimits::new(ByteCount::mib(100), ByteCount::mib(8));
    let mut buf = BytesMut::from(input);
    let mut kinds = 0;
    loop {
        let before = buf.len();
        let kind = match next_request(&mut buf, &limits) {
            Ok(Arrival::Missing(more)) => {
                assert!(more > 0, "something is missing, and it is nothing");
                assert_eq!(buf.len(), before, "an incomplete frame was eaten");
                return kinds ^ kind_of("missing");
            }
            Err(error) => return kinds ^ kind_of(&error),
            Ok(Arrival::Request(header, body)) => {
                kind_of((header.api, body_kind(header.api, body)))
            }
            Ok(Arrival::UnknownApiVersions { .. }) => kind_of("unknown ApiVersions"),
        };
        assert!(buf.len() < before, "a frame was read without its bytes");
        kinds = kinds.rotate_left(7) ^ kind;
    }
}

/// Decodes a body as the broker does; what it is, without its numbers.
fn body_kind(api: Api, body: BytesMut) -> String {
    let read = match api.key() {
        ApiKey::Produce => {
            produce::Request::decode(body, api).map(|request| produce_kind(&request))
        }
        ApiKey::Fetch => fetch::Request::decode(body, api).map(|request| fetch_kind(&request)),
        ApiKey::ListOffsets => again::<list_offsets::Request>(api, body),
        ApiKey::Metadata => again::<metadata::Request>(api, body),
        ApiKey::OffsetCommit => again::<offset_commit::Request>(api, body),
        ApiKey::OffsetFetch => again::<offset_fetch::Request>(api, body),
        ApiKey::FindCoordinator => again::<find_coordinator::Request>(api, body),
        ApiKey::JoinGroup => again::<join_group::Request>(api, body),
        ApiKey::Heartbeat => again::<heartbeat::Request>(api, body),
        ApiKey::LeaveGroup => again::<leave_group::Request>(api, body),
        ApiKey::SyncGroup => again::<sync_group::Request>(api, body),
        ApiKey::DescribeGroups => again::<describe_groups::Request>(api, body),
        ApiKey::ListGroups => again::<list_groups::Request>(api, body),
        ApiKey::ApiVersions => again::<api_versions::Request>(api, body),
        ApiKey::CreateTopics => again::<create_topics::Request>(api, body),
        ApiKey::DeleteTopics => again::<delete_topics::Request>(api, body),
        ApiKey::InitProducerId => again::<init_producer_id::Request>(api, body),
        ApiKey::OffsetForLeaderEpoch => again::<offset_for_leader_epoch::Request>(api, body),
        ApiKey::DescribeConfigs => again::<describe_configs::Request>(api, body),
        ApiKey::CreatePartitions => again::<create_partitions::Request>(api, body),
        ApiKey::DeleteGroups => again::<delete_groups::Request>(api, body),
        ApiKey::OffsetDelete => again::<offset_delete::Request>(api, body),
        ApiKey::DescribeCluster => again::<describe_cluster::Request>(api, body),
        ApiKey::AlterConfigs => again::<alter_configs::Request>(api, body),
        ApiKey::IncrementalAlterConfigs => again::<incremental_alter_configs::Request>(api, body),
        ApiKey::ListConfigResources => again::<list_config_resources::Request>(api, body),
        ApiKey::AlterReplicaLogDirs => again::<alter_replica_log_dirs::Request>(api, body),
        ApiKey::DescribeLogDirs => again::<describe_log_dirs::Request>(api, body),
        ApiKey::ElectLeaders => again::<elect_leaders::Request>(api, body),
        ApiKey::AlterPartitionReassignments => {
            again::<alter_partition_reassignments::Request>(api, body)
        }
        ApiKey::ListPartitionReassignments => {
            again::<list_partition_reassignments::Request>(api, body)
        }
        ApiKey::DescribeQuorum => again::<describe_quorum::Request>(api, body),
        ApiKey::UpdateFeatures => again::<update_features::Request>(api, body),
        ApiKey::UnregisterBroker => again::<unregister_broker::Request>(api, body),
        ApiKey::DescribeProducers => again::<describe_producers::Request>(api, body),
        ApiKey::DescribeClientQuotas => again::<describe_client_quotas::Request>(api, body),
        ApiKey::AlterClientQuotas => again::<alter_client_quotas::Request>(api, body),
        ApiKey::DescribeTopicPartitions => again::<describe_topic_partitions::Request>(api, body),
        ApiKey::DeleteRecords => again::<delete_records::Request>(api, body),
        ApiKey::ConsumerGroupDescribe => again::<consumer_group_describe::Request>(api, body),
    };
    read.unwrap_or_else(|error| format!("{error:?}"))
}

fn produce_kind(request: &produce::Request) -> String {
    let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let with_records = partitions.clone().filter(|partition| partition.records.is_some()).count();
    let amounts = [request.topics.len(), partitions.count(), with_records].map(magnitude);
    format!("{amounts:?} {}", request.transactional_id.is_some())
}

fn fetch_kind(request: &fetch::Request) -> String {
    let partitions = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    format!("{:?}", [request.topics.len(), partitions].map(magnitude))
}

/// Reads a message, writes it, reads that: the two must be the same.
fn again<M: Message + Debug>(api: Api, body: BytesMut) -> Result<String, DecodeError> {
    let message = M::decode(body.freeze(), api.version())?;
    let mut written = BytesMut::new();
    let size = message.encoded_len(api.version());
    if message.encode(&mut written, api.version()).is_ok() {
        let length = written.len();
        assert_eq!(size.ok(), Some(length), "the length was foretold wrong: {message:?}");
        let read = M::decode(written.freeze(), api.version()).expect("what we wrote can be read");
        assert_eq!(format!("{read:?}"), format!("{message:?}"), "changed on its way");
    }
    Ok(magnitude(format!("{message:?}").len()))
}
