//! One record a request, one request in flight per connection, as many connections as asked.
//!
//! A single thread with one epoll set keeps all connections busy (a closed loop): the load of many
//! small producers that each wait for their acknowledgement. Here a broker lives from group commit
//! and from few system calls per request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::{Latency, Load, setup};
use crate::frame::REQUEST_CORRELATION;
use crate::{batch, produce};

const EVENTS: usize = 1024;
const ANSWER_BYTES: usize = 512;

/// What load to make.
#[derive(Clone, Debug)]
pub struct Unbatched {
    /// The broker.
    pub broker: SocketAddr,
    /// The topic; connection `i` produces to partition `i % partitions`.
    pub topic: String,
    /// Partitions to spread over.
    pub partitions: usize,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// Bytes of each record's value.
    pub value_bytes: usize,
    /// Answers before this do not count.
    pub warm_up: Duration,
    /// How long to measure after that.
    pub duration: Duration,
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    correlation: i32,
    sent_at: Instant,
    answer: [u8; ANSWER_BYTES],
    filled: usize,
}

/// Runs the load.
pub fn run(load: &Unbatched) -> anyhow::Result<Load> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut connections = connect(load, &epoll)?;
    let begin = Instant::now();
    let measure_from = begin + load.warm_up;
    let stop_at = measure_from + load.duration;
    for connection in &mut connections {
        connection.send(Instant::now())?;
    }
    let mut nanos = super::histogram();
    let mut in_flight = connections.len();
    let mut last_answer = begin;
    let mut events = Vec::with_capacity(EVENTS);
    while in_flight > 0 {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&ANSWER_TIMEOUT))?;
        ensure!(!events.is_empty(), "the broker stopped answering. in_flight=`{in_flight}`");
        for event in &events {
            let id = event.data.u64() as usize;
            let connection = connections.get_mut(id).context("an event of no connection")?;
            if !connection.receive()? {
                continue;
            }
            let now = Instant::now();
            if connection.sent_at >= measure_from {
                nanos.saturating_record((now - connection.sent_at).as_nanos() as u64);
                last_answer = now;
            }
            if now < stop_at {
                connection.send(now)?;
            } else {
                in_flight -= 1;
            }
        }
    }
    let records = nanos.len();
    Ok(Load {
        records,
        bytes: records * load.value_bytes as u64,
        requests: records,
        elapsed: last_answer.saturating_duration_since(measure_from),
        latency: Some(Latency::of(&nanos)),
    })
}

const ANSWER_TIMEOUT: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };

fn connect(load: &Unbatched, epoll: impl std::os::fd::AsFd) -> anyhow::Result<Vec<Connection>> {
    let batch = batch::plain(1, load.value_bytes);
    let mut connections = Vec::with_capacity(load.connections);
    for id in 0..load.connections {
        let stream = setup::connect(load.broker).context("connect")?;
        stream.set_nonblocking(true)?;
        epoll::add(&epoll, &stream, EventData::new_u64(id as u64), EventFlags::IN)?;
        let partition = (id % load.partitions) as i32;
        connections.push(Connection {
            stream,
            request: produce::request(&load.topic, partition, &batch),
            correlation: 0,
            sent_at: Instant::now(),
            answer: [0; ANSWER_BYTES],
            filled: 0,
        });
    }
    Ok(connections)
}

impl Connection {
    fn send(&mut self, now: Instant) -> anyhow::Result<()> {
        self.correlation += 1;
        self.request[REQUEST_CORRELATION].copy_from_slice(&self.correlation.to_be_bytes());
        self.sent_at = now;
        // The answer to the last request has come, so the socket's buffer is empty.
        self.stream.write_all(&self.request).context("send")
    }

    /// Reads what is there; whether the answer is whole now.
    fn receive(&mut self) -> anyhow::Result<bool> {
        match self.stream.read(&mut self.answer[self.filled..]) {
            Ok(0) => bail!("the broker closed a connection"),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("receive"),
        }
        let Some(size) = self.answer[..self.filled].first_chunk::<4>() else { return Ok(false) };
        let size = u32::from_be_bytes(*size) as usize;
        ensure!(4 + size <= ANSWER_BYTES, "the answer is too long. bytes=`{size}`");
        let Some(frame) = self.answer[..self.filled].get(4..4 + size) else { return Ok(false) };
        let answer = produce::answer(frame).context("the answer is cut short")?;
        ensure!(answer.code == 0, "produce was refused. code=`{}`", answer.code);
        ensure!(answer.correlation == self.correlation, "an answer to another request");
        ensure!(self.filled == 4 + size, "bytes after the only answer");
        self.filled = 0;
        Ok(true)
    }
}
