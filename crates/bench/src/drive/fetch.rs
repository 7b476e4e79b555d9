//! A consumer of raw frames: fetches one partition from its start and walks the batch headers.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, ensure};
use strandline_records::batches;

use super::{Load, setup};
use crate::frame::{Api, Reader, request};

/// By name and without a session: what every broker of the comparison serves.
const VERSION: i16 = 11;
/// Asked for at a time by who counts.
const COUNT_BYTES: usize = 8 << 20;

/// What load to make.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The broker.
    pub broker: SocketAddr,
    /// The topic; its partition 0 is read.
    pub topic: String,
    /// How many bytes of batches to ask for at a time.
    pub max_bytes: usize,
    /// The offset to stop at.
    pub records: u64,
}

/// Runs the load.
pub fn run(load: &Fetch) -> anyhow::Result<Load> {
    let mut stream = setup::connect(load.broker).context("connect")?;
    let begin = Instant::now();
    let mut frame = Vec::new();
    let (mut offset, mut bytes, mut requests) = (0_i64, 0, 0);
    while (offset as u64) < load.records {
        requests += 1;
        stream.write_all(&ask(load, requests, offset)).context("send a fetch")?;
        setup::read_frame(&stream, &mut frame).context("read a fetch's answer")?;
        let records = records(&frame).context("the answer is cut short")??;
        for batch in batches(records) {
            // A broker may cut the last batch short: it comes whole the next time.
            let Ok(batch) = batch else { break };
            let next = batch.next_offset().context("a batch without offsets")?.get();
            ensure!(
                batch.raw_base_offset() <= offset && offset < next,
                "a hole. offset=`{offset}`"
            );
            offset = next;
            bytes += batch.bytes().len() as u64;
        }
    }
    Ok(Load {
        records: offset as u64,
        bytes,
        requests: requests as u64,
        elapsed: begin.elapsed(),
        latency: None,
    })
}

/// Reads what is left of partition 0 of a topic: how many records.
pub fn count(broker: SocketAddr, topic: &str) -> anyhow::Result<u64> {
    let load = Fetch { broker, topic: topic.to_owned(), max_bytes: COUNT_BYTES, records: 0 };
    let mut stream = setup::connect(broker).context("connect")?;
    let mut frame = Vec::new();
    let (mut offset, mut count) = (0, 0);
    for correlation in 1.. {
        stream.write_all(&ask(&load, correlation, offset)).context("send a fetch")?;
        setup::read_frame(&stream, &mut frame).context("read a fetch's answer")?;
        let records = records(&frame).context("the answer is cut short")??;
        let before = offset;
        for batch in batches(records) {
            let Ok(batch) = batch else { break };
            offset = batch.next_offset().context("a batch without offsets")?.get();
            ensure!(offset > before, "a batch of what was read before. offset=`{before}`");
            count += u64::from(batch.records_count().cast_unsigned());
        }
        if offset == before {
            break;
        }
    }
    Ok(count)
}

fn ask(load: &Fetch, correlation: i32, offset: i64) -> Vec<u8> {
    request(Api::Fetch, VERSION, correlation, |w| {
        w.i32(-1).i32(500).i32(1).i32(i32::MAX).i8(0).i32(0).i32(-1);
        w.length(false, 1).string(false, &load.topic).length(false, 1);
        w.i32(0).i32(-1).i64(offset).i64(-1).i32(load.max_bytes as i32);
        w.length(false, 0).string(false, "");
    })
}

/// The records of the one partition; `None` when the frame ends too early.
fn records(frame: &[u8]) -> Option<anyhow::Result<&[u8]>> {
    let mut r = Reader::new(frame);
    r.take(8)?;
    let mut code = r.i16()?;
    r.i32()?;
    if code == 0 {
        r.length(false)?;
        r.string(false)?;
        r.length(false)?;
        r.i32()?;
        code = r.i16()?;
        r.take(24)?;
        for _ in 0..r.length(false)? {
            r.take(16)?;
        }
        r.i32()?;
    }
    if code != 0 {
        return Some(Err(anyhow::anyhow!("fetch was refused. code=`{code}`")));
    }
    let size = r.length(false)?;
    r.take(size).map(Ok)
}
