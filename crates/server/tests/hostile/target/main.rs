//! The smallest broker: logs in memory, a free port, gone when its standard input ends.
//!
//! The hostile tests attack it, in a process of its own so that its memory can be told from theirs.
//! A binary and not an example, since only binaries are there whenever a test is.

use std::io::Write;
use std::sync::Arc;

use strandline_broker::{Broker, BrokerParts, Engines, NoLoggers};
use strandline_model::config::BrokerLayers;
use strandline_model::{ByteCount, Limits};
use strandline_server::{Server, ServerConfig, SystemEnvironment, bind};
use strandline_storage::{MemoryEngine, MemoryOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let memory =
        Arc::new(MemoryEngine::new(MemoryOptions::with_capacity(ByteCount::mib(64)), |settling| {
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

    let bound = bind("127.0.0.1", 0, 4096).expect("a free port");
    writeln!(std::io::stdout(), "{}", bound.port()).expect("whoever started this reads the port");
    let server = Server::start(
        vec![bound],
        Arc::clone(&broker),
        ServerConfig {
            workers: 2,
            request_bytes_max,
            idle_max: None,
            limits: Limits::production(),
        },
    )
    .expect("threads start");

    // A thread of its own: reading standard input can't be cancelled.
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let read = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        // Nobody waits any more: the process is ending already.
        drop(ended.send(read));
    });
    drop(end.await);
    broker.drain();
    let drained = server.drain(std::time::Duration::from_secs(5)).await;
    assert!(!drained.stuck, "the workers end");
    broker.close().await.expect("memory closes");
}
