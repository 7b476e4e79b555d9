//! Replies to the socket: bytes in one vectored write, file ranges by `sendfile`.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use rustix::io::ReadWriteFlags;
use rustix::net::SendFlags;
use strandline_storage::{BatchPiece, FileRegion, is_lost};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Bytes of a file in one system call: more would keep the other connections of the thread waiting.
const SENDFILE_BYTES_MAX: u64 = 1 << 20;
/// Distance of the bytes that are probed for being in memory: the kernel's usual read-ahead.
const PROBE_STEP: usize = 128 * 1024;
/// Buffers in one vectored write.
const SLICES_MAX: usize = 64;

/// Bytes of replies that may wait for those of the next request: enough that a system call is a
/// small part of the work, little enough that it counts for nothing.
const LIGHT_BYTES_MAX: usize = 4 * 1024;

/// Pieces on their way out, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<BatchPiece>,
    /// Bytes that are in memory; file ranges are not.
    memory_bytes: usize,
    files_count: usize,
}

impl Outbox {
    pub(crate) fn push(&mut self, pieces: Vec<BatchPiece>) {
        for piece in &pieces {
            match piece {
                BatchPiece::Memory(bytes) => self.memory_bytes += bytes.len(),
                BatchPiece::File(_) => self.files_count += 1,
            }
        }
        self.pieces.extend(pieces);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether it holds so little that it may wait for more.
    pub(crate) const fn is_light(&self) -> bool {
        self.files_count == 0 && self.memory_bytes <= LIGHT_BYTES_MAX
    }

    /// Bytes that are in memory; file ranges are not.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Sends the one piece that there is if it is in memory and the socket takes it now, which is
    /// what nearly all small answers come to. Whether nothing is left.
    pub(crate) fn send_now(&mut self, stream: &TcpStream) -> io::Result<bool> {
        if self.pieces.len() > 1 {
            return Ok(false);
        }
        let Some(BatchPiece::Memory(bytes)) = self.pieces.front() else { return Ok(false) };
        match stream.try_write(bytes) {
            Ok(sent) => self.advance_memory(sent)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(self.is_empty())
    }

    /// Sends as much as the socket takes now; waits when it takes nothing. Some progress was made
    /// when this returns: how many bytes.
    pub(crate) async fn send_some(&mut self, stream: &TcpStream) -> io::Result<usize> {
        match self.pieces.front() {
            None => Ok(0),
            Some(BatchPiece::Memory(_)) => self.send_memory(stream).await,
            Some(BatchPiece::File(_)) => self.send_file(stream).await,
        }
    }

    async fn send_memory(&mut self, stream: &TcpStream) -> io::Result<usize> {
        let sent = if let [BatchPiece::Memory(bytes), BatchPiece::File(_)] = self.first_two() {
            // The header of records that follow by sendfile: one packet for both.
            when_writable(stream, || {
                rustix::net::send(stream, bytes, SendFlags::MORE | SendFlags::NOSIGNAL)
                    .map_err(io::Error::from)
            })
            .await?
        } else {
            let slices: Vec<IoSlice<'_>> = self
                .pieces
                .iter()
                .take(SLICES_MAX)
                .map_while(|piece| match piece {
                    BatchPiece::Memory(bytes) => Some(IoSlice::new(bytes)),
                    BatchPiece::File(_) => None,
                })
                .collect();
            when_writable(stream, || stream_write(stream, &slices)).await?
        };
        self.advance_memory(sent)?;
        Ok(sent)
    }

    /// The first two pieces, or nothing when there are fewer.
    fn first_two(&self) -> [&BatchPiece; 2] {
        static EMPTY: BatchPiece = BatchPiece::Memory(Bytes::new());
        let mut pieces = self.pieces.iter();
        [pieces.next().unwrap_or(&EMPTY), pieces.next().unwrap_or(&EMPTY)]
    }

    fn advance_memory(&mut self, mut sent: usize) -> io::Result<()> {
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while sent > 0 {
            let Some(BatchPiece::Memory(bytes)) = self.pieces.front_mut() else {
                panic!("only bytes that were there were sent");
            };
            let part = sent.min(bytes.len());
            bytes.advance(part);
            sent -= part;
            self.memory_bytes -= part;
            if bytes.is_empty() {
                self.pieces.pop_front();
            }
        }
        Ok(())
    }

    async fn send_file(&mut self, stream: &TcpStream) -> io::Result<usize> {
        let Some(BatchPiece::File(region)) = self.pieces.front_mut() else { return Ok(0) };
        let sent = match send_region(region, stream).await {
            Ok(sent) => sent,
            Err(error) => {
                // The length of the frame was sent: only closing is honest now. Whoever asks again
                // gets an error of the partition, and the others that it asks for.
                if is_of_the_file(&error) {
                    // Not again for this file: from now on it is read before it is promised, and who asks
                    // for its records is told of by name.
                    let (position, length) = (region.position, region.length);
                    tracing::error!(%error, position, length, "records of a segment can't be sent: the connection is closed");
                    region.note_failure();
                }
                return Err(error);
            }
        };
        region.position += sent as u64;
        region.length -= sent as u64;
        if region.length == 0 {
            self.pieces.pop_front();
            self.files_count -= 1;
        }
        Ok(sent)
    }
}

/// Sends a part of the range from the page cache; says how much.
async fn send_region(region: &FileRegion, stream: &TcpStream) -> io::Result<usize> {
    let length = region.length.min(SENDFILE_BYTES_MAX);
    make_resident(region, length).await?;
    let count = usize::try_from(length).unwrap_or(usize::MAX);
    let sent = when_writable(stream, || {
        let mut position = region.position;
        rustix::fs::sendfile(stream.as_fd(), region.file.as_fd(), Some(&mut position), count)
            .map_err(io::Error::from)
    })
    .await?;
    if sent == 0 {
        let message = "segment is shorter than its index says";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
    }
    Ok(sent)
}

/// Whether the file could not be read. A socket has no such errors.
fn is_of_the_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof || is_lost(error)
}

fn stream_write(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    rustix::io::writev(stream, slices).map_err(io::Error::from)
}

async fn when_writable<T>(
    stream: &TcpStream,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        stream.writable().await?;
        match stream.try_io(Interest::WRITABLE, &mut attempt) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Makes it unlikely that sending waits for the disk on this thread, which serves others too: a
/// range of which a probed byte is cold is read on a thread that may block. A cold page between two
/// probes goes unnoticed; the kernel reads and evicts neighbours together, so there are few.
async fn make_resident(region: &FileRegion, length: u64) -> io::Result<()> {
    let last = region.position + length - 1;
    let mut probes = (region.position..last).step_by(PROBE_STEP).chain([last]);
    if probes.all(|position| is_resident(region, position)) {
        return Ok(());
    }
    let file = Arc::clone(&region.file);
    let position = region.position;
    let read = tokio::task::spawn_blocking(move || {
        let mut buf = vec![0; usize::try_from(length).unwrap_or(0)];
        std::os::unix::fs::FileExt::read_exact_at(&*file, &mut buf, position)
    });
    read.await.map_err(io::Error::other)?
}

/// Whether the byte at `position` can be read without waiting for the disk.
fn is_resident(region: &FileRegion, position: u64) -> bool {
    let mut byte = [0];
    let mut into = [io::IoSliceMut::new(&mut byte)];
    match rustix::io::preadv2(&*region.file, &mut into, position, ReadWriteFlags::NOWAIT) {
        Err(rustix::io::Errno::AGAIN) => false,
        // With an error the file system has no such probe, and sending may wait.
        Ok(_) | Err(_) => true,
    }
}
