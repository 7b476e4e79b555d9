//! What is the memory engine's own: its bounds. The rest is the conformance suite's.

use bytes::BytesMut;
use std::sync::Arc;
use std::time::Duration;

use strandline_model::{
    ByteCount, LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId,
};
use strandline_records::{SealedBatches, TimestampType, crc32c};

use super::{MemoryEngine, MemoryOptions};
use crate::{
    AppendError, CommitError, CommitLog, Durability, ErrorKind, LogListener, LogSettings, LogStore,
    MetaBatch, MetaStore, OpenLog, Opened, StorageError, Table,
};

#[derive(Debug)]
struct Deaf;

impl LogListener for Deaf {
    fn durable_end_moved(&self, _end: Offset) {}
    fn died(&self, _error: &StorageError) {}
}

const ID: PartitionId = PartitionId::new(TopicId::from_bytes([7; 16]), PartitionIndex::new(0));

fn engine(options: MemoryOptions) -> MemoryEngine {
    MemoryEngine::new(options, |task| drop(tokio::spawn(task)))
}

async fn open(engine: &MemoryEngine) -> Opened {
    let settings = LogSettings {
        segment_bytes: ByteCount::kib(16),
        segment_records: u64::MAX,
        segment_age: Duration::from_hours(1),
        index_interval_bytes: ByteCount::kib(4),
        durability: Durability::Commit,
    };
    let listener = Arc::new(Deaf);
    engine
        .open(OpenLog { id: ID, at_least: LeaderEpoch::ZERO, settings, listener })
        .await
        .expect("memory opens")
}

/// One batch of one record at `at` that is `size` bytes long.
fn batch(at: Offset, size: usize) -> SealedBatches {
    let mut bytes = BytesMut::zeroed(size);
    let length = i32::try_from(size - 12).expect("small");
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = 2;
    bytes[57..61].copy_from_slice(&1_i32.to_be_bytes());
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let now = Timestamp::from_millis(1);
    SealedBatches::seal(bytes, at, LeaderEpoch::ZERO, TimestampType::CreateTime, now)
}

/// Appends until the log refuses; returns the refusal.
async fn fill(log: &Arc<dyn CommitLog>, size: usize) -> AppendError {
    loop {
        let at = log.bounds().written_end;
        match log.submit(at, batch(at, size)) {
            Ok(ticket) => ticket.await.expect("memory keeps what it took"),
            Err(error) => return error,
        }
    }
}

fn is_full(error: &AppendError) -> bool {
    matches!(error, AppendError::Refused(error) if error.kind() == ErrorKind::Full)
}

#[tokio::test]
async fn appends_stop_at_the_reserve_and_go_on_after_a_trim() {
    let engine = engine(MemoryOptions::with_capacity(ByteCount::kib(160)));
    let log = open(&engine).await.log;
    assert!(is_full(&fill(&log, 1024).await));
    let space = engine.space();
    let free = space.free.expect("memory knows its bound");
    assert!(free >= space.reserve && free < space.reserve + ByteCount::kib(2), "{space:?}");

    let end = log.bounds().durable_end;
    log.trim(end).await.expect("trimming works when memory is full");
    assert_eq!(engine.space().used, ByteCount::ZERO);
    log.submit(end, batch(end, 1024)).expect("space is back").await.expect("kept");
}

#[tokio::test]
async fn rows_use_the_reserve_and_deleting_them_always_works() {
    let engine = engine(MemoryOptions::with_capacity(ByteCount::kib(64)));
    let log = open(&engine).await.log;
    assert!(is_full(&fill(&log, 100).await));

    let mut kept = 0_u32;
    let refused = loop {
        let key = kept.to_be_bytes().to_vec();
        match engine.commit(MetaBatch::new().put(Table::Topics, key, vec![0; 200])).await {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, CommitError::Storage(error) if error.kind() == ErrorKind::Full));
    assert!(kept > 0, "rows may use the reserve");

    // A deletion moves a row: it needs no more than it frees.
    let key = 0_u32.to_be_bytes().to_vec();
    let moved = MetaBatch::new().delete(Table::Topics, key.clone()).put(
        Table::Deletions,
        key,
        vec![0; 200],
    );
    engine.commit(moved).await.expect("deleting works when memory is full");
}

#[tokio::test]
async fn removal_gives_all_space_back() {
    let engine = engine(MemoryOptions::with_capacity(ByteCount::kib(64)));
    let log = open(&engine).await.log;
    assert!(is_full(&fill(&log, 300).await));
    log.save_state(Offset::ZERO, vec![1; 100].into()).await.expect("the reserve has room");
    let mut steps = 0;
    while engine.remove_some(ID, ByteCount::kib(4)).await.expect("removes") != crate::Removal::Done
    {
        steps += 1;
    }
    assert!((14..=18).contains(&steps), "about 60 KiB go in steps of 4 KiB: {steps}");
    assert_eq!(engine.space().used, ByteCount::ZERO);
}

#[tokio::test]
async fn a_full_queue_says_busy_until_the_task_ran() {
    let options =
        MemoryOptions { pending_appends_max: 2, ..MemoryOptions::with_capacity(ByteCount::mib(1)) };
    let engine = engine(options);
    let log = open(&engine).await.log;
    let submit = |at| log.submit(Offset::new(at), batch(Offset::new(at), 100));
    // The task can't run before this one waits: the runtime has a single thread.
    let first = submit(0).expect("the first place");
    let second = submit(1).expect("the second place");
    assert!(matches!(submit(2), Err(AppendError::Busy)));
    assert_eq!(log.bounds().written_end, Offset::new(2), "a refused append wrote nothing");
    log.ready().await;
    let third = submit(2).expect("room again");
    for ticket in [first, second, third] {
        ticket.await.expect("kept");
    }
}

#[tokio::test]
async fn a_chunk_holds_a_bounded_number_of_batches() {
    let engine = engine(MemoryOptions::with_capacity(ByteCount::mib(16)));
    let log = open(&engine).await.log;
    let huge = LogSettings {
        segment_bytes: ByteCount::gib(1),
        segment_records: u64::MAX,
        segment_age: Duration::MAX,
        index_interval_bytes: ByteCount::kib(4),
        durability: Durability::Never,
    };
    log.configure(huge);
    for at in (0..20_000).map(Offset::new) {
        log.submit(at, batch(at, 80)).expect("room").await.expect("kept");
    }
    assert_eq!(log.chunks().len(), 2);
}

#[tokio::test]
async fn logs_begin_where_they_are_told_to() {
    let engine = engine(MemoryOptions::with_capacity(ByteCount::mib(1)));
    engine.begin_logs_at(Offset::new(5000));
    let log = open(&engine).await.log;
    let bounds = log.bounds();
    assert_eq!((bounds.log_start.get(), bounds.written_end.get()), (5000, 5000));
    let refused = log.submit(Offset::ZERO, batch(Offset::ZERO, 100));
    assert!(matches!(refused, Err(AppendError::Moved { .. })), "{refused:?}");
    log.submit(Offset::new(5000), batch(Offset::new(5000), 100)).unwrap().await.unwrap();
    assert_eq!(log.bounds().durable_end, Offset::new(5001));
    assert_eq!(log.chunks()[0].base_offset, Offset::new(5000));
}
