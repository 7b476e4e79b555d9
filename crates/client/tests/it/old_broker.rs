//! Groups of a broker of years ago: one group a request, no consumer protocol, "Dead" for nothing.

use strandline_client::{Client, CommittedOffset, Config};
use strandline_wire::{
    ApiKey, ErrorCode, KafkaString, RequestHeader, api_versions, describe_groups, find_coordinator,
    offset_fetch,
};
use tokio::net::TcpListener;

use crate::fake::{Peer, listen};

/// What Kafka 2.1 has of the APIs that are used here.
fn versions() -> api_versions::Response {
    let row = |(key, max_version): (ApiKey, i16)| api_versions::ApiVersion {
        api_key: key.number(),
        max_version,
        ..Default::default()
    };
    let rows = [
        (ApiKey::ApiVersions, 2),
        (ApiKey::FindCoordinator, 2),
        (ApiKey::OffsetFetch, 5),
        (ApiKey::DescribeGroups, 2),
    ];
    api_versions::Response { api_keys: rows.map(row).to_vec(), ..Default::default() }
}

async fn introduce(peer: &mut Peer) {
    let header = peer.request().await.unwrap();
    peer.answer(header.api, header.correlation_id, &versions()).await;
}

async fn expect(peer: &mut Peer, key: ApiKey, version: i16) -> RequestHeader {
    let header = peer.request().await.unwrap();
    assert_eq!((header.api.key(), header.api.version()), (key, version));
    header
}

/// Says that it is the coordinator itself.
async fn coordinate(peer: &mut Peer, listener: &TcpListener) {
    let header = expect(peer, ApiKey::FindCoordinator, 2).await;
    let port = listener.local_addr().unwrap().port();
    let response = find_coordinator::Response {
        node_id: 7,
        host: KafkaString::from_static("127.0.0.1"),
        port: i32::from(port),
        ..Default::default()
    };
    peer.answer(header.api, header.correlation_id, &response).await;
}

async fn connected(listener: &TcpListener, config: Config) -> (Client, Peer) {
    let broker = async {
        let mut peer = Peer::accept(listener).await;
        introduce(&mut peer).await;
        peer
    };
    let (client, peer) = tokio::join!(Client::connect(config), broker);
    (client.unwrap(), peer)
}

#[tokio::test]
async fn committed_offsets_are_read_one_group_a_request() {
    let (listener, config) = listen().await;
    let (mut client, mut peer) = connected(&listener, config).await;
    let partition =
        |partition_index, committed_offset| offset_fetch::OffsetFetchResponsePartition {
            partition_index,
            committed_offset,
            ..Default::default()
        };
    let broker = async {
        coordinate(&mut peer, &listener).await;
        let header = expect(&mut peer, ApiKey::OffsetFetch, 5).await;
        let response = offset_fetch::Response {
            topics: vec![offset_fetch::OffsetFetchResponseTopic {
                name: KafkaString::from_static("orders"),
                // −1 stands for nothing committed.
                partitions: vec![partition(2, 20), partition(1, -1), partition(0, 7)],
                ..Default::default()
            }],
            ..Default::default()
        };
        peer.answer(header.api, header.correlation_id, &response).await;
    };
    let (committed, ()) = tokio::join!(client.committed("billing"), broker);
    let expected = |partition, offset| CommittedOffset {
        topic: "orders".to_owned(),
        partition,
        offset,
        metadata: String::new(),
    };
    assert_eq!(committed.unwrap(), [expected(0, 7), expected(2, 20)]);
}

#[tokio::test]
async fn a_group_that_is_not_there_is_found_out() {
    let (listener, config) = listen().await;
    let (mut client, mut peer) = connected(&listener, config).await;
    let broker = async {
        coordinate(&mut peer, &listener).await;
        let header = expect(&mut peer, ApiKey::DescribeGroups, 2).await;
        let response = describe_groups::Response {
            groups: vec![describe_groups::DescribedGroup {
                group_id: KafkaString::from_static("billing"),
                group_state: KafkaString::from_static("Dead"),
                ..Default::default()
            }],
            ..Default::default()
        };
        peer.answer(header.api, header.correlation_id, &response).await;
    };
    let (described, ()) = tokio::join!(client.describe_group("billing"), broker);
    assert_eq!(described.unwrap_err().code(), Some(ErrorCode::GROUP_ID_NOT_FOUND));
}

#[tokio::test]
async fn a_coordinator_that_is_not_ready_is_asked_again() {
    let (listener, config) = listen().await;
    let (mut client, mut peer) = connected(&listener, config).await;
    let broker = async {
        let header = expect(&mut peer, ApiKey::FindCoordinator, 2).await;
        let response = find_coordinator::Response {
            error_code: ErrorCode::COORDINATOR_NOT_AVAILABLE.get(),
            ..Default::default()
        };
        peer.answer(header.api, header.correlation_id, &response).await;
        coordinate(&mut peer, &listener).await;
        let header = expect(&mut peer, ApiKey::OffsetFetch, 5).await;
        let response = offset_fetch::Response {
            error_code: ErrorCode::NOT_COORDINATOR.get(),
            ..Default::default()
        };
        peer.answer(header.api, header.correlation_id, &response).await;
        coordinate(&mut peer, &listener).await;
        let header = expect(&mut peer, ApiKey::OffsetFetch, 5).await;
        peer.answer(header.api, header.correlation_id, &offset_fetch::Response::default()).await;
    };
    let (committed, ()) = tokio::join!(client.committed("billing"), broker);
    assert_eq!(committed.unwrap(), []);
}
