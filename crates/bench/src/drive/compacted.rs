//! A log of records with keys that one pass of compaction goes over, seen from outside.
//!
//! The keys are drawn evenly, so that what is superseded lies everywhere and most batches lose a
//! part: the older, the more. What is left when the pass is over is known beforehand, to the byte,
//! and that is how its end is noticed, whoever compacts: the files of the log have shrunk to it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use strandline_records::HEADER_BYTES;

use super::folder::{LogFolder, folders};
use super::setup::{self, Resource};
use super::{batches, fetch};
use crate::batch::Keyed;
use crate::produce;

/// Records of a batch: fewer than 64, so that all of its offsets take one byte.
const BATCH_RECORDS: u64 = 60;
const VALUE_BYTES: usize = 1024;
/// 1 GiB of values.
const BATCHES: u64 = (1 << 30) / (VALUE_BYTES as u64 * BATCH_RECORDS);
/// So many that five of six records are superseded, or nearly.
const KEYS: u64 = BATCHES * BATCH_RECORDS / 6;
const SEGMENT_BYTES: &str = "67108864";
/// A ratio that no log exceeds: nothing is compacted.
const NEVER: &str = "1.0";
const ALWAYS: &str = "0.01";
/// How often a broker looks whether a log is due.
const BACKOFF_MS: &str = "20";
/// How often the folder is looked at.
const POLL: Duration = Duration::from_millis(5);
/// A pass that takes longer is stuck.
const PATIENCE: Duration = Duration::from_mins(5);
/// Brokers may keep the header of an empty batch, and little else.
const TOLERANCE_BYTES: u64 = 4096;

/// See the [module](self).
#[derive(Debug)]
pub struct CompactedLog {
    broker: SocketAddr,
    topic: String,
    folder: LogFolder,
    /// Records that the pass reads.
    pub records: u64,
    /// Bytes of their values.
    pub bytes: u64,
    left: Left,
    /// The segment that takes no part.
    active_bytes: u64,
    active_records: u64,
}

/// What a pass leaves of the records that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    records: u64,
    /// Batches with at least one of them.
    batches: u64,
}

impl CompactedLog {
    /// Makes the log in a topic of one partition, and holds back its compaction. `below` is the
    /// broker's folder.
    pub fn fill(
        broker: SocketAddr,
        topic: &str,
        configs: &[(&str, &str)],
        below: &Path,
    ) -> anyhow::Result<Self> {
        setup::set(broker, Resource::Brokers, "log.cleaner.backoff.ms", BACKOFF_MS)?;
        let before = folders(below)?;
        let own = [
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", NEVER),
            ("segment.bytes", SEGMENT_BYTES),
        ];
        setup::create_topic(broker, topic, 1, &[configs, &own].concat())?;
        let mut batch = Keyed::new(BATCH_RECORDS as u32, VALUE_BYTES);
        batches::send(broker, BATCHES, &mut [Vec::new()], |request, frame| {
            let first = request * BATCH_RECORDS;
            let keys = (first..first + BATCH_RECORDS).map(|record| key_of(record, KEYS));
            *frame = produce::request(topic, 0, batch.with_keys(keys));
        })?;
        let folder = LogFolder::since(&before, below)?;
        let active = folder.segments()?.into_iter().max().context("there are segments")?;
        let records = active.base_offset;
        ensure!(records > 0, "no segment was closed");
        Ok(Self {
            broker,
            topic: topic.to_owned(),
            folder,
            records,
            bytes: records * VALUE_BYTES as u64,
            left: left_of(records, |record| key_of(record, KEYS), BATCH_RECORDS),
            active_bytes: active.bytes,
            active_records: BATCHES * BATCH_RECORDS - records,
        })
    }

    /// Lets it be compacted. How long it takes until the old files are gone.
    pub fn compact(&self) -> anyhow::Result<Duration> {
        let record_bytes = Keyed::new(1, VALUE_BYTES).records_bytes() as u64;
        let expected = self.left.records * record_bytes
            + self.left.batches * HEADER_BYTES as u64
            + self.active_bytes
            + TOLERANCE_BYTES;
        let begun = Instant::now();
        let topic = Resource::Topic(&self.topic);
        setup::set(self.broker, topic, "min.cleanable.dirty.ratio", ALWAYS)?;
        loop {
            let bytes = self.folder.bytes()?;
            if bytes <= expected {
                return Ok(begun.elapsed());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "the log is not compacted. bytes=`{bytes}`, expected=`{expected}`"
            );
            std::thread::sleep(POLL);
        }
    }

    /// Reads all that is left, and fails unless it is what is to be left.
    pub fn check(&self) -> anyhow::Result<()> {
        let found = fetch::count(self.broker, &self.topic)?;
        let expected = self.left.records + self.active_records;
        ensure!(
            found == expected,
            "records are missing, or too many. found=`{found}`, expected=`{expected}`"
        );
        Ok(())
    }
}

/// The key of a record: as good as drawn.
const fn key_of(record: u64, keys: u64) -> u64 {
    let mut mixed = record.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) % keys
}

/// What is left of so many records in batches of `per_batch`: the newest of each key.
fn left_of(records: u64, key_of: impl Fn(u64) -> u64, per_batch: u64) -> Left {
    let mut seen = std::collections::HashSet::new();
    let mut left = Left { records: 0, batches: 0 };
    let mut last_batch = None;
    for record in (0..records).rev().filter(|&record| seen.insert(key_of(record))) {
        left.records += 1;
        left.batches +=
            u64::from(last_batch.replace(record / per_batch) != Some(record / per_batch));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_record_of_each_key_is_left_in_the_batch_that_it_came_with() {
        let keys = [1, 2, 3, 1, 1, 1, 2, 9];
        // The third, the sixth, the seventh and the eighth record stay.
        let cases = [(2, (4, 3)), (4, (4, 2)), (1, (4, 4)), (8, (4, 1))];
        for (per_batch, (records, batches)) in cases {
            let left = left_of(8, |record| keys[record as usize], per_batch);
            assert_eq!(left, Left { records, batches }, "{per_batch} in a batch");
        }
        assert_eq!(left_of(0, |_| 0, 1), Left { records: 0, batches: 0 });
    }

    #[test]
    fn keys_are_spread_so_that_most_batches_lose_a_part() {
        let (records, keys) = (60_000, 10_000);
        let left = left_of(records, |record| key_of(record, keys), BATCH_RECORDS);
        // All but one of e⁶ keys come up, and the oldest batches keep next to nothing.
        assert!((9_900..=9_990).contains(&left.records), "{left:?}");
        assert!((600..1_000).contains(&left.batches), "{left:?}");
    }
}
