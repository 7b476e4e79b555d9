//! The file engine over a folder of which one file is hostile: journal, index, snapshot, segment.
//!
//! A small workload makes the folder once, on a disk in memory. Each input replaces the bytes of one
//! of its files; then the engine opens it, everything is read, and something is appended. It may
//! refuse to open, with an error; it may not panic, on any of its threads, hang, or hand out bytes
//! that lie outside of what it says it has.

pub(super) mod index;
pub(super) mod journal;
pub(super) mod segment;
pub(super) mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use strandline_engine_file::disk::{Crash, Disk, OpenMode, TestDisk};
use strandline_engine_file::{FileEngine, FileEngineConfig};
use strandline_model::{
    ByteCount, LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId,
};
use strandline_records::{BatchHeader, SealedBatches, TimestampType};
use strandline_storage::{
    Change, CommitLog, Durability, LogListener, LogSettings, LogStore, MetaBatch, MetaStore,
    Minimum, OpenLog, Opened, ReadLimit, StorageError, Table,
};
use tokio::runtime::Runtime;

use super::{batch, kind_of, magnitude};

/// Records of a batch of the workload, batches of a partition, partitions.
const RECORDS: usize = 3;
const BATCHES: usize = 12;
const PARTITIONS: u32 = 2;

/// When the workload's first batch was made; each later one is a second younger.
const FIRST_MILLIS: i64 = 1_700_000_000_000;

/// How the folder was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// By a clean stop: everything stands in segments and the snapshot.
    Cleanly,
    /// By a power failure: what was acknowledged stands in the journal alone.
    ByAPowerFailure,
}

/// A folder: its files with their bytes.
type Files = Vec<(PathBuf, Vec<u8>)>;

fn files(left: Left) -> &'static Files {
    static CLEAN: OnceLock<Files> = OnceLock::new();
    static CUT: OnceLock<Files> = OnceLock::new();
    let folder = if left == Left::Cleanly { &CLEAN } else { &CUT };
    folder.get_or_init(|| {
        let disk = TestDisk::new();
        let runtime = runtime();
        let left_disk = runtime.block_on(workload(&disk, left));
        let paths = left_disk.paths().into_iter();
        let files = paths.filter_map(|path| left_disk.contents(&path).map(|bytes| (path, bytes)));
        files.filter(|(path, _)| path.as_path() != Path::new("lock")).collect()
    })
}

async fn workload(disk: &TestDisk, left: Left) -> TestDisk {
    let (engine, _) = FileEngine::open(Arc::new(disk.clone()), FileEngineConfig::tiny())
        .expect("an empty folder opens");
    let row = Change::Put(Table::Cluster, Bytes::from_static(b"k"), Bytes::from_static(b"value"));
    let batch = MetaBatch { expectations: Vec::new(), changes: vec![row] };
    engine.commit(batch).await.expect("a row is committed");
    for index in 0..PARTITIONS {
        let opened = open(&engine, partition(index)).await.expect("a new log opens");
        for number in 0..BATCHES {
            append(&opened, number).await.expect("a batch is appended");
            if number == BATCHES / 2 {
                opened
                    .log
                    .save_state(Offset::new(3), Bytes::from_static(b"state"))
                    .await
                    .expect("state is saved");
                opened.log.roll().await.expect("the segment is rolled");
            }
        }
    }
    match left {
        Left::Cleanly => {
            engine.close().await.expect("a clean stop");
            drop(engine);
            disk.after(Crash::KeepAll)
        }
        Left::ByAPowerFailure => disk.after(Crash::DropAll),
    }
}

fn partition(index: u32) -> PartitionId {
    PartitionId { topic_id: TopicId::from_bytes([7; 16]), index: PartitionIndex::new(index) }
}

async fn open(engine: &FileEngine, id: PartitionId) -> Result<Opened, StorageError> {
    let settings = LogSettings {
        segment_bytes: ByteCount::mib(1),
        segment_records: u64::MAX,
        segment_age: Duration::from_hours(1),
        index_interval_bytes: ByteCount::new(1),
        durability: Durability::Commit,
    };
    let listener = Arc::new(Deaf);
    LogStore::open(engine, OpenLog { id, at_least: LeaderEpoch::ZERO, settings, listener }).await
}

/// Nobody waits for what the engine tells.
#[derive(Debug)]
struct Deaf;

impl LogListener for Deaf {
    fn durable_end_moved(&self, _: Offset) {}
    fn died(&self, _: &StorageError) {}
}

/// Appends the `number`th batch; what went wrong, in words.
async fn append(opened: &Opened, number: usize) -> Result<(), String> {
    let at = opened.log.bounds().written_end;
    let now = Timestamp::from_millis(FIRST_MILLIS + 1000 * i64::try_from(number).expect("small"));
    let bytes = batch::built(RECORDS, None);
    let sealed = SealedBatches::seal(bytes, at, opened.epoch, TimestampType::LogAppendTime, now);
    let ticket = opened.log.submit(at, sealed).map_err(|error| format!("{error:?}"))?;
    ticket.await.map_err(|error| format!("{error:?}"))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made")
}

/// Opens the folder with `bytes` in place of those of `changed`, and uses everything in it.
fn try_folder(left: Left, changed: &Path, bytes: &[u8], whole: Whole) -> u64 {
    let disk = TestDisk::new();
    for (path, old) in files(left) {
        write(&disk, path, if path == changed { bytes } else { old });
    }
    let (engine, report) = match FileEngine::open(Arc::new(disk), FileEngineConfig::tiny()) {
        Ok(opened) => opened,
        Err(error) => return kind_of(("refused", error.to_string())),
    };
    let kind = runtime().block_on(use_engine(&engine, whole));
    drop(engine);
    let counts = [report.batches_replayed, report.torn_groups, report.batches_cut];
    kind ^ kind_of((report.started, counts.map(|n| magnitude(usize::try_from(n).unwrap_or(0)))))
}

/// Whether everything that was acknowledged must still be there: it must when only derived data was
/// damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Required,
    NotRequired,
}

fn write(disk: &TestDisk, path: &Path, bytes: &[u8]) {
    let parents: Vec<&Path> = path.ancestors().skip(1).collect();
    for folder in parents.into_iter().rev().filter(|folder| *folder != Path::new("")) {
        disk.create_dir(folder).expect("a folder is made");
    }
    let file = disk.open(path, OpenMode::New).expect("a file is made");
    file.write_at(0, &[bytes]).expect("it is written");
}

async fn use_engine(engine: &FileEngine, whole: Whole) -> u64 {
    let mut kinds = Vec::new();
    for table in Table::ALL {
        let rows = engine.scan(table, None, 100).await.map(|page| magnitude(page.rows.len()));
        kinds.push(format!("{rows:?}"));
    }
    for index in 0..PARTITIONS {
        let id = partition(index);
        let found = engine.verify(id).await.map(|findings| findings.len());
        kinds.push(format!("{:?}", found.map(magnitude)));
        match open(engine, id).await {
            Ok(opened) => kinds.push(use_log(&opened, whole).await),
            Err(error) => {
                assert!(whole == Whole::NotRequired, "partition {index}: {error:?}");
                kinds.push(format!("{error:?}"));
            }
        }
    }
    kinds.push(format!("{:?}", engine.close().await.is_ok()));
    kind_of(kinds)
}

async fn use_log(opened: &Opened, whole: Whole) -> String {
    let log = &*opened.log;
    let bounds = log.bounds();
    assert!(bounds.log_start <= bounds.durable_end, "{bounds:?}");
    assert!(bounds.durable_end <= bounds.written_end, "{bounds:?}");
    let records = i64::try_from(RECORDS * BATCHES).expect("small");
    if whole == Whole::Required {
        assert_eq!((bounds.log_start.get(), bounds.durable_end.get()), (0, records));
    }
    let mut kinds = Vec::new();
    for from in [0, 1, 4, records / 2, records - 1, records, records + 5] {
        kinds.push(read(log, Offset::new(from), whole).await);
    }
    for number in [0, 3, BATCHES - 1, BATCHES] {
        kinds.push(find(log, number, whole).await);
    }
    kinds.push(format!("{:?}", log.load_state().await.map(|state| state.is_some())));
    kinds.push(format!("{:?}", append(opened, BATCHES).await));
    kinds.push(format!("{:?}", log.trim(Offset::new(5)).await.is_ok()));
    format!("{kinds:?}")
}

async fn read(log: &dyn CommitLog, from: Offset, whole: Whole) -> String {
    let end = log.bounds().durable_end;
    let limit = ReadLimit { bytes: ByteCount::kib(64), minimum: Minimum::OneBatch };
    let bytes = match log.read(from, end, limit).await {
        Ok(bytes) => bytes.read_to_memory(),
        Err(error) => {
            assert!(whole == Whole::NotRequired || from > end, "read at {from:?}: {error:?}");
            return format!("{error:?}");
        }
    };
    let Ok(bytes) = bytes else { return "unreadable".to_owned() };
    if whole == Whole::Required && from < end {
        let first = BatchHeader::parse(&bytes).expect("a batch is there");
        assert!(first.base_offset <= from && from < first.next_offset, "{first:?} for {from:?}");
    }
    magnitude(bytes.len())
}

/// Finds the `number`th batch by its time.
async fn find(log: &dyn CommitLog, number: usize, whole: Whole) -> String {
    let expected = Some(number * RECORDS).filter(|_| number < BATCHES);
    let number = i64::try_from(number).expect("small");
    let found = log.find_timestamp(Timestamp::from_millis(FIRST_MILLIS + 1000 * number)).await;
    if whole == Whole::Required {
        let base = found.as_ref().map(|batch| batch.map(|batch| batch.base_offset.get()));
        let expected = expected.map(|base| i64::try_from(base).expect("small"));
        assert_eq!(base.ok(), Some(expected), "the batch of second {number}");
    }
    format!("{:?}", found.map(|batch| batch.is_some()))
}
