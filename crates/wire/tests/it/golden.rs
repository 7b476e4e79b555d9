//! Frames that real clients and a real broker exchanged: read, written again, compared bit by bit.
//!
//! `tests/golden/API-vVERSION-DIRECTION-CLIENT.bin` holds one frame with its length: requests of
//! librdkafka 2.x (kcat) and of the Java clients and tools of Apache Kafka 4.4, and what that broker
//! answered; `hand` marks requests that no client sent in the capture and that were put together.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bytes::{Buf, Bytes, BytesMut};
use strandline_model::ByteCount;
use strandline_wire::{
    Api, ApiKey, Arrival, FrameLimits, Message, RequestHeader, alter_client_quotas, alter_configs,
    alter_partition_reassignments, alter_replica_log_dirs, api_versions, create_partitions,
    create_topics, delete_groups, delete_records, delete_topics, describe_client_quotas,
    describe_cluster, describe_configs, describe_groups, describe_log_dirs, describe_producers,
    describe_topic_partitions, elect_leaders, fetch, find_coordinator, heartbeat,
    incremental_alter_configs, init_producer_id, join_group, leave_group, list_config_resources,
    list_groups, list_offsets, list_partition_reassignments, metadata, next_request, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, produce, read_response, served,
    sync_group, write_request, write_response,
};

struct Golden {
    name: String,
    api: &'static str,
    version: i16,
    is_request: bool,
    frame: Bytes,
}

fn golden() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let parts: Vec<&str> = name.split('-').collect();
            let [api, version, direction, _client] = parts[..] else { panic!("{name}") };
            let row = served().iter().find(|row| row.key.name() == api).expect("a served API");
            Golden {
                api: row.key.name(),
                version: version.trim_start_matches('v').parse().unwrap(),
                is_request: direction == "request",
                frame: fs::read(&path).unwrap().into(),
                name,
            }
        })
        .collect()
}

fn limits() -> FrameLimits {
    FrameLimits::new(ByteCount::mib(100), ByteCount::mib(8))
}

/// Decodes a request and writes it again.
fn rewrite_request(header: &RequestHeader, body: BytesMut) -> BytesMut {
    fn generated<M: Message>(header: &RequestHeader, body: BytesMut) -> BytesMut {
        write(header, &M::decode(body.freeze(), header.api.version()).unwrap())
    }
    fn write(header: &RequestHeader, message: &impl Message) -> BytesMut {
        let mut buf = BytesMut::new();
        write_request(&mut buf, header, message).unwrap();
        buf
    }
    let rewrite = match header.api.key() {
        ApiKey::Produce => {
            let request = produce::Request::decode(body, header.api).unwrap();
            return write(header, &crate::produce::generated(request));
        }
        ApiKey::Fetch => {
            let request = fetch::Request::decode(body, header.api).unwrap();
            return write(header, &crate::fetch::generated(&request, header.api));
        }
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
    rewrite(header, body)
}

/// Decodes a response and writes it again.
fn rewrite_response(api: Api, frame: Bytes) -> BytesMut {
    fn generated<M: Message>(api: Api, frame: Bytes) -> BytesMut {
        let (correlation_id, message) = read_response::<M>(frame, api).unwrap();
        let mut buf = BytesMut::new();
        write_response(&mut buf, api, correlation_id, &message).unwrap();
        buf
    }
    let rewrite = match api.key() {
        ApiKey::Produce => {
            let (correlation_id, message) = read_response(frame, api).unwrap();
            let mut buf = BytesMut::new();
            crate::produce::ours(message).write_frame(&mut buf, api, correlation_id).unwrap();
            return buf;
        }
        ApiKey::Fetch => {
            let (correlation_id, message) = read_response(frame, api).unwrap();
            let (response, records) = crate::fetch::ours(message);
            return crate::fetch::sent(&response, &records, api, correlation_id);
        }
        ApiKey::ListOffsets => generated::<list_offsets::Response>,
        ApiKey::Metadata => generated::<metadata::Response>,
        ApiKey::OffsetCommit => generated::<offset_commit::Response>,
        ApiKey::OffsetFetch => generated::<offset_fetch::Response>,
        ApiKey::FindCoordinator => generated::<find_coordinator::Response>,
        ApiKey::JoinGroup => generated::<join_group::Response>,
        ApiKey::Heartbeat => generated::<heartbeat::Response>,
        ApiKey::LeaveGroup => generated::<leave_group::Response>,
        ApiKey::SyncGroup => generated::<sync_group::Response>,
        ApiKey::DescribeGroups => generated::<describe_groups::Response>,
        ApiKey::ListGroups => generated::<list_groups::Response>,
        ApiKey::ApiVersions => generated::<api_versions::Response>,
        ApiKey::CreateTopics => generated::<create_topics::Response>,
        ApiKey::DeleteTopics => generated::<delete_topics::Response>,
        ApiKey::InitProducerId => generated::<init_producer_id::Response>,
        ApiKey::OffsetForLeaderEpoch => generated::<offset_for_leader_epoch::Response>,
        ApiKey::DescribeConfigs => generated::<describe_configs::Response>,
        ApiKey::CreatePartitions => generated::<create_partitions::Response>,
        ApiKey::DeleteGroups => generated::<delete_groups::Response>,
        ApiKey::OffsetDelete => generated::<offset_delete::Response>,
        ApiKey::DescribeCluster => generated::<describe_cluster::Response>,
        ApiKey::AlterConfigs => generated::<alter_configs::Response>,
        ApiKey::IncrementalAlterConfigs => generated::<incremental_alter_configs::Response>,
        ApiKey::ListConfigResources => generated::<list_config_resources::Response>,
        ApiKey::AlterReplicaLogDirs => generated::<alter_replica_log_dirs::Response>,
        ApiKey::DescribeLogDirs => generated::<describe_log_dirs::Response>,
        ApiKey::ElectLeaders => generated::<elect_leaders::Response>,
        ApiKey::AlterPartitionReassignments => generated::<alter_partition_reassignments::Response>,
        ApiKey::ListPartitionReassignments => generated::<list_partition_reassignments::Response>,
        ApiKey::DescribeProducers => generated::<describe_producers::Response>,
        ApiKey::DeleteRecords => generated::<delete_records::Response>,
        ApiKey::DescribeClientQuotas => generated::<describe_client_quotas::Response>,
        ApiKey::AlterClientQuotas => generated::<alter_client_quotas::Response>,
        ApiKey::DescribeTopicPartitions => generated::<describe_topic_partitions::Response>,
        other @ ApiKey::ConsumerGroupDescribe => unreachable!("{other} is not served"),
    };
    rewrite(api, frame)
}

#[test]
fn real_requests_come_out_as_they_went_in() {
    for golden in golden().iter().filter(|golden| golden.is_request) {
        let mut buf = BytesMut::from(&golden.frame[..]);
        match next_request(&mut buf, &limits()).unwrap() {
            Arrival::Request(header, body) => {
                assert_eq!(header.api.version(), golden.version, "{}", golden.name);
                assert_eq!(rewrite_request(&header, body), golden.frame, "{}", golden.name);
            }
            Arrival::UnknownApiVersions { .. } => {
                assert_eq!(golden.api, "ApiVersions", "{}", golden.name);
                assert!(golden.version > ApiKey::ApiVersions.served().max_version);
            }
            Arrival::Missing(_) => panic!("{} is a whole frame", golden.name),
        }
        assert!(buf.is_empty(), "{}", golden.name);
    }
}

#[test]
fn real_responses_come_out_as_they_went_in() {
    for golden in golden().iter().filter(|golden| !golden.is_request) {
        let row = served().iter().find(|row| row.key.name() == golden.api).unwrap();
        let api = row.at(golden.version).expect("a served version");
        let mut frame = golden.frame.clone();
        frame.advance(4);
        assert_eq!(rewrite_response(api, frame), golden.frame, "{}", golden.name);
    }
}

#[test]
fn every_api_has_a_golden_request_and_response() {
    let golden = golden();
    for is_request in [true, false] {
        let seen: BTreeSet<&str> = golden
            .iter()
            .filter(|golden| golden.is_request == is_request)
            .map(|golden| golden.api)
            .collect();
        assert_eq!(seen, served().iter().map(|row| row.key.name()).collect());
    }
}
