//! What has arrived of a connection's requests.
//!
//! An idle connection holds no buffer. A frame's claimed size never allocates ahead of its arrival:
//! the buffer grows with what came. Once a connection has sent a larger frame whole, the next one
//! gets its room at once, so that steady producers do not pay for growing.

use std::io;

use bytes::BytesMut;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::budget::{Budget, FREE, Share};

/// Room for a first read: no more than is free.
const ROOM_MIN: usize = FREE;
/// Room for a peer that sends many small frames at a time.
const ROOM_BUSY: usize = 16 * 1024;
/// With so much room left the buffer does not grow before a read.
const ROOM_LEFT_MIN: usize = 1024;
/// The most room that a connection gets for its past behaviour.
const HINT_MAX: usize = 2 * 1024 * 1024;

/// Bytes of requests that were not started yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    buf: BytesMut,
    /// Bytes that the frame at the front misses, as far as they may be made room for.
    missing: usize,
    /// Room that the next frame will need if it is like the last.
    hint: usize,
    budget: Budget,
    /// What stands for the memory of `buf`.
    share: Share,
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// So many bytes came.
    Read(usize),
    /// The peer sends nothing more.
    Closed,
}

impl Inbox {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { buf: BytesMut::new(), missing: 0, hint: 0, budget, share: Share::default() }
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

    /// A frame of `bytes` was taken. What is returned stands for its memory: it must live until the
    /// request has started.
    pub(crate) fn frame_done(&mut self, bytes: usize) -> Share {
        self.missing = 0;
        self.hint = if bytes > ROOM_MIN {
            bytes.min(HINT_MAX) + 1024
        } else if self.buf.is_empty() {
            0
        } else {
            self.hint.min(ROOM_BUSY)
        };
        if self.buf.is_empty() {
            // Nothing is held for a peer that is silent.
            self.buf = BytesMut::new();
        } else if bytes > HINT_MAX || self.share.has_lane() {
            // The few bytes that follow would keep the memory of the large frame.
            self.buf = BytesMut::from(&self.buf[..]);
        } else {
            // The frame is in one buffer with what follows.
            return Share::default();
        }
        std::mem::take(&mut self.share)
    }

    /// Reads what there is; waits until there is something.
    pub(crate) async fn read(&mut self, stream: &TcpStream) -> io::Result<Progress> {
        loop {
            stream.readable().await?;
            self.make_room().await;
            let room = self.buf.capacity() - self.buf.len();
            match stream.try_read_buf(&mut self.buf) {
                Ok(0) => return Ok(Progress::Closed),
                Ok(bytes) => {
                    if bytes < room {
                        expect_nothing_more(stream);
                    } else {
                        self.hint = self.hint.max(ROOM_BUSY);
                    }
                    return Ok(Progress::Read(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn make_room(&mut self) {
        let arrived = self.buf.len();
        if self.buf.capacity() - arrived >= self.missing.clamp(1, ROOM_LEFT_MIN) {
            return;
        }
        let least = arrived + self.missing.max(ROOM_MIN);
        let most = least.max(self.hint);
        if self.share.bytes() > 2 * most {
            // The buffer served larger frames than those that come now.
            let mut smaller = BytesMut::with_capacity(most);
            smaller.extend_from_slice(&self.buf);
            self.buf = smaller;
            self.share.shrink(most);
        }
        let total = if self.budget.try_grow(&mut self.share, most) {
            most
        } else {
            self.budget.grow(&mut self.share, least).await;
            least
        };
        self.buf.reserve(total - arrived);
    }
}

/// A read that got less than there was room for has got everything: the next one waits for news,
/// without asking the kernel first, and without making room for nothing.
fn expect_nothing_more(stream: &TcpStream) {
    // It clears the readiness that the read saw. No other can have come since: this thread drives
    // the socket. An end of the stream stays visible.
    let cleared: io::Result<()> =
        stream.try_io(Interest::READABLE, || Err(io::ErrorKind::WouldBlock.into()));
    debug_assert!(cleared.is_err(), "the closure always fails");
}
