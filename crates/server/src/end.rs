//! Why connections end.

use std::io;

use strandline_broker::Disconnect;
use strandline_wire::{EncodeError, FrameError};

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("peer closed the connection")]
    Closed,
    #[error("broker is stopping")]
    Stopping,
    #[error("connection was idle for too long")]
    Idle,
    #[error("peer stalled")]
    Stalled,
    #[error("peer is too slow while too much is owed to others")]
    Pressed,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Request(#[from] Disconnect),
    #[error("response can't be written")]
    Response(#[from] EncodeError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl End {
    /// Whether the peer is to blame.
    pub(crate) const fn is_refusal(&self) -> bool {
        match self {
            Self::Frame(_) | Self::Request(_) | Self::Stalled | Self::Pressed => true,
            Self::Closed | Self::Stopping | Self::Idle | Self::Response(_) | Self::Io(_) => false,
        }
    }
}
