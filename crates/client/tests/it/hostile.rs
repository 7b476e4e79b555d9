//! Peers that are slow, gone, or speak something else.

use std::time::Duration;

use strandline_client::{Client, ClientError, Config};
use strandline_model::ByteCount;
use strandline_wire::metadata;

use crate::fake::{Peer, listen};

/// What a call to a broker says that introduces itself and then sends `bytes` and hangs up.
async fn answered_with(bytes: &[u8]) -> ClientError {
    let (listener, config) = listen().await;
    let config = Config { response_bytes_max: ByteCount::mib(1), ..config };
    let broker = async {
        let mut peer = Peer::accept(&listener).await;
        peer.introduce().await;
        peer.request().await.unwrap();
        peer.write(bytes).await;
    };
    let call = async {
        let mut client = Client::connect(config).await.unwrap();
        client.call(&metadata::Request::default()).await.unwrap_err()
    };
    tokio::join!(call, broker).0
}

#[tokio::test]
async fn garbage_is_an_error_not_a_panic_or_a_wait() {
    for (bytes, broken) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], true),
        (&[0x7f, 0xff, 0xff, 0xff], true),
        (&[0xff, 0xff, 0xff, 0xff], true),
        (&[0, 0, 0, 0], true),
        (&[0, 0, 0, 100, 0, 0, 0, 1], true),
        (&[], true),
        // Another correlation id than the request's.
        (&[0, 0, 0, 5, 0, 0, 0, 77, 0], true),
        // A body of a single byte; a header that is cut short.
        (&[0, 0, 0, 6, 0, 0, 0, 1, 0, 0], false),
        (&[0, 0, 0, 2, 0, 0], false),
    ] {
        match answered_with(bytes).await {
            ClientError::Broken { .. } => assert!(broken, "{bytes:?}"),
            ClientError::Garbled { .. } => assert!(!broken, "{bytes:?}"),
            other => panic!("{bytes:?}: {other}"),
        }
    }
}

#[tokio::test]
async fn a_silent_broker_ends_in_a_timeout_and_the_next_call_connects_anew() {
    let (listener, config) = listen().await;
    let config = Config { request_timeout: Duration::from_millis(100), ..config };
    let broker = async {
        let mut silent = Peer::accept(&listener).await;
        silent.introduce().await;
        loop {
            let mut talking = Peer::accept(&listener).await;
            talking.introduce().await;
            while let Some(header) = talking.request().await {
                let response = metadata::Response::default();
                talking.answer(header.api, header.correlation_id, &response).await;
            }
        }
    };
    let calls = async {
        let mut client = Client::connect(config).await.unwrap();
        let error = client.call(&metadata::Request::default()).await.unwrap_err();
        assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
        // On a busy machine the talking broker may be late, too.
        let mut attempts = 0;
        while let Err(error) = client.call(&metadata::Request::default()).await {
            attempts += 1;
            assert!(matches!(error, ClientError::Timeout { .. }) && attempts < 50, "{error}");
        }
    };
    tokio::select! {
        () = calls => {}
        () = broker => {}
    }
}

#[tokio::test]
async fn a_call_that_was_dropped_leaves_the_connection_usable() {
    let (listener, config) = listen().await;
    let broker = async {
        let mut peer = Peer::accept(&listener).await;
        peer.introduce().await;
        for session in 0..2 {
            let header = peer.request().await.unwrap();
            let response = metadata::Response { controller_id: session, ..Default::default() };
            peer.answer(header.api, header.correlation_id, &response).await;
        }
    };
    let calls = async {
        let mut client = Client::connect(config).await.unwrap();
        let request = metadata::Request::default();
        {
            let abandoned = client.call(&request);
            tokio::pin!(abandoned);
            // One poll sends the request; then the future is dropped.
            tokio::select! {
                biased;
                result = &mut abandoned => panic!("no answer yet: {result:?}"),
                () = std::future::ready(()) => {}
            }
        }
        assert_eq!(client.call(&request).await.unwrap().controller_id, 1);
    };
    tokio::join!(calls, broker);
}
