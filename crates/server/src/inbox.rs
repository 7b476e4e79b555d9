//! What has arrived of a connection's requests.
//!
//! An idle connection holds no buffer. A frame's claimed size never allocates ahead of its arrival:
//! the buffer grows with what came. Once a connection has sent a larger frame whole, the next one
//! gets its room at once, so that steady producers do not pay for growing; a large room comes from
//! the worker's pool, so that they do not pay for fresh memory either.

use std::io;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::budget::{Budget, FREE, Share};
use crate::pool::{self, Buffer, Pool};

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
    buffer: Buffer,
    /// Bytes that may still be read into the buffer. Where the pool's is larger than what was asked
    /// for, the rest stays empty: a part of another frame there would have to be moved.
    room: usize,
    /// Bytes that the frame at the front misses, as far as they may be made room for.
    missing: usize,
    /// Room that the next frame will need if it is like the last.
    hint: usize,
    budget: Budget,
    /// What stands for the memory of the buffer.
    share: Share,
    pool: Arc<Pool>,
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
    pub(crate) fn new(budget: Budget, pool: Arc<Pool>) -> Self {
        let (buffer, share) = (Buffer::default(), Share::default());
        Self { buffer, room: 0, missing: 0, hint: 0, budget, share, pool }
    }

    /// What has arrived, to take frames from.
    pub(crate) const fn buf(&mut self) -> &mut BytesMut {
        &mut self.buffer.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.bytes.is_empty()
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
            (bytes + ROOM_LEFT_MIN).min(HINT_MAX)
        } else if self.is_empty() {
            0
        } else {
            self.hint.min(ROOM_BUSY)
        };
        if self.is_empty() {
            // Nothing is held for a peer that is silent.
            self.change(Buffer::default(), 0);
        } else if bytes > HINT_MAX || self.share.has_lane() {
            // The few bytes that follow would keep the memory of the large frame.
            let rest = BytesMut::from(&self.buffer.bytes[..]);
            self.change(Buffer { bytes: rest, capacity: 0 }, 0);
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
            let mut into = (&mut self.buffer.bytes).limit(self.room);
            match stream.try_read_buf(&mut into) {
                Ok(0) => return Ok(Progress::Closed),
                Ok(bytes) => {
                    if bytes < self.room {
                        expect_nothing_more(stream);
                    } else {
                        self.hint = self.hint.max(ROOM_BUSY);
                    }
                    self.room -= bytes;
                    return Ok(Progress::Read(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn make_room(&mut self) {
        if self.room >= self.missing.clamp(1, ROOM_LEFT_MIN) {
            return;
        }
        let arrived = self.buffer.bytes.len();
        let least = arrived + self.missing.max(ROOM_MIN);
        let most = least.max(self.hint);
        let rounded = pool::rounded(most);
        if self.share.bytes() > 2 * rounded {
            // The buffer served larger frames than those that come now.
            self.move_to(Buffer::fresh(rounded), most);
            self.share.shrink(rounded);
            return;
        }
        if rounded < pool::BYTES_MIN {
            self.reserve(most, least).await;
            return;
        }
        let again = self.pool.take(rounded);
        let capacity = again.as_ref().map_or(rounded, |buffer| buffer.capacity);
        if self.budget.try_grow(&mut self.share, capacity) {
            self.move_to(again.unwrap_or_else(|| Buffer::fresh(capacity)), most);
        } else {
            self.pool.keep(again.unwrap_or_default());
            self.reserve(least, least).await;
        }
    }

    /// Makes the buffer that there is large enough: for `most` bytes when there is so much budget
    /// now, for `least` when it has to be waited for.
    async fn reserve(&mut self, most: usize, least: usize) {
        let arrived = self.buffer.bytes.len();
        let total = if self.budget.try_grow(&mut self.share, most) {
            most
        } else {
            self.budget.grow(&mut self.share, least).await;
            least
        };
        self.buffer.bytes.reserve(total - arrived);
        // It may be other memory now.
        self.buffer.capacity = 0;
        self.room = self.buffer.bytes.capacity() - arrived;
    }

    /// Goes on in another buffer, of which `used` bytes are to be used.
    fn move_to(&mut self, mut buffer: Buffer, used: usize) {
        let arrived = &self.buffer.bytes[..];
        buffer.bytes.extend_from_slice(arrived);
        let room = used - arrived.len();
        self.change(buffer, room);
    }

    fn change(&mut self, buffer: Buffer, room: usize) {
        let before = std::mem::replace(&mut self.buffer, buffer);
        self.room = room;
        self.pool.keep(before);
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use strandline_model::ByteCount;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    const FRAMES: u8 = 60;
    /// Frames that are in use while others arrive.
    const HELD: usize = 5;

    /// Like those of a producer, all near one size and none of the same.
    fn frame_bytes(index: u8) -> usize {
        700_000 + usize::from(index) * 1_001
    }

    #[tokio::test]
    async fn memory_that_is_used_again_never_changes_a_frame_in_use() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let sent = tokio::spawn(async move {
            let mut peer = TcpStream::connect(address).await.expect("it listens");
            for index in 0..FRAMES {
                peer.write_all(&vec![index; frame_bytes(index)]).await.expect("it is read");
            }
            peer
        });
        let (stream, _) = listener.accept().await.expect("it connects");
        let pool = Pool::new(16 << 20);
        let budget = Budget::new(ByteCount::mib(128), ByteCount::mib(100));
        let mut inbox = Inbox::new(budget, Arc::clone(&pool));
        let mut held = VecDeque::new();
        let mut places = std::collections::BTreeSet::new();
        for index in 0..FRAMES {
            let whole = frame_bytes(index);
            while inbox.buf().len() < whole {
                let (arrived, most) = (inbox.buf().len(), inbox.buf().len().max(16 * 1024));
                inbox.expect((whole - arrived).min(most));
                assert_ne!(inbox.read(&stream).await.expect("bytes"), Progress::Closed);
            }
            let frame = inbox.buf().split_to(whole);
            drop(inbox.frame_done(whole));
            places.insert(frame.as_ptr());
            held.push_back((index, frame));
            if held.len() > HELD {
                let (index, frame) = held.pop_front().expect("it is not empty");
                assert!(frame.iter().all(|&byte| byte == index), "frame {index} has changed");
            }
        }
        assert!(places.len() <= usize::from(FRAMES) / 2, "{} places", places.len());
        drop(sent.await.expect("no panic"));
    }
}
