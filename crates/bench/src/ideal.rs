//! The ideal shared journal: what "one record a request, on disk before the answer" can cost at least.
//!
//! One thread, one epoll set. Each turn of the loop reads every connection that is ready, checks the
//! CRC of each batch, gathers all of them, makes them durable with one write and one `fdatasync` of a
//! recycled, pre-zeroed file, and answers. Without `sync` it writes and does not wait for the disk.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use strandline_records::batches;

use crate::frame::{Api, Reader, Writer, begin, end};
use crate::produce::Produce;

const JOURNAL_BYTES: u64 = 64 * 1024 * 1024;
const WRITE_BYTES: usize = 256 * 1024;
const CONNECTION_BYTES: usize = 16 * 1024;
const EVENTS: usize = 1024;
const LISTENER: u64 = u64::MAX;
const CORRUPT_MESSAGE: i16 = 2;

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    buf: Vec<u8>,
    filled: usize,
    out: Vec<u8>,
}

#[derive(Debug)]
struct Journal {
    file: File,
    at: u64,
    sync: bool,
    group: Vec<u8>,
    next_offset: i64,
}

impl Journal {
    fn create(data: &Path, sync: bool) -> io::Result<Self> {
        let path = data.join("journal");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        let zeroes = vec![0; WRITE_BYTES];
        let mut at = 0;
        while at < JOURNAL_BYTES {
            file.write_all_at(&zeroes, at)?;
            at += zeroes.len() as u64;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0, sync, group: Vec::new(), next_offset: 0 })
    }

    /// Adds a partition's batches to the group. Code and base offset.
    fn gather(&mut self, partition: i32, records: &[u8]) -> (i16, i64) {
        let base = self.next_offset;
        for batch in batches(records) {
            match batch {
                Ok(batch) if batch.check_crc().is_ok() => {
                    self.next_offset += i64::from(batch.last_offset_delta().max(0)) + 1;
                }
                _ => return (CORRUPT_MESSAGE, -1),
            }
        }
        self.group.extend_from_slice(&partition.to_le_bytes());
        self.group.extend_from_slice(&base.to_le_bytes());
        self.group.extend_from_slice(&(records.len() as u64).to_le_bytes());
        self.group.extend_from_slice(records);
        (0, base)
    }

    /// Makes the group durable.
    fn commit(&mut self) -> io::Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        if self.at + self.group.len() as u64 > JOURNAL_BYTES {
            self.at = 0;
        }
        for piece in self.group.chunks(WRITE_BYTES) {
            self.file.write_all_at(piece, self.at)?;
            self.at += piece.len() as u64;
        }
        if self.sync {
            self.file.sync_data()?;
        }
        self.group.clear();
        Ok(())
    }
}

/// Serves `listener` until the process ends.
pub fn serve(listener: &TcpListener, data: &Path, sync: bool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut journal = Journal::create(data, sync)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Vec::with_capacity(EVENTS);
    let mut produce = Produce::default();
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in &events {
            let id = event.data.u64();
            if id == LISTENER {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let id = connections.len() as u64;
                epoll::add(&epoll, &stream, EventData::new_u64(id), EventFlags::IN)?;
                let buf = vec![0; CONNECTION_BYTES];
                connections.push(Some(Connection { stream, buf, filled: 0, out: Vec::new() }));
            } else if let Some(slot) = slot(&mut connections, id)
                && let Some(connection) = slot
                && connection.read(&mut journal, &mut produce).is_none()
            {
                *slot = None;
            }
        }
        journal.commit()?;
        for event in &events {
            if let Some(slot) = slot(&mut connections, event.data.u64())
                && let Some(connection) = slot
                && connection.answer().is_err()
            {
                *slot = None;
            }
        }
    }
}

fn slot(connections: &mut [Option<Connection>], id: u64) -> Option<&mut Option<Connection>> {
    connections.get_mut(usize::try_from(id).ok()?)
}

impl Connection {
    /// Handles what has arrived; `None` when the connection is over or speaks something else.
    fn read(&mut self, journal: &mut Journal, produce: &mut Produce) -> Option<()> {
        match self.stream.read(&mut self.buf[self.filled..]) {
            Ok(0) => return None,
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(()),
            Err(_) => return None,
        }
        let mut done = 0;
        while let Some(size) = self.buf[done..self.filled].first_chunk::<4>() {
            let size = u32::from_be_bytes(*size) as usize;
            if 4 + size > self.buf.len() {
                return None;
            }
            let Some(frame) = self.buf[done..self.filled].get(4..4 + size) else { break };
            handle(frame, journal, produce, &mut self.out)?;
            done += 4 + size;
        }
        self.buf.copy_within(done..self.filled, 0);
        self.filled -= done;
        Some(())
    }

    /// Answers are small and the client waits for them: the socket's buffer always has room.
    fn answer(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.stream.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }
}

fn handle(
    frame: &[u8],
    journal: &mut Journal,
    produce: &mut Produce,
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut r = Reader::new(frame);
    let (key, version, correlation) = (r.i16()?, r.i16()?, r.i32()?);
    let api = Api::from_key(key)?;
    r.string(false)?;
    r.tags(api.flexible(version))?;
    match api {
        Api::Produce => {
            produce.parse(&mut r, version)?;
            let mut results = [(0, 0); 1];
            let [part] = produce.parts() else { return None };
            results[0] = journal.gather(part.partition, frame.get(part.records.clone())?);
            produce.respond(frame, version, correlation, &results, out);
            Some(())
        }
        // The runner asks for versions to see that the process is up.
        Api::ApiVersions => {
            let at = begin(out);
            Writer::new(out).i32(correlation).i16(0).length(false, 0);
            end(out, at, 0);
            Some(())
        }
        _ => None,
    }
}
