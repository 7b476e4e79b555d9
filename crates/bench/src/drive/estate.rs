//! Many topics: how long they take to be made, written, told of, described and changed.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::setup::{self, Resource, connect, read_frame};
use crate::batch;
use crate::frame::{Api, Reader, Writer, request};

/// Topics in one CreateTopics request.
const TOPICS_PER_REQUEST: usize = 500;
/// Kafka makes no more than 10 000 topics and partitions in one request.
const PARTITIONS_PER_REQUEST: usize = 5_000;
/// Partitions that one request writes to.
const PARTITIONS_PER_PRODUCE: usize = 1_000;
/// Bytes of the record that a partition gets.
const VALUE_BYTES: usize = 100;
/// Times that a question is asked; the median counts.
const ASKS: usize = 9;
/// How the wire names a topic among the things that have settings.
const TOPIC: i8 = 2;
const SET: i8 = 0;
/// Kafka takes records of a new partition when its files are on disk, a while after it was made: with
/// thousands of them, minutes on a slow disk.
const MAKING_PATIENCE: Duration = Duration::from_mins(10);
const MAKING_POLL: Duration = Duration::from_secs(1);
/// After so long without use a log is closed, for this run; the default takes longer.
const IDLE: Duration = Duration::from_secs(2);
/// Turns of that time after which everything is closed.
const IDLE_TURNS: u32 = 3;

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

    /// Produces one record to every partition; more, where some took theirs before others were ready.
    pub fn write(&self) -> anyhow::Result<()> {
        let mut stream = connect(self.broker)?;
        let mut frame = Vec::new();
        let record = batch::plain(1, VALUE_BYTES);
        let step = (PARTITIONS_PER_PRODUCE / self.partitions).max(1);
        for first in (0..self.topics).step_by(step) {
            let numbers = first..self.topics.min(first + step);
            let partitions = numbers.len() * self.partitions;
            let asked = request(Api::Produce, 3, 1, |w| {
                w.i16(-1).i16(-1).i32(30_000).length(false, numbers.len());
                for number in numbers.clone() {
                    w.string(false, &format!("estate-{number}")).length(false, self.partitions);
                    for partition in 0..self.partitions {
                        w.i32(partition as i32).length(false, record.len()).raw(&record);
                    }
                }
            });
            let begun = Instant::now();
            loop {
                stream.write_all(&asked)?;
                read_frame(&stream, &mut frame).context("read the answer to Produce")?;
                let kept = written(&frame).context("the answer to Produce is cut short")?;
                if kept == partitions {
                    break;
                }
                ensure!(begun.elapsed() < MAKING_PATIENCE, "records were refused. kept=`{kept}`");
                std::thread::sleep(MAKING_POLL);
            }
        }
        Ok(())
    }

    /// Waits until what was written is idle: until the logs that nobody uses are closed.
    pub fn let_rest(&self) -> anyhow::Result<()> {
        let idle_ms = IDLE.as_millis().to_string();
        setup::set(self.broker, Resource::Brokers, "log.idle.close.ms", &idle_ms)?;
        std::thread::sleep(IDLE * IDLE_TURNS);
        Ok(())
    }

    /// Asks for the metadata of all topics, and looks that all are there. The median time from the
    /// question to the last byte of the answer.
    pub fn metadata(&self) -> anyhow::Result<Duration> {
        let question = request(Api::Metadata, 8, 1, |w: &mut Writer<'_>| {
            w.i32(-1).i8(0).i8(0).i8(0);
        });
        self.ask(&question, told)
    }

    /// Asks for all settings of all topics in one request; the time as in [`Self::metadata`].
    pub fn describe(&self) -> anyhow::Result<Duration> {
        let question = request(Api::DescribeConfigs, 1, 1, |w| {
            w.length(false, self.topics);
            for number in 0..self.topics {
                w.i8(TOPIC).string(false, &format!("estate-{number}")).i32(-1);
            }
            w.i8(0);
        });
        self.ask(&question, described)
    }

    /// Changes a setting of all topics in one request; the time until all are kept.
    pub fn alter(&self) -> anyhow::Result<Duration> {
        let question = request(Api::IncrementalAlterConfigs, 0, 1, |w| {
            w.length(false, self.topics);
            for number in 0..self.topics {
                w.i8(TOPIC).string(false, &format!("estate-{number}")).length(false, 1);
                w.string(false, "retention.ms").i8(SET).string(false, "86400000");
            }
            w.i8(0);
        });
        self.ask(&question, altered)
    }

    /// The median time from a question about all topics to the last byte of its answer, in which
    /// `count` finds the topics that it speaks of without an error.
    fn ask(&self, question: &[u8], count: fn(&[u8]) -> Option<usize>) -> anyhow::Result<Duration> {
        let mut stream = connect(self.broker)?;
        let mut frame = Vec::new();
        let mut times = Vec::with_capacity(ASKS);
        for _ in 0..ASKS {
            let begin = Instant::now();
            stream.write_all(question)?;
            read_frame(&stream, &mut frame).context("read the answer about all topics")?;
            times.push(begin.elapsed());
            let found = count(&frame).context("the answer about all topics is cut short")?;
            ensure!(found == self.topics, "topics are missing or refused. found=`{found}`");
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

/// How many partitions took their record.
fn written(frame: &[u8]) -> Option<usize> {
    let mut r = Reader::new(frame);
    r.i32()?;
    let mut kept = 0;
    for _ in 0..r.length(false)? {
        r.string(false)?;
        for _ in 0..r.length(false)? {
            r.i32()?;
            kept += usize::from(r.i16()? == 0);
            r.take(16)?;
        }
    }
    Some(kept)
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

/// How many topics the settings are told of.
fn described(frame: &[u8]) -> Option<usize> {
    answered_well(frame, |r| {
        for _ in 0..r.length(false)? {
            r.string(false)?;
            r.string(false)?;
            r.take(3)?;
            for _ in 0..r.length(false)? {
                r.string(false)?;
                r.string(false)?;
                r.i8()?;
            }
        }
        Some(())
    })
}

/// How many topics were changed.
fn altered(frame: &[u8]) -> Option<usize> {
    answered_well(frame, |_| Some(()))
}

/// How many things that have settings are answered without an error; `skip` reads what follows each.
fn answered_well(frame: &[u8], skip: fn(&mut Reader<'_>) -> Option<()>) -> Option<usize> {
    let mut r = Reader::new(frame);
    r.i32()?;
    r.i32()?;
    let mut well = 0;
    for _ in 0..r.length(false)? {
        well += usize::from(resource(&mut r)?);
        skip(&mut r)?;
    }
    Some(well)
}

/// Whether the next thing that has settings is answered without an error.
fn resource(r: &mut Reader<'_>) -> Option<bool> {
    let code = r.i16()?;
    r.string(false)?;
    r.i8()?;
    r.string(false)?;
    Some(code == 0)
}
