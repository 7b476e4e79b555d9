//! A topic of very many segments, and a pass of retention that removes them.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, ensure};

use super::batches::{self, Batches};
use super::setup::{self, connect, read_frame};
use crate::frame::{Api, Reader, request};

/// With a value of so many bytes a batch of one record fills a segment of [`SEGMENT_BYTES`].
const VALUE_BYTES: usize = 100;
const SEGMENT_BYTES: &str = "200";
/// How the wire names what has settings.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;

/// Segments that are to go.
#[derive(Clone, Debug)]
pub struct Segments {
    /// The broker.
    pub broker: SocketAddr,
    /// Their topic, of one partition.
    pub topic: String,
    /// How many.
    pub count: usize,
}

impl Segments {
    /// Makes them: each holds one record, and nothing removes it.
    pub fn fill(&self) -> anyhow::Result<()> {
        let configs = [("internal.segment.bytes", SEGMENT_BYTES), ("retention.ms", "-1")];
        setup::create_topic(self.broker, &self.topic, 1, &configs)?;
        batches::run(&Batches {
            broker: self.broker,
            topic: self.topic.clone(),
            partitions: 1,
            value_bytes: VALUE_BYTES,
            batch_bytes: 1,
            records: self.count as u64,
        })?;
        Ok(())
    }

    /// Lets all but the last one go with the next pass, and passes come ten times a second.
    pub fn remove(&self) -> anyhow::Result<()> {
        self.set(TOPIC, &self.topic, ("retention.records", "1"))?;
        self.set(BROKER, "", ("log.retention.check.interval.ms", "100"))
    }

    fn set(&self, kind: i8, name: &str, (key, value): (&str, &str)) -> anyhow::Result<()> {
        let mut stream = connect(self.broker)?;
        stream.write_all(&request(Api::IncrementalAlterConfigs, 0, 1, |w| {
            w.length(false, 1).i8(kind).string(false, name).length(false, 1);
            w.string(false, key).i8(SET).string(false, value).i8(0);
        }))?;
        let mut frame = Vec::new();
        read_frame(&stream, &mut frame).context("read the answer to IncrementalAlterConfigs")?;
        let mut r = Reader::new(&frame);
        let code = (|| {
            r.i32()?;
            r.i32()?;
            r.length(false)?;
            r.i16()
        })();
        ensure!(code == Some(0), "{key} was not set. code=`{code:?}`");
        Ok(())
    }
}

/// How many segments there are on disk in a broker's folder.
pub fn count_files(folder: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
            count += usize::from(entry.path().extension().is_some_and(|end| end == "log"));
        }
    }
    Ok(count)
}
