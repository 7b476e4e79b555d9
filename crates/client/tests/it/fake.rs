//! A broker of a few lines: reads requests, answers what the test says.

use bytes::BytesMut;
use strandline_client::Config;
use strandline_model::ByteCount;
use strandline_wire::{
    Api, ApiKey, Arrival, FrameLimits, Message, RequestHeader, api_versions, next_request, served,
    write_response,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The broker's end of one connection.
pub(crate) struct Peer {
    stream: TcpStream,
    read: BytesMut,
}

/// A socket to accept from, and the configuration of a client that goes there.
pub(crate) async fn listen() -> (TcpListener, Config) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = Config::new(&listener.local_addr().unwrap().to_string()).unwrap();
    (listener, config)
}

impl Peer {
    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().await.unwrap();
        Self { stream, read: BytesMut::new() }
    }

    /// The next request, or `None` when the client has gone.
    pub(crate) async fn request(&mut self) -> Option<RequestHeader> {
        let limits = FrameLimits::new(ByteCount::mib(1), ByteCount::mib(1));
        loop {
            match next_request(&mut self.read, &limits).unwrap() {
                Arrival::Request(header, _) => return Some(header),
                Arrival::Missing(_) => {}
                Arrival::UnknownApiVersions { .. } => panic!("the client knows our versions"),
            }
            if self.stream.read_buf(&mut self.read).await.unwrap() == 0 {
                return None;
            }
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, api: Api, correlation_id: i32, message: &impl Message) {
        let mut buf = BytesMut::new();
        write_response(&mut buf, api, correlation_id, message).unwrap();
        self.write(&buf).await;
    }

    /// Answers the first request of a connection with all versions that we serve.
    pub(crate) async fn introduce(&mut self) {
        let header = self.request().await.unwrap();
        assert_eq!(header.api.key(), ApiKey::ApiVersions);
        self.answer(header.api, header.correlation_id, &all_versions()).await;
    }
}

pub(crate) fn all_versions() -> api_versions::Response {
    let row = |row: &strandline_wire::ServedApi| api_versions::ApiVersion {
        api_key: row.key.number(),
        min_version: row.advertised_from,
        max_version: row.max_version,
        ..Default::default()
    };
    api_versions::Response { api_keys: served().iter().map(row).collect(), ..Default::default() }
}
