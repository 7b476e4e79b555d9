//! What makes the broker stop: a signal, or the end of the process that started it.

use std::fmt;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::parent;

/// Why the broker stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// SIGINT: Ctrl-C.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// `--exit-with-parent`.
    ParentEnded,
}

impl Reason {
    /// What a process ended by this signal exits with.
    pub(crate) const fn exit_code(self) -> i32 {
        match self {
            Self::Interrupted => 130,
            Self::Terminated | Self::ParentEnded => 143,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
            Self::ParentEnded => "the starting process ended",
        })
    }
}

/// Tells of the first reason to stop, and ends the process at the next signal.
///
/// A thread of its own listens: whatever holds the others, a second signal ends the process.
#[derive(Debug)]
pub(crate) struct Stops(oneshot::Receiver<Reason>);

impl Stops {
    /// Begins to listen; from here on the first signal does not end the process by itself.
    pub(crate) fn listen(with_parent: bool) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let sources = Sources {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            parent: if with_parent { Some(parent::watch()?) } else { None },
        };
        drop(entered);
        let (first, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn(move || runtime.block_on(sources.tell(first)))?;
        Ok(Self(receiver))
    }

    /// Returns at the first reason to stop.
    pub(crate) async fn first(&mut self) -> Reason {
        (&mut self.0).await.expect("the thread tells before it ends")
    }
}

/// Everything that may make the broker stop.
#[derive(Debug)]
struct Sources {
    interrupt: Signal,
    terminate: Signal,
    parent: Option<oneshot::Receiver<()>>,
}

impl Sources {
    /// The second signal says that the user's patience is over. Data is safe: the next start checks
    /// the tails. Nothing is logged, which could wait for whoever reads the log.
    async fn tell(mut self, first: oneshot::Sender<Reason>) {
        // Nobody listens when the broker ends already.
        let _ = first.send(self.next().await);
        self.parent = None;
        std::process::exit(self.next().await.exit_code());
    }

    async fn next(&mut self) -> Reason {
        let parent = self.parent.as_mut();
        let parent_ended = async {
            match parent {
                // An error means that it had ended before we looked.
                Some(ended) => drop(ended.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Reason::Interrupted,
            _ = self.terminate.recv() => Reason::Terminated,
            () = parent_ended => Reason::ParentEnded,
        }
    }
}
