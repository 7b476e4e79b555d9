//! The server: accepts connections and hands them to workers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use strandline_broker::Broker;
use strandline_model::Limits;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connection::Context;
use crate::listener::Bound;
use crate::worker::{Accepted, Worker};

/// Pause after an accept failed for want of descriptors or memory: some connection must close first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How the server serves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Worker threads.
    pub workers: usize,
    /// The largest Produce frame (`socket.request.max.bytes`).
    pub request_bytes_max: strandline_model::ByteCount,
    /// A connection without requests for so long is closed (`connections.max.idle.ms`).
    pub idle_max: Option<Duration>,
    /// Connections at a time (`max.connections`). Reached: new ones are closed at once.
    pub connections_max: usize,
    /// The bounds.
    pub limits: Limits,
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
        self.context.connections.load(Ordering::Relaxed)
    }

    /// Stops accepting, lets every connection finish the requests that it has, and returns when all
    /// are closed.
    pub async fn drain(self) {
        self.context.stop.cancel();
        for acceptor in self.acceptors {
            if let Err(error) = acceptor.await
                && error.is_panic()
            {
                tracing::error!(%error, "acceptor panicked");
            }
        }
        let workers = self.workers;
        let joined =
            tokio::task::spawn_blocking(move || workers.into_iter().for_each(Worker::join));
        if let Err(error) = joined.await {
            tracing::error!(%error, "workers were not joined");
        }
    }

    /// Cancelled when the server begins to drain.
    pub fn stop_token(&self) -> CancellationToken {
        self.context.stop.clone()
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
                if context.connections.load(Ordering::Relaxed) >= context.config.connections_max {
                    tracing::debug!(%remote, "connection refused: max.connections is reached");
                    continue;
                }
                match stream.into_std() {
                    Ok(stream) => return Accepted { stream, remote },
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
