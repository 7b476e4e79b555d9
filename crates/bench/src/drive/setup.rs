//! A blocking connection for what precedes a load: is the broker there, make the topic.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::frame::{Api, Reader, request};

/// Longer silence means that the broker is stuck, and the run is over.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;
const TOPIC_ALREADY_EXISTS: i16 = 36;
/// How the wire asks for the end of a partition.
const LATEST: i64 = -1;
const SERVED_POLL: Duration = Duration::from_millis(20);
/// How the wire names a change that sets a value.
const SET: i8 = 0;

/// Opens a connection as the drivers use it.
pub fn connect(broker: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(broker)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(stream)
}

/// Reads one answer into `frame`, without its size field.
pub fn read_frame(mut stream: &TcpStream, frame: &mut Vec<u8>) -> io::Result<()> {
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let size = u32::from_be_bytes(size) as usize;
    if size > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    frame.resize(size, 0);
    stream.read_exact(frame)
}

/// Asks for the API versions: a broker that answers is up.
pub fn api_versions(broker: SocketAddr) -> io::Result<()> {
    let mut stream = connect(broker)?;
    ask_api_versions(&mut stream)
}

/// The same on an open connection.
pub fn ask_api_versions(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&request(Api::ApiVersions, 0, 1, |_| {}))?;
    let mut frame = Vec::new();
    read_frame(stream, &mut frame)
}

/// Creates a topic with these configs, and waits until it takes records; one that exists is left as
/// it is.
pub fn create_topic(
    broker: SocketAddr,
    name: &str,
    partitions: usize,
    configs: &[(&str, &str)],
) -> anyhow::Result<()> {
    let mut stream = connect(broker)?;
    stream.write_all(&request(Api::CreateTopics, 4, 1, |w| {
        w.length(false, 1).string(false, name).i32(partitions as i32).i16(1).length(false, 0);
        w.length(false, configs.len());
        for (key, value) in configs {
            w.string(false, key).string(false, value);
        }
        w.i32(30_000).i8(0);
    }))?;
    match only_code(&stream).context("read the answer to CreateTopics")? {
        0 | TOPIC_ALREADY_EXISTS => {}
        code => bail!("create topic. topic=`{name}`, code=`{code}`"),
    }
    // Kafka's answer comes before its partitions are there.
    let begun = Instant::now();
    while !is_served(&mut stream, name, partitions)? {
        ensure!(begun.elapsed() < ANSWER_TIMEOUT, "topic is not served. topic=`{name}`");
        std::thread::sleep(SERVED_POLL);
    }
    Ok(())
}

/// Whether all partitions of a topic tell their ends.
fn is_served(stream: &mut TcpStream, name: &str, partitions: usize) -> anyhow::Result<bool> {
    stream.write_all(&request(Api::ListOffsets, 1, 1, |w| {
        w.i32(-1).length(false, 1).string(false, name).length(false, partitions);
        for partition in 0..partitions {
            w.i32(partition as i32).i64(LATEST);
        }
    }))?;
    let mut frame = Vec::new();
    read_frame(stream, &mut frame).context("read the answer to ListOffsets")?;
    let served = served(&frame).context("the answer to ListOffsets is cut short")?;
    Ok(served == partitions)
}

/// How many partitions an answer to ListOffsets v1 tells the end of.
fn served(frame: &[u8]) -> Option<usize> {
    let mut r = Reader::new(frame);
    r.i32()?;
    let mut served = 0;
    for _ in 0..r.length(false)? {
        r.string(false)?;
        for _ in 0..r.length(false)? {
            r.i32()?;
            served += usize::from(r.i16()? == 0);
            r.take(16)?;
        }
    }
    Some(served)
}

/// Deletes a topic.
pub fn delete_topic(broker: SocketAddr, name: &str) -> anyhow::Result<()> {
    let mut stream = connect(broker)?;
    stream.write_all(&request(Api::DeleteTopics, 3, 1, |w| {
        w.length(false, 1).string(false, name).i32(30_000);
    }))?;
    match only_code(&stream).context("read the answer to DeleteTopics")? {
        0 => Ok(()),
        code => bail!("delete topic. topic=`{name}`, code=`{code}`"),
    }
}

/// What has settings.
#[derive(Clone, Copy, Debug)]
pub enum Resource<'a> {
    /// A topic.
    Topic(&'a str),
    /// All brokers.
    Brokers,
}

/// Changes a setting at run time.
pub fn set(broker: SocketAddr, of: Resource<'_>, key: &str, value: &str) -> anyhow::Result<()> {
    let (kind, name) = match of {
        Resource::Topic(name) => (2, name),
        Resource::Brokers => (4, ""),
    };
    let mut stream = connect(broker)?;
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
    ensure!(code == Some(0), "a setting was not taken. key=`{key}`, code=`{code:?}`");
    Ok(())
}

/// The error code of the one topic that an answer to CreateTopics v4 or DeleteTopics v3 tells of.
fn only_code(stream: &TcpStream) -> anyhow::Result<i16> {
    let mut frame = Vec::new();
    read_frame(stream, &mut frame)?;
    let mut r = Reader::new(&frame);
    let code = (|| {
        r.i32()?;
        r.i32()?;
        r.length(false)?;
        r.string(false)?;
        r.i16()
    })();
    code.context("it is cut short")
}
