//! Worker threads: one runtime each, connections handed to them.

use std::io;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{Context, serve};
use crate::places::Place;
use crate::pool::Pool;

/// Connections that wait for a worker to take them. Reached: accepting waits.
const HANDOVER_MAX: usize = 256;

/// Threads of one worker for what may block: cold reads, compression. Reached: the work queues, and
/// its connections wait.
const BLOCKING_THREADS_MAX: usize = 4;

/// A connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: StdTcpStream,
    pub(crate) remote: SocketAddr,
    /// Given back when the connection ends.
    pub(crate) place: Place,
}

/// A worker thread.
#[derive(Debug)]
pub(crate) struct Worker {
    sender: mpsc::Sender<Accepted>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts a thread that serves what it is handed until `context.stop`.
    pub(crate) fn start(index: usize, context: Arc<Context>) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(HANDOVER_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name(format!("blocking-{index}"))
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()?;
        let thread =
            std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                runtime.block_on(run(receiver, context));
                // What a cut connection began on a blocking thread is not waited for.
                runtime.shutdown_background();
            })?;
        Ok(Self { sender, thread })
    }

    pub(crate) const fn sender(&self) -> &mpsc::Sender<Accepted> {
        &self.sender
    }

    /// Waits until the last connection is closed, or cut.
    pub(crate) fn join(self) {
        drop(self.sender);
        if self.thread.join().is_err() {
            tracing::error!("worker thread panicked");
        }
    }
}

async fn run(mut receiver: mpsc::Receiver<Accepted>, context: Arc<Context>) {
    let pool = Pool::new(context.buffer_bytes_per_worker());
    let connections = TaskTracker::new();
    let stop: CancellationToken = context.stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = receiver.recv() => accepted,
            () = stop.cancelled() => None,
        };
        let Some(accepted) = accepted else { break };
        let (context, pool) = (Arc::clone(&context), Arc::clone(&pool));
        connections.spawn(async move { serve(accepted, &context, pool).await });
    }
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        // The connections end with the runtime.
        () = context.cut.cancelled() => {}
    }
}
