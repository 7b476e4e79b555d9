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

/// Everything that may make the broker stop.
#[derive(Debug)]
pub(crate) struct Stops {
    interrupt: Signal,
    terminate: Signal,
    parent: Option<oneshot::Receiver<()>>,
}

impl Stops {
    /// Begins to listen; from here on signals do not end the process by themselves.
    pub(crate) fn listen(with_parent: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            parent: if with_parent { Some(parent::watch()?) } else { None },
        })
    }

    /// Returns at the next reason to stop.
    pub(crate) async fn next(&mut self) -> Reason {
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

    /// Returns at the next signal: the user's patience is over.
    pub(crate) async fn next_signal(&mut self) -> Reason {
        self.parent = None;
        self.next().await
    }
}
