//! One record a request, one request in flight per connection, as many connections as asked.
//!
//! The load of many small producers that each wait for their acknowledgement. Here a broker lives
//! from group commit and from few system calls per request.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use rustix::net::sockopt;

use super::closed_loop::{self, Answer, Lane, Turn};
use super::{Latency, Load, setup};
use crate::{batch, produce};

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

/// Runs the load.
pub fn run(load: &Unbatched) -> anyhow::Result<Load> {
    run_until(load, |elapsed| elapsed >= load.duration)
}

/// Runs the load until `is_over`, which is told how long ago the warm-up ended.
pub fn run_until(load: &Unbatched, is_over: impl Fn(Duration) -> bool) -> anyhow::Result<Load> {
    let batch = batch::plain(1, load.value_bytes);
    let lane = |id: usize| {
        let stream = setup::connect(load.broker).context("connect")?;
        let partition = (id % load.partitions) as i32;
        let request = produce::request(&load.topic, partition, &batch);
        // A lane writes its request at once: the socket's buffer must take it whole.
        let room = sockopt::socket_send_buffer_size(&stream)?;
        if room < 2 * request.len() {
            sockopt::set_socket_send_buffer_size(&stream, 2 * request.len())?;
        }
        Ok(Lane::new(stream, vec![Turn { request, read: produced }]))
    };
    let lanes = (0..load.connections).map(lane).collect::<anyhow::Result<_>>()?;
    let outcome = closed_loop::run(lanes, load.warm_up, is_over)?;
    let nanos = outcome.nanos.first().context("there is a connection")?;
    let records = nanos.len();
    Ok(Load {
        records,
        bytes: records * load.value_bytes as u64,
        requests: records,
        elapsed: outcome.elapsed,
        latency: Some(Latency::of(nanos)),
    })
}

fn produced(frame: &[u8]) -> Option<Answer> {
    let answer = produce::answer(frame)?;
    Some(Answer { correlation: answer.correlation, code: answer.code })
}
