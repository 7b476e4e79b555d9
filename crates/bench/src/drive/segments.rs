//! A topic of very many segments, and a pass of retention that removes them.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::batches::{self, Batches};
use super::folder::{LogFolder, folders};
use super::setup::{self, Resource};

/// With a value of so many bytes a batch of one record fills a segment of [`SEGMENT_BYTES`].
const VALUE_BYTES: usize = 100;
const SEGMENT_BYTES: &str = "200";
/// Segments that retention may leave: the active one, and one that was closed for it.
const LEFT_MAX: usize = 2;
/// How often the folder is looked at: thousands of names are work for the machine, too.
const POLL: Duration = Duration::from_millis(100);
/// A pass that takes longer is stuck.
const PATIENCE: Duration = Duration::from_mins(5);

/// Segments that are to go.
#[derive(Debug)]
pub struct Segments {
    broker: SocketAddr,
    topic: String,
    folder: LogFolder,
}

impl Segments {
    /// Makes `count` of them in a topic of one partition: each holds one record, and nothing removes
    /// it. `below` is the broker's folder.
    pub fn fill(
        broker: SocketAddr,
        topic: &str,
        configs: &[(&str, &str)],
        below: &Path,
        count: usize,
    ) -> anyhow::Result<Self> {
        let before = folders(below)?;
        let own = [("internal.segment.bytes", SEGMENT_BYTES), ("retention.ms", "-1")];
        setup::create_topic(broker, topic, 1, &[configs, &own].concat())?;
        batches::run(&Batches {
            broker,
            topic: topic.to_owned(),
            partitions: 1,
            value_bytes: VALUE_BYTES,
            batch_bytes: 1,
            records: count as u64,
        })?;
        let folder = LogFolder::since(&before, below)?;
        let there = folder.count()?;
        ensure!(there >= count, "segments are missing. there=`{there}`, wanted=`{count}`");
        Ok(Self { broker, topic: topic.to_owned(), folder })
    }

    /// Lets all but the last one go with the next pass. How long it takes until their files are gone.
    pub fn remove(&self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        setup::set(self.broker, Resource::Topic(&self.topic), "retention.bytes", "1")?;
        loop {
            let left = self.folder.count()?;
            if left <= LEFT_MAX {
                return Ok(begun.elapsed());
            }
            ensure!(begun.elapsed() < PATIENCE, "segments stay. left=`{left}`");
            std::thread::sleep(POLL);
        }
    }
}
