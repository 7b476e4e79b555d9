use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use strandline_model::{
    ByteCount, LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId,
};
use strandline_records::{BatchBuilder, BatchHeader, NewRecord, SealedBatches, TimestampType};
use strandline_storage::{Durability, LogSettings, Minimum, ReadLimit, StorageError};

use super::{Append, SegmentFacts, SegmentLog, SegmentOptions, SegmentStore};
use crate::disk::{Disk, TestDisk};

mod append;
mod index;
mod property;
mod recovery;
mod removal;
mod replace;
mod sync;

/// One sealed batch of `records_count` records that begins at `at`, with values of `value_bytes`.
pub(super) fn batch(at: i64, records_count: i64, value_bytes: usize, now: i64) -> SealedBatches {
    stamped(at, records_count, value_bytes, now, Some(now))
}

/// The same, with a timestamp of its own.
fn stamped(
    at: i64,
    records_count: i64,
    value_bytes: usize,
    now: i64,
    timestamp: Option<i64>,
) -> SealedBatches {
    let mut builder = BatchBuilder::new();
    let value = vec![b'v'; value_bytes];
    let timestamp = timestamp.map(Timestamp::from_millis);
    for _ in 0..records_count {
        builder.push(NewRecord { timestamp, value: Some(&value), ..NewRecord::default() });
    }
    SealedBatches::seal(
        BytesMut::from(&builder.build()[..]),
        Offset::new(at),
        LeaderEpoch::ZERO,
        TimestampType::CreateTime,
        Timestamp::from_millis(now),
    )
}

fn partition(index: u32) -> PartitionId {
    PartitionId::new(TopicId::from_bytes([7; 16]), PartitionIndex::new(index))
}

/// Small enough that a few batches make several segments and index entries.
fn settings() -> LogSettings {
    LogSettings {
        segment_bytes: ByteCount::new(1000),
        segment_records: u64::MAX,
        segment_age: Duration::from_hours(1),
        index_interval_bytes: ByteCount::new(100),
        durability: Durability::Commit,
    }
}

fn options() -> SegmentOptions {
    SegmentOptions {
        open_files_max: 4,
        cache_window: ByteCount::new(500),
        removal_step: ByteCount::new(128),
        walk_bytes: 100,
        index_save_entries: 1,
    }
}

fn store_on(disk: &TestDisk) -> Arc<SegmentStore> {
    SegmentStore::new(Arc::new(disk.clone()) as Arc<dyn Disk>, options())
}

fn open_empty(store: &Arc<SegmentStore>) -> SegmentLog {
    store.open(partition(0), Vec::new(), Offset::ZERO, settings()).unwrap()
}

/// Opens a log anew with what `log` would have the engine remember.
fn reopen(store: &Arc<SegmentStore>, log: &SegmentLog) -> SegmentLog {
    store.open(log.id(), log.facts(), log.written_end(), settings()).unwrap()
}

/// Places and writes, one after another.
fn append(log: &SegmentLog, batches: &[SealedBatches]) {
    for batches in batches {
        let place = log.place(batches).unwrap();
        log.write(&[Append { place, batches }]).unwrap();
    }
}

/// Batches of one record each, `count` of them from `at` on.
fn singles(at: i64, count: i64) -> Vec<SealedBatches> {
    (at..at + count).map(|offset| batch(offset, 1, 30, offset)).collect()
}

fn limit(bytes: u64, minimum: Minimum) -> ReadLimit {
    ReadLimit { bytes: ByteCount::new(bytes), minimum }
}

/// Everything from `from` on, however many reads that takes.
fn read_all(log: &SegmentLog, from: i64) -> Vec<u8> {
    let mut all = Vec::new();
    let mut from = Offset::new(from);
    let end = log.written_end();
    while from < end {
        let read = log.read(from, end, limit(1 << 20, Minimum::OneBatch)).unwrap();
        let bytes = read.read_to_memory().unwrap();
        assert!(!bytes.is_empty(), "a read below the end gets on");
        let last = strandline_records::batches(&bytes).map(Result::unwrap).last().unwrap();
        from = last.next_offset().unwrap();
        all.extend(bytes);
    }
    all
}

fn bytes_of(batches: &[SealedBatches]) -> Vec<u8> {
    batches.iter().flat_map(|batches| batches.bytes().to_vec()).collect()
}

/// The header of the batch that holds `offset`, or of the next one, found as a read finds it.
fn find_offset(log: &SegmentLog, offset: i64) -> Result<BatchHeader, StorageError> {
    let offset = Offset::new(offset);
    let segment = log.segments_between(offset, log.written_end(), 1).pop().unwrap();
    let position = segment.locate(log.search(), offset)?;
    Ok(segment.header_at(log.search(), position)?.unwrap())
}
