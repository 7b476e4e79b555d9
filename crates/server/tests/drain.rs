//! The end of a server: within its limit, whatever a peer does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strandline_broker::{Broker, BrokerParts, Engines, NoLoggers};
use strandline_model::config::BrokerLayers;
use strandline_model::{ByteCount, Limits};
use strandline_server::{Drained, Server, ServerConfig, SystemEnvironment, bind};
use strandline_storage::{MemoryEngine, MemoryOptions};

/// `ApiVersions`, version 0, without a client id.
const API_VERSIONS: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
/// How long a slow machine may take for what takes no time.
const PATIENCE: Duration = Duration::from_secs(30);

async fn start() -> (Server, SocketAddr) {
    let memory =
        Arc::new(MemoryEngine::new(MemoryOptions::with_capacity(ByteCount::mib(1)), |settling| {
            tokio::spawn(settling);
        }));
    let layers = BrokerLayers::default();
    let config = layers.broker_config().expect("the defaults are valid");
    let request_bytes_max = config.socket_request_max_bytes;
    let broker = Broker::start(BrokerParts {
        layers,
        config,
        engines: Engines::new("file", Arc::clone(&memory) as _),
        meta: memory,
        environment: Arc::new(SystemEnvironment),
        coordinators: Vec::new(),
        advertised: std::collections::BTreeMap::new(),
        loggers: Arc::new(NoLoggers),
        features: std::collections::BTreeMap::new(),
    })
    .await
    .expect("an empty broker starts");
    let bound = bind("127.0.0.1", 0, 16).expect("a free port");
    let address = SocketAddr::from(([127, 0, 0, 1], bound.port()));
    let config = ServerConfig {
        workers: 1,
        request_bytes_max,
        idle_max: None,
        limits: Limits::production(),
    };
    (Server::start(vec![bound], broker, config).expect("a thread starts"), address)
}

#[tokio::test]
async fn connections_without_requests_close_at_once() {
    let (server, address) = start().await;
    let mut stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.write_all(&API_VERSIONS).expect("it is taken");
    // Off this thread, which accepts for the server.
    let answered = tokio::task::spawn_blocking(move || {
        stream.read_exact(&mut [0; 4]).expect("an answer");
        stream
    });
    let _stream = answered.await.expect("no panic");
    assert_eq!(server.drain(PATIENCE).await, Drained { cut: 0, stuck: false });
}

#[tokio::test]
async fn a_peer_that_takes_nothing_is_cut_at_the_limit() {
    let (server, address) = start().await;
    let filled = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("the server accepts");
        stream.set_write_timeout(Some(Duration::from_secs(3))).expect("a timeout can be set");
        // Until the server reads no more, since nobody takes its answers: on a busy machine it may be
        // late for a second and not stuck.
        let requests = API_VERSIONS.repeat(1000);
        while stream.write_all(&requests).is_ok() {}
        stream
    });
    let _stream = filled.await.expect("no panic");
    let begin = Instant::now();
    let drained = server.drain(Duration::from_millis(200)).await;
    assert_eq!(drained, Drained { cut: 1, stuck: false });
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
}
