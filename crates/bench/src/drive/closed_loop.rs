//! Many connections with one request in flight each, kept busy by one thread with one epoll set.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::frame::REQUEST_CORRELATION;

const EVENTS: usize = 1024;
const ANSWER_BYTES: usize = 512;
const ANSWER_TIMEOUT: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };

/// What an answer says.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// To which request.
    pub correlation: i32,
    /// Kafka's error code.
    pub code: i16,
}

/// Reads an answer, without its size field; `None` when it is cut short.
pub type ReadAnswer = fn(&[u8]) -> Option<Answer>;

/// A connection with the requests that it sends in turn, over and over.
#[derive(Debug)]
pub struct Lane {
    stream: TcpStream,
    turns: Vec<Turn>,
    next: usize,
    correlation: i32,
    sent_at: Instant,
    answer: [u8; ANSWER_BYTES],
    filled: usize,
}

/// A request with its size field, and how its answer is read.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The frame; its correlation id is written anew each time.
    pub request: Vec<u8>,
    /// Reads the answer.
    pub read: ReadAnswer,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Nanoseconds from a request to its answer, by turn.
    pub nanos: Vec<Histogram<u64>>,
    /// From the end of the warm-up to the last answer.
    pub elapsed: Duration,
}

impl Lane {
    /// # Panics
    /// When there is no turn.
    pub fn new(stream: TcpStream, turns: Vec<Turn>) -> Self {
        assert!(!turns.is_empty(), "a lane sends something");
        let sent_at = Instant::now();
        let answer = [0; ANSWER_BYTES];
        Self { stream, turns, next: 0, correlation: 0, sent_at, answer, filled: 0 }
    }
}

/// Keeps all lanes busy until `is_over`, which is told how long ago the warm-up ended. Answers to
/// what was sent before its end do not count.
pub fn run(
    mut lanes: Vec<Lane>,
    warm_up: Duration,
    is_over: impl Fn(Duration) -> bool,
) -> anyhow::Result<Outcome> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (id, lane) in lanes.iter().enumerate() {
        lane.stream.set_nonblocking(true)?;
        epoll::add(&epoll, &lane.stream, EventData::new_u64(id as u64), EventFlags::IN)?;
    }
    let begin = Instant::now();
    let measure_from = begin + warm_up;
    for lane in &mut lanes {
        lane.send(Instant::now())?;
    }
    let turns = lanes.first().map_or(0, |lane| lane.turns.len());
    let mut nanos: Vec<_> = (0..turns).map(|_| super::histogram()).collect();
    let mut in_flight = lanes.len();
    let mut last_answer = begin;
    let mut events = Vec::with_capacity(EVENTS);
    while in_flight > 0 {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&ANSWER_TIMEOUT))?;
        ensure!(!events.is_empty(), "the broker stopped answering. in_flight=`{in_flight}`");
        for event in &events {
            let id = event.data.u64() as usize;
            let lane = lanes.get_mut(id).context("an event of no connection")?;
            let Some(turn) = lane.receive()? else { continue };
            let now = Instant::now();
            if lane.sent_at >= measure_from {
                nanos[turn].saturating_record((now - lane.sent_at).as_nanos() as u64);
                last_answer = now;
            }
            if now >= measure_from && is_over(now - measure_from) {
                in_flight -= 1;
            } else {
                lane.send(now)?;
            }
        }
    }
    Ok(Outcome { nanos, elapsed: last_answer.saturating_duration_since(measure_from) })
}

impl Lane {
    fn send(&mut self, now: Instant) -> anyhow::Result<()> {
        self.correlation += 1;
        let request = &mut self.turns[self.next].request;
        request[REQUEST_CORRELATION].copy_from_slice(&self.correlation.to_be_bytes());
        self.sent_at = now;
        // The answer to the last request has come, so the socket's buffer is empty.
        self.stream.write_all(request).context("send")
    }

    /// Reads what is there; which turn was answered, when the answer is whole now.
    fn receive(&mut self) -> anyhow::Result<Option<usize>> {
        match self.stream.read(&mut self.answer[self.filled..]) {
            Ok(0) => bail!("the broker closed a connection"),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error).context("receive"),
        }
        let Some(size) = self.answer[..self.filled].first_chunk::<4>() else { return Ok(None) };
        let size = u32::from_be_bytes(*size) as usize;
        ensure!(4 + size <= ANSWER_BYTES, "the answer is too long. bytes=`{size}`");
        let Some(frame) = self.answer[..self.filled].get(4..4 + size) else { return Ok(None) };
        let turn = self.next;
        let answer = (self.turns[turn].read)(frame).context("the answer is cut short")?;
        ensure!(answer.code == 0, "the request was refused. turn=`{turn}`, code=`{}`", answer.code);
        ensure!(answer.correlation == self.correlation, "an answer to another request");
        ensure!(self.filled == 4 + size, "bytes after the only answer");
        self.filled = 0;
        self.next = (turn + 1) % self.turns.len();
        Ok(Some(turn))
    }
}
