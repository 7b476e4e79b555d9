//! Every advertised version of every API is answered.

use strandline_wire::{
    Request, alter_client_quotas, alter_configs, alter_partition_reassignments,
    alter_replica_log_dirs, api_versions, create_partitions, create_topics, delete_groups,
    delete_records, delete_topics, describe_client_quotas, describe_cluster, describe_configs,
    describe_groups, describe_log_dirs, describe_producers, describe_quorum,
    describe_topic_partitions, elect_leaders, fetch, find_coordinator, heartbeat,
    incremental_alter_configs, init_producer_id, join_group, leave_group, list_config_resources,
    list_groups, list_offsets, list_partition_reassignments, metadata, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, produce, served, sync_group,
    unregister_broker, update_features,
};

use crate::harness::{Client, TestBroker, batch, fetch_request, produce_request, text};

async fn in_every_version<R: Request>(client: &mut Client, tried: &mut usize, request: &R) {
    let served = R::KEY.served();
    for version in served.min_version..=served.max_version {
        client.ask(version, request).await;
    }
    *tried += 1;
}

#[tokio::test]
async fn every_version_of_every_api_is_answered() {
    let house = TestBroker::start().await;
    let client = &mut house.connect();
    client.create_topic("t", 2).await;
    client.produce("t", batch(&["a"])).await;
    let mut tried = 0;
    let name = || vec![text("t")];
    let request = api_versions::Request {
        client_software_name: text("test"),
        client_software_version: text("1"),
        ..Default::default()
    };
    in_every_version(client, &mut tried, &request).await;

    let topic = metadata::MetadataRequestTopic { name: Some(text("t")), ..Default::default() };
    let request = metadata::Request { topics: Some(vec![topic]), ..Default::default() };
    in_every_version(client, &mut tried, &request).await;

    for (version, by_id) in (3..=13).map(|version| (version, version >= 13)) {
        if !by_id {
            client.ask(version, &produce_request("t", batch(&["b"]))).await;
        }
    }
    tried += 1;
    in_every_version_of_fetch(client).await;
    tried += 1;

    let partition = list_offsets::ListOffsetsPartition { timestamp: -1, ..Default::default() };
    let partitions = vec![partition];
    let topic =
        list_offsets::ListOffsetsTopic { name: text("t"), partitions, ..Default::default() };
    let request = list_offsets::Request { topics: vec![topic], ..Default::default() };
    in_every_version(client, &mut tried, &request).await;

    let request = create_topics::Request::default();
    in_every_version(client, &mut tried, &request).await;
    for version in 1..=5 {
        let request = delete_topics::Request { topic_names: name(), ..Default::default() };
        client.ask(version, &request).await;
        client.create_topic("t", 2).await;
    }
    client.ask(6, &delete_topics::Request::default()).await;
    tried += 1;

    in_every_version(client, &mut tried, &init_producer_id::Request::default()).await;

    let partition = offset_for_leader_epoch::OffsetForLeaderPartition::default();
    let topic = offset_for_leader_epoch::OffsetForLeaderTopic {
        topic: text("t"),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = offset_for_leader_epoch::Request { topics: vec![topic], ..Default::default() };
    in_every_version(client, &mut tried, &request).await;

    administration(client, &mut tried).await;

    let topic = create_partitions::CreatePartitionsTopic {
        name: text("t"),
        count: 3,
        assignments: None,
        ..Default::default()
    };
    let request = create_partitions::Request { topics: vec![topic], ..Default::default() };
    in_every_version(client, &mut tried, &request).await;
    in_every_version(client, &mut tried, &describe_cluster::Request::default()).await;
    in_every_version(client, &mut tried, &describe_topic_partitions::Request::default()).await;
    in_every_version_of_groups(client, &mut tried).await;
    assert_eq!(tried, served().len(), "an API is missing here");
}

async fn administration(client: &mut Client, tried: &mut usize) {
    let resources = [(2, "t"), (2, "missing"), (4, "1"), (4, ""), (16, "x")];
    let resource = |(resource_type, name)| describe_configs::DescribeConfigsResource {
        resource_type,
        resource_name: text(name),
        configuration_keys: None,
        ..Default::default()
    };
    let request = describe_configs::Request {
        resources: resources.map(resource).to_vec(),
        include_synonyms: true,
        ..Default::default()
    };
    in_every_version(client, tried, &request).await;
    let resource = alter_configs::AlterConfigsResource {
        resource_type: 2,
        resource_name: text("t"),
        ..Default::default()
    };
    let request = alter_configs::Request { resources: vec![resource], ..Default::default() };
    in_every_version(client, tried, &request).await;
    let resource = incremental_alter_configs::AlterConfigsResource {
        resource_type: 2,
        resource_name: text("t"),
        ..Default::default()
    };
    let request =
        incremental_alter_configs::Request { resources: vec![resource], ..Default::default() };
    in_every_version(client, tried, &request).await;
    in_every_version(client, tried, &list_config_resources::Request::default()).await;
    in_every_version(client, tried, &describe_client_quotas::Request::default()).await;
    in_every_version(client, tried, &alter_client_quotas::Request::default()).await;
    in_every_version(client, tried, &delete_records::Request::default()).await;
    in_every_version(client, tried, &alter_replica_log_dirs::Request::default()).await;
    in_every_version(client, tried, &describe_log_dirs::Request::default()).await;
    in_every_version(client, tried, &elect_leaders::Request::default()).await;
    in_every_version(client, tried, &alter_partition_reassignments::Request::default()).await;
    in_every_version(client, tried, &list_partition_reassignments::Request::default()).await;
    in_every_version(client, tried, &describe_producers::Request::default()).await;
    let partitions = vec![describe_quorum::PartitionData::default()];
    let topic_name = text("__cluster_metadata");
    let topic = describe_quorum::TopicData { topic_name, partitions, ..Default::default() };
    let request = describe_quorum::Request { topics: vec![topic], ..Default::default() };
    in_every_version(client, tried, &request).await;
    in_every_version(client, tried, &update_features::Request::default()).await;
    in_every_version(client, tried, &unregister_broker::Request::default()).await;
}

async fn in_every_version_of_fetch(client: &mut Client) {
    for version in 4..=12 {
        let response = client.ask(version, &fetch_request("t", 0, 0)).await;
        let partition = &response.responses[0].partitions[0];
        assert!(partition.records.as_ref().is_some_and(|records| !records.is_empty()), "{version}");
    }
    for version in 13..=18 {
        let request = fetch::message::Request { max_bytes: 1, ..Default::default() };
        client.ask(version, &request).await;
    }
    let empty = produce::message::Request { acks: -1, ..Default::default() };
    client.ask(13, &empty).await;
}

/// Of a group that nobody has joined: each request is answered at once, some with an error.
async fn in_every_version_of_groups(client: &mut Client, tried: &mut usize) {
    let group = || text("g");
    in_every_version(client, tried, &find_coordinator::Request::default()).await;
    let request = join_group::Request {
        group_id: group(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: text("nobody"),
        ..Default::default()
    };
    in_every_version(client, tried, &request).await;
    in_every_version(client, tried, &sync_group::Request::default()).await;
    in_every_version(client, tried, &heartbeat::Request::default()).await;
    in_every_version(client, tried, &leave_group::Request::default()).await;

    let partition = offset_commit::OffsetCommitRequestPartition {
        committed_offset: 3,
        committed_metadata: Some(text("note")),
        ..Default::default()
    };
    let topic = offset_commit::OffsetCommitRequestTopic {
        name: text("t"),
        partitions: vec![partition],
        ..Default::default()
    };
    let request =
        offset_commit::Request { group_id: group(), topics: vec![topic], ..Default::default() };
    in_every_version(client, tried, &request).await;
    for version in 1..=10 {
        let topic = offset_fetch::OffsetFetchRequestTopic {
            name: text("t"),
            partition_indexes: vec![0],
            ..Default::default()
        };
        let asked = offset_fetch::OffsetFetchRequestGroup {
            group_id: group(),
            topics: None,
            ..Default::default()
        };
        let request = if version < 8 {
            let topics = Some(vec![topic]);
            offset_fetch::Request { group_id: group(), topics, ..Default::default() }
        } else {
            offset_fetch::Request { groups: vec![asked], ..Default::default() }
        };
        let response = client.ask(version, &request).await;
        let offset = if version < 8 {
            response.topics[0].partitions[0].committed_offset
        } else {
            response.groups[0].topics[0].partitions[0].committed_offset
        };
        assert_eq!(offset, 3, "v{version}");
    }
    *tried += 1;
    let request = offset_delete::Request { group_id: group(), ..Default::default() };
    in_every_version(client, tried, &request).await;
    let request = describe_groups::Request { groups: vec![group()], ..Default::default() };
    in_every_version(client, tried, &request).await;
    in_every_version(client, tried, &list_groups::Request::default()).await;
    let request = delete_groups::Request { groups_names: vec![group()], ..Default::default() };
    in_every_version(client, tried, &request).await;
}
