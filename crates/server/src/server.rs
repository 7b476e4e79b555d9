//! The server: accepts connections and hands them to workers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use strandline_broker::Broker;
use strandline_model::Limits;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connection::Context;
use crate::listener::Bound;
use crate::places::Full;
use crate::worker::{Accepted, Worker};

/// Pause after an accept failed for want of descriptors or memory: some connection must close first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the workers have to cut their connections.
const CUT_TIME: Duration = Duration::from_secs(2);

/// How the server serves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Worker threads.
    pub workers: usize,
    /// The largest Produce frame (`socket.request.max.bytes`).
    pub request_bytes_max: strandline_model::ByteCount,
    /// A connection without requests for so long is closed (`connections.max.idle.ms`).
    pub idle_max: Option<Duration>,
    /// The bounds.
    pub limits: Limits,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Drained {
    /// Connections that were cut at the limit.
    pub cut: usize,
    /// A worker did not end even then: something holds its thread.
    pub stuck: bool,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    workers: Vec<Worker>,
    acceptors: Vec<tokio::task::JoinHandle<()>>,
    context: Arc<Context>,
}

impl Server {
    /// Starts to serve `bound`, accepting on the current runtime.
    pub fn start(bound: Vec<Bound>, broker: Arc<Broker>, config: ServerConfig) -> io::Result<Self> {
        let worker_count = config.workers.max(1);
        let context = Arc::new(Context::new(broker, config));
        let workers = (0..worker_count)
            .map(|index| Worker::start(index, Arc::clone(&context)))
            .collect::<io::Result<Vec<_>>>()?;
        let mut acceptors = Vec::new();
        for listener in bound.into_iter().flat_map(Bound::into_listeners) {
            let listener = TcpListener::from_std(listener)?;
            let senders = workers.iter().map(|worker| worker.sender().clone()).collect();
            acceptors.push(tokio::spawn(accept(listener, senders, Arc::clone(&context))));
        }
        Ok(Self { workers, acceptors, context })
    }

    /// Connections that are open now.
    pub fn connection_count(&self) -> usize {
        self.context.places.count()
    }

    /// Stops accepting, and lets every connection finish the requests that it has; those that have
    /// not by `limit` are cut. Returns when all are closed, or soon after the limit.
    pub async fn drain(self, limit: Duration) -> Drained {
        let Self { workers, acceptors, context } = self;
        context.stop.cancel();
        let mut closed = std::pin::pin!(closed(workers, acceptors));
        if tokio::time::timeout(limit, &mut closed).await.is_ok() {
            return Drained { cut: 0, stuck: false };
        }
        let cut = context.places.count();
        context.cut.cancel();
        let stuck = tokio::time::timeout(CUT_TIME, closed).await.is_err();
        Drained { cut, stuck }
    }

    /// Cancelled when the server begins to drain.
    pub fn stop_token(&self) -> CancellationToken {
        self.context.stop.clone()
    }
}

/// Waits for the acceptors and the workers.
async fn closed(workers: Vec<Worker>, acceptors: Vec<tokio::task::JoinHandle<()>>) {
    for acceptor in acceptors {
        if let Err(error) = acceptor.await
            && error.is_panic()
        {
            tracing::error!(%error, "acceptor panicked");
        }
    }
    // A plain thread: the end of a runtime waits for its own blocking threads, and this one may
    // wait for a peer.
    let (joined, join) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("join".to_owned()).spawn(move || {
        workers.into_iter().for_each(Worker::join);
        // Nobody waits any more when the limit has passed.
        let _ = joined.send(());
    });
    match thread {
        // The sender is dropped unsent by a panic only, which `join` never does.
        Ok(_) => drop(join.await),
        Err(error) => tracing::error!(%error, "workers were not joined"),
    }
}

async fn accept(
    listener: TcpListener,
    senders: Vec<tokio::sync::mpsc::Sender<Accepted>>,
    context: Arc<Context>,
) {
    for sender in senders.iter().cycle() {
        let accepted = tokio::select! {
            accepted = next_connection(&listener, &context) => accepted,
            () = context.stop.cancelled() => return,
        };
        if sender.send(accepted).await.is_err() {
            return;
        }
    }
}

async fn next_connection(listener: &TcpListener, context: &Context) -> Accepted {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let config = context.broker.config();
                let place = match context.places.take(remote.ip(), &config.connection_limits) {
                    Ok(place) => place,
                    Err(Full(limit)) => {
                        if let Some(more) = context.refusals.admit() {
                            tracing::warn!(%remote, limit, more, "connection refused: its limit is reached");
                        }
                        continue;
                    }
                };
                match stream.into_std() {
                    Ok(stream) => return Accepted { stream, remote, place },
                    Err(error) => tracing::debug!(%remote, %error, "connection was lost at once"),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
