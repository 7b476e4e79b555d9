//! Levels of features, and the quorum of one: what tools ask of controllers.

use strandline_storage::testkit::faults::CommitFault;
use strandline_wire::{ErrorCode, api_versions, describe_quorum, update_features};

use crate::harness::{Client, TestBroker, text};

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;

/// The epoch of the features, and the level of `metadata.version`.
async fn told(client: &mut Client) -> (i64, i16) {
    let request = api_versions::Request {
        client_software_name: text("test"),
        client_software_version: text("1"),
        ..Default::default()
    };
    let response = client.ask(4, &request).await;
    let [feature] = response.finalized_features.as_slice() else {
        panic!("{:?}", response.finalized_features)
    };
    assert_eq!(feature.name.as_str(), "metadata.version");
    assert_eq!(feature.min_version_level, feature.max_version_level);
    (response.finalized_features_epoch, feature.max_version_level)
}

async fn update(
    client: &mut Client,
    version: i16,
    level: i16,
    upgrade_type: i8,
    validate_only: bool,
) -> update_features::Response {
    let update = update_features::FeatureUpdateKey {
        feature: text("metadata.version"),
        max_version_level: level,
        upgrade_type,
        ..Default::default()
    };
    let feature_updates = vec![update];
    let request = update_features::Request { feature_updates, validate_only, ..Default::default() };
    client.ask(version, &request).await
}

#[tokio::test]
async fn levels_survive_a_restart() {
    let levels = [("metadata.version".to_owned(), 7)].into();
    let house = TestBroker::start_at_levels(levels).await;
    let mut client = house.connect();
    assert_eq!(told(&mut client).await, (1, 7));
    assert_eq!(update(&mut client, 2, 29, UPGRADE, false).await.error_code, 0);
    assert_eq!(told(&mut client).await, (2, 29));
    // Nothing changes, so no epoch passes.
    assert_eq!(update(&mut client, 2, 29, UPGRADE, false).await.error_code, 0);
    assert_eq!(told(&mut client).await, (2, 29));
    drop(client);
    let house = house.restart().await;
    let mut client = house.connect();
    assert_eq!(told(&mut client).await, (2, 29));
    assert_eq!(update(&mut client, 2, 23, SAFE_DOWNGRADE, false).await.error_code, 0);
    assert_eq!(told(&mut client).await, (3, 23));
}

#[tokio::test]
async fn what_is_only_tried_or_refused_changes_nothing() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    assert_eq!(told(&mut client).await, (1, 33));
    assert_eq!(update(&mut client, 1, 33, UPGRADE, true).await.results.len(), 1);
    assert_eq!(update(&mut client, 2, 33, UPGRADE, true).await.results.len(), 0);
    let refused = update(&mut client, 2, 32, SAFE_DOWNGRADE, false).await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_UPDATE_VERSION.get());
    let message = refused.error_message.expect("says why");
    assert!(message.as_str().ends_with("might delete metadata information."), "{message}");
    assert_eq!(told(&mut client).await, (1, 33));
}

#[tokio::test]
async fn levels_that_cannot_be_kept_are_not_told() {
    let levels = [("metadata.version".to_owned(), 7)].into();
    let house = TestBroker::start_at_levels(levels).await;
    let mut client = house.connect();
    house.faults.on_commit(0, CommitFault::Lose);
    let refused = update(&mut client, 2, 8, UPGRADE, false).await;
    assert_ne!(refused.error_code, 0);
    assert_eq!(told(&mut client).await, (1, 7));
}

#[tokio::test]
async fn the_quorum_is_this_broker() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let ask = |name: &str, indexes: &[i32]| {
        let partition = |&partition_index: &i32| describe_quorum::PartitionData {
            partition_index,
            ..Default::default()
        };
        let topic = describe_quorum::TopicData {
            topic_name: text(name),
            partitions: indexes.iter().map(partition).collect(),
            ..Default::default()
        };
        describe_quorum::Request { topics: vec![topic], ..Default::default() }
    };
    let response = client.ask(2, &ask("__cluster_metadata", &[0])).await;
    let partition = &response.topics[0].partitions[0];
    assert_eq!((partition.leader_id, partition.error_code), (1, 0));
    let [voter] = partition.current_voters.as_slice() else { panic!("{response:?}") };
    assert_eq!((voter.replica_id, voter.log_end_offset), (1, partition.high_watermark));
    assert_eq!(voter.last_caught_up_timestamp, 1_700_000_000_000);
    for (name, indexes) in [("t", &[0][..]), ("__cluster_metadata", &[0, 1])] {
        let response = client.ask(2, &ask(name, indexes)).await;
        for partition in &response.topics[0].partitions {
            assert_eq!(partition.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get());
        }
        assert!(response.nodes.is_empty());
    }
}
