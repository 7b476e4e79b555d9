//! Many topics: how long they take to be made and to be told of.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::setup::{connect, read_frame};
use crate::frame::{Api, Reader, Writer, request};

/// Topics in one CreateTopics request.
const TOPICS_PER_REQUEST: usize = 500;
/// Kafka makes no more partitions in one request.
const PARTITIONS_PER_REQUEST: usize = 10_000;
/// Times that metadata is asked for; the median counts.
const ASKS: usize = 9;

/// Topics and their partitions.
#[derive(Clone, Copy, Debug)]
pub struct Estate {
    /// The broker that has them.
    pub broker: SocketAddr,
    /// How many.
    pub topics: usize,
    /// Partitions of each.
    pub partitions: usize,
}

impl Estate {
    /// Makes all topics, one request after another. How long that took.
    pub fn create(&self) -> anyhow::Result<Duration> {
        let mut stream = connect(self.broker)?;
        let mut frame = Vec::new();
        let begin = Instant::now();
        let step = TOPICS_PER_REQUEST.min(PARTITIONS_PER_REQUEST / self.partitions).max(1);
        for first in (0..self.topics).step_by(step) {
            let numbers = first..self.topics.min(first + step);
            stream.write_all(&request(Api::CreateTopics, 4, 1, |w| {
                w.length(false, numbers.len());
                for number in numbers.clone() {
                    w.string(false, &format!("estate-{number}"));
                    w.i32(self.partitions as i32).i16(1).length(false, 0).length(false, 0);
                }
                w.i32(30_000).i8(0);
            }))?;
            read_frame(&stream, &mut frame).context("read the answer to CreateTopics")?;
            let made = created(&frame).context("the answer to CreateTopics is cut short")?;
            ensure!(made == numbers.len(), "topics were refused. made=`{made}`");
        }
        Ok(begin.elapsed())
    }

    /// Asks for the metadata of all topics, and looks that all are there. The median time from the
    /// question to the last byte of the answer.
    pub fn metadata(&self) -> anyhow::Result<Duration> {
        let mut stream = connect(self.broker)?;
        let question = request(Api::Metadata, 8, 1, |w: &mut Writer<'_>| {
            w.i32(-1).i8(0).i8(0).i8(0);
        });
        let mut frame = Vec::new();
        let mut times = Vec::with_capacity(ASKS);
        for _ in 0..ASKS {
            let begin = Instant::now();
            stream.write_all(&question)?;
            read_frame(&stream, &mut frame).context("read the answer to Metadata")?;
            times.push(begin.elapsed());
            let told = told(&frame).context("the answer to Metadata is cut short")?;
            ensure!(told == self.topics, "topics are missing. told=`{told}`");
        }
        times.sort_unstable();
        Ok(times[ASKS / 2])
    }
}

/// How many topics were made.
fn created(frame: &[u8]) -> Option<usize> {
    let mut r = Reader::new(frame);
    r.i32()?;
    r.i32()?;
    let mut made = 0;
    for _ in 0..r.length(false)? {
        r.string(false)?;
        made += usize::from(r.i16()? == 0);
        r.string(false)?;
    }
    Some(made)
}

/// How many topics the metadata tells of.
fn told(frame: &[u8]) -> Option<usize> {
    let mut r = Reader::new(frame);
    r.i32()?;
    r.i32()?;
    for _ in 0..r.length(false)? {
        r.i32()?;
        r.string(false)?;
        r.i32()?;
        r.string(false)?;
    }
    r.string(false)?;
    r.i32()?;
    r.length(false)
}
