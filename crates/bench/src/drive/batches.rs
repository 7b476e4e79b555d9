//! Large prepared batches as raw frames, several in flight on one connection.
//!
//! The client does next to nothing, so that the broker is the bottleneck: the load to profile with,
//! and the way to fill a topic quickly.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use hdrhistogram::Histogram;

use super::{Latency, Load, setup};
use crate::frame::REQUEST_CORRELATION;
use crate::{batch, produce};

/// As librdkafka's and the Java client's default allows with idempotence.
const IN_FLIGHT: usize = 5;
/// About what a record takes beside its value, so that a batch stays below `max.message.bytes`.
const RECORD_OVERHEAD_BYTES: usize = 12;

/// What load to make.
#[derive(Clone, Debug)]
pub struct Batches {
    /// The broker.
    pub broker: SocketAddr,
    /// The topic.
    pub topic: String,
    /// The partitions, in turn.
    pub partitions: usize,
    /// Bytes of each record's value.
    pub value_bytes: usize,
    /// About how large a batch is.
    pub batch_bytes: usize,
    /// How many records to produce, rounded up to whole batches.
    pub records: u64,
}

/// Runs the load.
pub fn run(load: &Batches) -> anyhow::Result<Load> {
    let per_batch = (load.batch_bytes / (load.value_bytes + RECORD_OVERHEAD_BYTES)).max(1);
    let requests = load.records.div_ceil(per_batch as u64);
    let batch = batch::plain(per_batch as u32, load.value_bytes);
    let mut frames: Vec<_> = (0..load.partitions)
        .map(|partition| produce::request(&load.topic, partition as i32, &batch))
        .collect();
    let begin = Instant::now();
    let nanos = send(load.broker, requests, &mut frames, |_, _| {})?;
    let records = requests * per_batch as u64;
    Ok(Load {
        records,
        bytes: records * load.value_bytes as u64,
        requests,
        elapsed: begin.elapsed().max(Duration::from_nanos(1)),
        latency: Some(Latency::of(&nanos)),
    })
}

/// Sends so many requests, of `frames` in turn, each of which `prepare` may change before: how long
/// the answers took.
pub(super) fn send(
    broker: SocketAddr,
    requests: u64,
    frames: &mut [Vec<u8>],
    mut prepare: impl FnMut(u64, &mut Vec<u8>),
) -> anyhow::Result<Histogram<u64>> {
    let stream = setup::connect(broker).context("connect")?;
    // The channel's bound is the number of requests in flight: one more is in the writer's hands.
    let (sent, to_answer) = sync_channel::<Instant>(IN_FLIGHT - 1);
    let nanos = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let to_answer = to_answer;
            read_answers(&stream, &to_answer)
        });
        let partitions = frames.len();
        let mut write = || -> anyhow::Result<()> {
            for request in 0..requests {
                let frame = &mut frames[request as usize % partitions];
                prepare(request, frame);
                frame[REQUEST_CORRELATION].copy_from_slice(&(request as i32).to_be_bytes());
                if sent.send(Instant::now()).is_err() {
                    break;
                }
                (&stream).write_all(frame).context("send a batch")?;
            }
            Ok(())
        };
        let written = write();
        drop(sent);
        let read = reader.join().expect("the reader does not panic");
        written.and(read)
    })?;
    ensure!(nanos.len() == requests, "answers are missing. requests=`{requests}`");
    Ok(nanos)
}

fn read_answers(
    stream: &std::net::TcpStream,
    to_answer: &std::sync::mpsc::Receiver<Instant>,
) -> anyhow::Result<Histogram<u64>> {
    let mut nanos = super::histogram();
    let mut frame = Vec::new();
    for (request, sent_at) in to_answer.iter().enumerate() {
        setup::read_frame(stream, &mut frame).context("read an answer")?;
        let answer = produce::answer(&frame).context("the answer is cut short")?;
        ensure!(answer.code == 0, "produce was refused. code=`{}`", answer.code);
        ensure!(answer.correlation == request as i32, "an answer out of order");
        nanos.saturating_record(sent_at.elapsed().as_nanos() as u64);
    }
    Ok(nanos)
}
