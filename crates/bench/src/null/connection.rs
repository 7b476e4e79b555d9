//! One connection of the null broker: read, handle all whole requests, sync once, answer once.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use super::Null;
use super::ask::{Fetch, create_topics, list_offsets};
use super::log::Partition;
use crate::frame::{Api, Reader, Writer, begin, end};
use crate::produce::Produce;

/// Small requests are read several at once, large ones to their exact end, so that no half of a
/// large one has to be moved.
const READ_BYTES: usize = 64 * 1024;
const FRAME_BYTES_MAX: usize = 128 * 1024 * 1024;

struct Connection<'a> {
    null: &'a Null,
    stream: &'a TcpStream,
    out: Vec<u8>,
    dirty: Vec<Arc<Partition>>,
    produce: Produce,
    results: Vec<(i16, i64)>,
    topic: Option<(String, Arc<[Arc<Partition>]>)>,
}

pub(super) fn serve(null: &Null, stream: &TcpStream) -> io::Result<()> {
    let mut connection = Connection {
        null,
        stream,
        out: Vec::new(),
        dirty: Vec::new(),
        produce: Produce::default(),
        results: Vec::new(),
        topic: None,
    };
    let mut buf = vec![0; READ_BYTES];
    let mut filled = 0;
    loop {
        let mut done = 0;
        let mut need = READ_BYTES;
        while let Some(size) = buf[done..filled].first_chunk::<4>() {
            let size = u32::from_be_bytes(*size) as usize;
            if size > FRAME_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let Some(frame) = buf[done..filled].get_mut(4..4 + size) else {
                need = need.max(4 + size);
                break;
            };
            connection.handle(frame)?;
            done += 4 + size;
        }
        connection.flush()?;
        buf.copy_within(done..filled, 0);
        filled -= done;
        if buf.len() < need {
            buf.resize(need, 0);
        }
        let read = (&mut &*stream).read(&mut buf[filled..need])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
    }
}

impl Connection<'_> {
    fn handle(&mut self, frame: &mut [u8]) -> io::Result<()> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let mut r = Reader::new(frame);
        let header = (|| Some((r.i16()?, r.i16()?, r.i32()?)))();
        let (key, version, correlation) = header.ok_or_else(malformed)?;
        let api = Api::from_key(key).ok_or_else(malformed)?;
        r.string(false).ok_or_else(malformed)?;
        r.tags(api.flexible(version)).ok_or_else(malformed)?;
        if api == Api::Produce {
            self.produce.parse(&mut r, version).ok_or_else(malformed)?;
            return self.produce(frame, version, correlation);
        }
        if api == Api::Fetch {
            self.flush()?;
            let fetch = Fetch::parse(&mut r, version).ok_or_else(malformed)?;
            return self.fetch(&fetch, version, correlation);
        }
        let at = begin(&mut self.out);
        Writer::new(&mut self.out).i32(correlation);
        match api {
            Api::Metadata => self.metadata(&mut r, version)?.ok_or_else(malformed)?,
            Api::ListOffsets => self.list_offsets(&mut r, version)?.ok_or_else(malformed)?,
            Api::CreateTopics => self.create_topics(&mut r)?.ok_or_else(malformed)?,
            Api::ApiVersions => self.api_versions(version),
            Api::InitProducerId => {
                Writer::new(&mut self.out).i32(0).i16(0).i64(1).i16(0);
            }
            Api::Produce | Api::Fetch => unreachable!("handled above"),
            Api::OffsetCommit
            | Api::JoinGroup
            | Api::Heartbeat
            | Api::SyncGroup
            | Api::DeleteTopics
            | Api::DescribeConfigs
            | Api::IncrementalAlterConfigs => {
                unreachable!("not served, so no key leads here")
            }
        }
        end(&mut self.out, at, 0);
        Ok(())
    }

    /// Makes durable what was appended, then sends what was answered.
    fn flush(&mut self) -> io::Result<()> {
        if !self.dirty.is_empty() {
            if self.null.sync {
                self.null.committer.commit(&self.dirty);
            } else {
                self.dirty.iter().for_each(|partition| partition.publish(partition.written()));
            }
            self.dirty.clear();
            self.null.logs.publish();
        }
        if !self.out.is_empty() {
            self.stream.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn topic(&mut self, name: &str) -> io::Result<Arc<[Arc<Partition>]>> {
        if let Some((known, partitions)) = &self.topic
            && known == name
        {
            return Ok(Arc::clone(partitions));
        }
        let partitions = self.null.logs.topic(name, None)?;
        self.topic = Some((name.to_owned(), Arc::clone(&partitions)));
        Ok(partitions)
    }

    fn partition(&mut self, topic: &str, index: i32) -> io::Result<Option<Arc<Partition>>> {
        let partitions = self.topic(topic)?;
        Ok(usize::try_from(index).ok().and_then(|index| partitions.get(index)).map(Arc::clone))
    }

    fn produce(&mut self, frame: &mut [u8], version: i16, correlation: i32) -> io::Result<()> {
        self.results.clear();
        for at in 0..self.produce.parts().len() {
            let part = self.produce.parts()[at].clone();
            let name = String::from_utf8_lossy(&frame[part.topic]).into_owned();
            let result = match self.partition(&name, part.partition)? {
                None => (UNKNOWN_TOPIC_OR_PARTITION, -1),
                Some(partition) => {
                    let result = partition.append(&mut frame[part.records])?;
                    self.dirty.push(partition);
                    result
                }
            };
            self.results.push(result);
        }
        if self.produce.acks != 0 {
            self.produce.respond(frame, version, correlation, &self.results, &mut self.out);
        }
        Ok(())
    }

    fn fetch(&mut self, fetch: &Fetch, version: i16, correlation: i32) -> io::Result<()> {
        let mut parts = Vec::new();
        for ask in &fetch.asks {
            parts.push((ask, self.partition(&ask.topic, ask.partition)?));
        }
        let mut left = fetch.max_bytes;
        let look = || {
            left = fetch.max_bytes;
            let regions: Vec<_> = parts
                .iter()
                .map(|(ask, partition)| {
                    let partition = partition.as_ref().filter(|_| left > 0)?;
                    let region = partition.region(ask.offset, ask.max_bytes.min(left))?;
                    left = left.saturating_sub(region.length);
                    Some(region)
                })
                .collect();
            (fetch.max_bytes > left).then_some(regions)
        };
        let regions = self.null.logs.wait_for(fetch.max_wait, look).unwrap_or_default();
        let bytes: usize = regions.iter().flatten().map(|region| region.length).sum();
        let at = begin(&mut self.out);
        let mut first = Writer::new(&mut self.out);
        first.i32(correlation).i32(0);
        if version >= 7 {
            first.i16(0).i32(0);
        }
        first.length(false, parts.len());
        let mut sends = Vec::new();
        for (index, (ask, partition)) in parts.iter().enumerate() {
            let region = regions.get(index).copied().flatten();
            let hw = partition.as_ref().map(|partition| partition.high_watermark());
            let code = if hw.is_some() { 0 } else { UNKNOWN_TOPIC_OR_PARTITION };
            let hw = region.map_or(hw.unwrap_or(-1), |region| region.high_watermark);
            let mut w = Writer::new(&mut self.out);
            w.string(false, &ask.topic)
                .length(false, 1)
                .i32(ask.partition)
                .i16(code)
                .i64(hw)
                .i64(hw);
            if version >= 5 {
                w.i64(0);
            }
            w.i32(-1);
            if version >= 11 {
                w.i32(-1);
            }
            w.length(false, region.map_or(0, |region| region.length));
            sends.push((self.out.len(), partition, region));
        }
        end(&mut self.out, at, bytes);
        let mut sent = 0;
        for (upto, partition, region) in sends {
            self.stream.write_all(&self.out[sent..upto])?;
            sent = upto;
            if let (Some(partition), Some(region)) = (partition, region) {
                send_file(self.stream, partition, region.position, region.length)?;
            }
        }
        self.out.clear();
        Ok(())
    }

    fn metadata(&mut self, r: &mut Reader<'_>, version: i16) -> io::Result<Option<()>> {
        let Some(count) = r.i32() else { return Ok(None) };
        let mut topics = Vec::new();
        for _ in 0..count.max(0) {
            let Some(name) = r.string(false) else { return Ok(None) };
            topics.push((name, self.topic(name)?.len()));
        }
        let mut w = Writer::new(&mut self.out);
        if version >= 3 {
            w.i32(0);
        }
        w.length(false, 1).i32(NODE).string(false, "127.0.0.1").i32(i32::from(self.null.port));
        if version >= 1 {
            w.i16(-1);
        }
        if version >= 2 {
            w.string(false, "null");
        }
        if version >= 1 {
            w.i32(NODE);
        }
        w.length(false, topics.len());
        for (name, partitions) in topics {
            w.i16(0).string(false, name);
            if version >= 1 {
                w.i8(0);
            }
            w.length(false, partitions);
            for index in 0..i32::try_from(partitions).unwrap_or(i32::MAX) {
                w.i16(0).i32(index).i32(NODE);
                if version >= 7 {
                    w.i32(0);
                }
                w.length(false, 1).i32(NODE).length(false, 1).i32(NODE);
                if version >= 5 {
                    w.length(false, 0);
                }
            }
            if version >= 8 {
                w.i32(i32::MIN);
            }
        }
        if version >= 8 {
            w.i32(i32::MIN);
        }
        Ok(Some(()))
    }

    fn list_offsets(&mut self, r: &mut Reader<'_>, version: i16) -> io::Result<Option<()>> {
        let Some(asks) = list_offsets(r, version) else { return Ok(None) };
        let mut w = Writer::new(&mut self.out);
        if version >= 2 {
            w.i32(0);
        }
        w.length(false, asks.len());
        for (topic, index, timestamp) in asks {
            let partition = self.partition(&topic, index)?;
            let code = if partition.is_some() { 0 } else { UNKNOWN_TOPIC_OR_PARTITION };
            let end = partition.map_or(-1, |partition| partition.high_watermark());
            let mut w = Writer::new(&mut self.out);
            w.string(false, &topic).length(false, 1).i32(index).i16(code).i64(-1);
            w.i64(if timestamp == EARLIEST { 0 } else { end });
            if version >= 4 {
                w.i32(-1);
            }
        }
        Ok(Some(()))
    }

    fn create_topics(&mut self, r: &mut Reader<'_>) -> io::Result<Option<()>> {
        let Some(asks) = create_topics(r) else { return Ok(None) };
        Writer::new(&mut self.out).i32(0).length(false, asks.len());
        for (name, partitions) in asks {
            self.null.logs.topic(&name, Some(partitions))?;
            Writer::new(&mut self.out).string(false, &name).i16(0).i16(-1);
        }
        Ok(Some(()))
    }

    fn api_versions(&mut self, version: i16) {
        let flexible = version >= 3;
        let mut w = Writer::new(&mut self.out);
        w.i16(0).length(flexible, Api::SERVED.len());
        for (api, min, max) in Api::SERVED {
            w.i16(api as i16).i16(min).i16(max).tags(flexible);
        }
        if version >= 1 {
            w.i32(0);
        }
        w.tags(flexible);
    }
}

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const EARLIEST: i64 = -2;
const NODE: i32 = 1;

fn send_file(stream: &TcpStream, from: &Partition, position: u64, length: usize) -> io::Result<()> {
    let mut at = position;
    let end = position + length as u64;
    while at < end {
        let left = usize::try_from(end - at).expect("a region fits memory");
        if rustix::fs::sendfile(stream, &from.file, Some(&mut at), left)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
