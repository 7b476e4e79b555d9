//! What requests other than Produce ask of the null broker, in the versions that it serves.
//!
//! Nothing checks counts against a limit: a frame that ends too early ends the connection.

use std::time::Duration;

use crate::frame::Reader;

/// A Fetch request (v4–v11).
pub(super) struct Fetch {
    pub(super) max_wait: Duration,
    pub(super) max_bytes: usize,
    pub(super) asks: Vec<Ask>,
}

/// What a fetch wants of one partition.
pub(super) struct Ask {
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) max_bytes: usize,
}

impl Fetch {
    pub(super) fn parse(r: &mut Reader<'_>, version: i16) -> Option<Self> {
        r.i32()?;
        let max_wait = Duration::from_millis(u64::try_from(r.i32()?).ok()?);
        r.i32()?;
        let max_bytes = usize::try_from(r.i32()?).ok()?;
        r.i8()?;
        if version >= 7 {
            r.take(8)?;
        }
        let mut asks = Vec::new();
        for _ in 0..r.length(false)? {
            let topic = r.string(false)?;
            for _ in 0..r.length(false)? {
                let partition = r.i32()?;
                if version >= 9 {
                    r.i32()?;
                }
                let offset = r.i64()?;
                if version >= 5 {
                    r.i64()?;
                }
                let max_bytes = usize::try_from(r.i32()?).ok()?;
                asks.push(Ask { topic: topic.to_owned(), partition, offset, max_bytes });
            }
        }
        Some(Self { max_wait, max_bytes, asks })
    }
}

/// Topic, partition and timestamp of each question of `ListOffsets` (v1–v5).
pub(super) fn list_offsets(r: &mut Reader<'_>, version: i16) -> Option<Vec<(String, i32, i64)>> {
    let mut asks = Vec::new();
    r.i32()?;
    if version >= 2 {
        r.i8()?;
    }
    for _ in 0..r.length(false)? {
        let topic = r.string(false)?;
        for _ in 0..r.length(false)? {
            let index = r.i32()?;
            if version >= 4 {
                r.i32()?;
            }
            asks.push((topic.to_owned(), index, r.i64()?));
        }
    }
    Some(asks)
}

/// Name and partition count of each topic of `CreateTopics` (v2–v4).
pub(super) fn create_topics(r: &mut Reader<'_>) -> Option<Vec<(String, usize)>> {
    let mut asks = Vec::new();
    for _ in 0..r.length(false)? {
        let name = r.string(false)?.to_owned();
        let partitions = usize::try_from(r.i32()?).ok()?;
        r.i16()?;
        for _ in 0..r.length(false)? {
            r.i32()?;
            let brokers = r.length(false)?;
            r.take(brokers.checked_mul(4)?)?;
        }
        for _ in 0..r.length(false)? {
            r.string(false)?;
            r.string(false)?;
        }
        asks.push((name, partitions));
    }
    Some(asks)
}
