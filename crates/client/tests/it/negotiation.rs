//! Which versions are used, and what is said when there are none.

use strandline_client::{Address, Client, ClientError, Connection, Origin};
use strandline_wire::{ApiKey, ErrorCode, api_versions};

use crate::fake::{Peer, all_versions, listen};

fn unsupported(max_version: i16) -> api_versions::Response {
    api_versions::Response {
        error_code: ErrorCode::UNSUPPORTED_VERSION.get(),
        api_keys: vec![api_versions::ApiVersion {
            api_key: ApiKey::ApiVersions.number(),
            max_version,
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[tokio::test]
async fn an_older_broker_is_asked_again_in_its_own_version() {
    let (listener, config) = listen().await;
    let broker = async {
        let mut peer = Peer::accept(&listener).await;
        let first = peer.request().await.unwrap();
        assert_eq!(first.api.version(), ApiKey::ApiVersions.served().max_version);
        let version_0 = ApiKey::ApiVersions.served().at(0).unwrap();
        peer.answer(version_0, first.correlation_id, &unsupported(2)).await;
        let second = peer.request().await.unwrap();
        assert_eq!(second.api.version(), 2);
        let mut response = all_versions();
        for row in &mut response.api_keys {
            row.max_version = row.max_version.min(3);
        }
        peer.answer(second.api, second.correlation_id, &response).await;
    };
    let address = &config.bootstrap[0];
    let (connection, ()) =
        tokio::join!(Connection::open(address, Origin::Bootstrap, &config), broker);
    let connection = connection.unwrap();
    assert_eq!(connection.version(ApiKey::Metadata, i16::MAX).unwrap().version(), 3);
    assert_eq!(connection.version(ApiKey::Produce, 12).unwrap().version(), 3);
    let error = connection.version(ApiKey::Fetch, i16::MAX).unwrap_err();
    assert!(matches!(error, ClientError::Unsupported { key: ApiKey::Fetch, .. }), "{error}");
}

#[tokio::test]
async fn a_broker_that_refuses_every_version_is_given_up() {
    let (listener, config) = listen().await;
    let broker = async {
        let mut peer = Peer::accept(&listener).await;
        let version_0 = ApiKey::ApiVersions.served().at(0).unwrap();
        while let Some(header) = peer.request().await {
            peer.answer(version_0, header.correlation_id, &unsupported(3)).await;
        }
    };
    let (client, ()) = tokio::join!(Client::connect(config), broker);
    assert!(matches!(
        client.unwrap_err(),
        ClientError::Unsupported { key: ApiKey::ApiVersions, .. }
    ));
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_named() {
    let (listener, config) = listen().await;
    let address = config.bootstrap[0].clone();
    drop(listener);
    let error = Client::connect(config).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot reach Kafka at {address}: ")), "{error}");
}

#[tokio::test]
async fn the_next_bootstrap_address_is_tried() {
    let (gone, mut config) = listen().await;
    drop(gone);
    let (listener, other) = listen().await;
    config.bootstrap.extend(other.bootstrap);
    let broker = async { Peer::accept(&listener).await.introduce().await };
    let (client, ()) = tokio::join!(Client::connect(config), broker);
    client.unwrap();
}

#[tokio::test]
async fn an_advertised_address_that_is_unreachable_says_who_named_it() {
    let (listener, config) = listen().await;
    let by = config.bootstrap[0].clone();
    let gone = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
    drop(listener);
    let origin = Origin::Advertised { by };
    let error = Connection::open(&gone, origin, &config).await.unwrap_err().to_string();
    assert!(error.contains("answered, but it told us to connect to 127.0.0.1:"), "{error}");
}
