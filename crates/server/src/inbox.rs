//! What has arrived of a connection's requests.
//!
//! An idle connection holds no buffer. A frame's claimed size never allocates ahead of its arrival:
//! the buffer grows with what came. Once a connection has sent a large frame whole, the next one
//! gets its room at once, so that steady producers do not pay for growing.

use std::io;

use bytes::BytesMut;
use tokio::net::TcpStream;

use crate::budget::{Budget, Share};

/// Room for a first read.
const ROOM_MIN: usize = 16 * 1024;
/// Frames up to this size take nothing from the shared budget.
const FREE: usize = 64 * 1024;
/// The most room that a connection gets for its past behaviour.
const HINT_MAX: usize = 2 * 1024 * 1024;

/// Bytes of requests that were not started yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    buf: BytesMut,
    /// Bytes that the frame at the front misses, as far as they may be made room for.
    missing: usize,
    /// The size of the last large frame.
    hint: usize,
    budget: Budget,
    share: Share,
    /// Bytes that `share` stands for.
    shared: usize,
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Read,
    Closed,
}

impl Inbox {
    pub(crate) fn new(budget: Budget) -> Self {
        let buf = BytesMut::new();
        Self { buf, missing: 0, hint: 0, budget, share: Share::default(), shared: 0 }
    }

    /// What has arrived, to take frames from.
    pub(crate) const fn buf(&mut self) -> &mut BytesMut {
        &mut self.buf
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// The frame at the front misses at least `bytes`.
    pub(crate) const fn expect(&mut self, bytes: usize) {
        self.missing = bytes;
    }

    /// A frame with a body of `bytes` was taken.
    pub(crate) fn frame_done(&mut self, bytes: usize) {
        self.hint = if bytes > ROOM_MIN { bytes.min(HINT_MAX) + 1024 } else { 0 };
        self.missing = 0;
        self.share.release();
        self.shared = 0;
    }

    /// Reads what there is; waits until there is something.
    pub(crate) async fn read(&mut self, stream: &TcpStream) -> io::Result<Progress> {
        if self.buf.is_empty() {
            // Nothing is held for a peer that is silent.
            self.buf = BytesMut::new();
            stream.readable().await?;
        }
        self.make_room().await;
        self.read_into_room(stream).await
    }

    /// As [`read`](Self::read), but only up to a bound: for while a request runs. Waits for ever
    /// when that much is there.
    pub(crate) async fn read_ahead(&mut self, stream: &TcpStream) -> io::Result<Progress> {
        if self.buf.len() >= FREE {
            return std::future::pending().await;
        }
        stream.readable().await?;
        self.buf.reserve(ROOM_MIN);
        self.read_into_room(stream).await
    }

    async fn make_room(&mut self) {
        let hinted = self.hint.saturating_sub(self.buf.len());
        let room = self.missing.max(hinted).max(ROOM_MIN);
        let total = self.buf.len() + room;
        if total > FREE && total > self.shared {
            let more = total - self.shared;
            self.budget.take(more, &mut self.share).await;
            self.shared = total;
        }
        self.buf.reserve(room);
    }

    async fn read_into_room(&mut self, stream: &TcpStream) -> io::Result<Progress> {
        loop {
            stream.readable().await?;
            match stream.try_read_buf(&mut self.buf) {
                Ok(0) => return Ok(Progress::Closed),
                Ok(_) => return Ok(Progress::Read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
