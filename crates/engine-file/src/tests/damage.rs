//! A log that a start finds damaged stays closed; the others go on, and nothing of it is lost.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{ByteCount, Offset};
use strandline_records::batches;
use strandline_storage::testkit::{
    Appended, Recorder, TestBatch, open_request, partition, settings,
};
use strandline_storage::{
    ErrorKind, Found, LogSettings, LogStore, Minimum, ReadError, ReadLimit, Removal,
};
use tokio::sync::oneshot;

use super::Running;
use crate::disk::{Crash, Disk, Fault, OpenMode, Persisted, Replay, TestDisk};
use crate::journal::BLOCK_BYTES;
use crate::queue::{Item, PendingChange, RowChange, Wait};
use crate::segment::SegmentFacts;
use crate::tables;
use crate::{FileEngineConfig, OpenError};

const SEGMENT: &str = "/0/00000000000000000000.log";

pub(super) fn config() -> FileEngineConfig {
    FileEngineConfig {
        journal_first_file: ByteCount::new(64 * BLOCK_BYTES),
        direct_min: ByteCount::new(1000),
        ..FileEngineConfig::tiny()
    }
}

fn large(records: u32) -> TestBatch {
    TestBatch::of(records).value_bytes(2000)
}

pub(super) fn path_of(disk: &TestDisk, end: &str) -> Option<PathBuf> {
    disk.paths().into_iter().find(|path| path.to_string_lossy().ends_with(end))
}

/// A folder whose process died: what a checkpoint had of two logs, and what came after it.
pub(super) struct Folder {
    pub(super) disk: TestDisk,
    /// Of the first log, up to the checkpoint.
    pub(super) before: Vec<Appended>,
    /// The same since then.
    pub(super) since: Vec<Appended>,
    /// Of the second one, all.
    pub(super) other: Vec<Appended>,
}

pub(super) async fn folder() -> Folder {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let (hit, sound) = (running.open(0).await, running.open(1).await);
    let before = hit.append_some(3).await;
    let mut other = sound.append_some(2).await;
    running.checkpoint().await;
    let mut since = hit.append_some(2).await;
    since.push(hit.append(large(2)).await);
    other.extend(sound.append_some(3).await);
    since.extend(hit.append_some(2).await);
    Folder { disk: disk.after(Crash::DropAll), before, since, other }
}

fn open_segment(disk: &TestDisk) -> Arc<dyn crate::disk::DiskFile> {
    disk.open(&path_of(disk, SEGMENT).unwrap(), OpenMode::Existing).unwrap()
}

/// The ways in which a log's files can fail to be what rows and journal say; what is said of each, and
/// how many of the appends since the checkpoint are gone.
pub(super) type Harm = (&'static str, fn(&TestDisk), usize);

pub(super) const HARMS: [Harm; 6] = [
    ("is missing", |disk| disk.remove_file(&path_of(disk, SEGMENT).unwrap()).unwrap(), 1),
    ("shorter", |disk| open_segment(disk).set_len(100).unwrap(), 1),
    ("is not in its segment", |disk| write_in_large(disk, b"?"), 1),
    (
        "is not in its segment",
        |disk| {
            let file = open_segment(disk);
            file.set_len(file.size().unwrap() - 700).unwrap();
        },
        1,
    ),
    ("is missing", remove_folder, 1),
    // A bad sector below what was written directly.
    (
        "os error 5",
        |disk| {
            let end = open_segment(disk).size().unwrap();
            disk.spoil(SEGMENT, end - 700..end - 699);
        },
        1,
    ),
];

/// Changes a byte of what was written directly: the last that is in the segment after a crash.
fn write_in_large(disk: &TestDisk, bytes: &[u8]) {
    let file = open_segment(disk);
    file.write_at(file.size().unwrap() - 700, &[bytes]).unwrap();
}

fn remove_folder(disk: &TestDisk) {
    let folder = path_of(disk, SEGMENT).unwrap().parent().unwrap().to_owned();
    for path in disk.paths().into_iter().filter(|path| path.parent() == Some(&*folder)) {
        disk.remove_file(&path).unwrap();
    }
    disk.remove_dir(&folder).unwrap();
}

fn rescued(disk: &TestDisk) -> Vec<u8> {
    path_of(disk, ".rescued").map_or_else(Vec::new, |path| disk.contents(path).unwrap())
}

fn bytes_of<'a>(appended: impl IntoIterator<Item = &'a Appended>) -> Vec<u8> {
    appended.into_iter().flat_map(|one| one.bytes.to_vec()).collect()
}

async fn assert_closed(running: &Running, reason: &str) {
    let refused = running.file.open(open_request(0, &Arc::new(Recorder::default()))).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert!(refused.to_string().contains(reason), "{refused}");
    let [damaged] = &running.report.damaged[..] else { panic!("{:?}", running.report) };
    assert_eq!(damaged.id, partition(0));
    assert!(damaged.reason.contains(reason), "{}", damaged.reason);
    assert!(running.report.to_string().ends_with("; 1 damaged partition stays closed"));
    let findings = running.file.verify(partition(0)).await.unwrap();
    assert!(findings[0].message.contains(reason), "{findings:?}");
    assert!(running.file.list().await.unwrap().contains(&partition(0)));
}

#[tokio::test]
async fn a_damaged_log_stays_closed_and_keeps_what_the_journal_had() {
    for (reason, harm, lost) in HARMS {
        let Folder { disk, since, mut other, .. } = folder().await;
        harm(&disk);
        let running = Running::with(&disk, config());
        assert_closed(&running, reason).await;
        let kept: Vec<_> = since.iter().filter(|one| one.bytes.len() < 1000).collect();
        assert_eq!(kept.len() + lost, since.len(), "the large one stands in the segment alone");
        assert_eq!(rescued(&disk), bytes_of(kept.iter().copied()));
        assert!(batches(&rescued(&disk)).all(|batch| batch.unwrap().check_crc().is_ok()));

        // The journal is used again, and the log stays as it is.
        let sound = running.open(1).await;
        sound.assert_holds(&other).await;
        for _ in 0..60 {
            other.push(sound.append(TestBatch::of(1).value_bytes(5000)).await);
            running.checkpoint().await;
        }
        for crash in [Crash::DropAll, Crash::Torn(3)] {
            let disk = running.disk.after(crash);
            let again = Running::with(&disk, config());
            assert_closed(&again, reason).await;
            again.open(1).await.assert_holds(&other).await;
            assert_eq!(rescued(&disk), bytes_of(kept.iter().copied()));
        }
        let disk = running.close().await;
        let running = Running::with(&disk, config());
        assert_closed(&running, reason).await;
        assert_eq!(rescued(&disk), bytes_of(kept.iter().copied()));
    }
}

#[tokio::test]
async fn the_removal_of_a_damaged_log_leaves_nothing() {
    for (_, harm, _) in HARMS {
        let Folder { disk, .. } = folder().await;
        harm(&disk);
        let running = Running::with(&disk, config());
        let mut steps = 0;
        while running.file.remove_some(partition(0), ByteCount::new(1)).await.unwrap()
            != Removal::Done
        {
            steps += 1;
        }
        assert!(steps < 1000, "{steps}");
        assert_eq!(path_of(&disk, ".rescued"), None);
        assert_eq!(running.file.list().await.unwrap(), [partition(1)]);
        assert_eq!(running.open(0).await.found, Found::Created);
        let disk = running.close().await;
        let running = Running::with(&disk, config());
        assert_eq!(running.report.damaged, []);
        running.open(0).await.append(TestBatch::of(1)).await;
    }
}

/// What the journal has goes beside a segment that the disk takes nothing for any more.
#[tokio::test]
async fn a_disk_that_fails_under_one_segment_at_start_costs_its_log_only() {
    let faults = [
        Fault::Write { kind: io::ErrorKind::Other, written: 5 },
        Fault::Sync { persisted: Persisted::Nothing },
        Fault::Sync { persisted: Persisted::Torn(2) },
    ];
    for fault in faults {
        let Folder { disk, since, other, .. } = folder().await;
        disk.inject(SEGMENT, 0, fault);
        let running = Running::with(&disk, config());
        assert_closed(&running, "os error 5").await;
        assert_eq!(rescued(&disk), bytes_of(&since), "{fault:?}");
        running.open(1).await.assert_holds(&other).await;
        for crash in [Crash::DropAll, Crash::Torn(1)] {
            let left = disk.after(crash);
            let again = Running::with(&left, config());
            assert_closed(&again, "os error 5").await;
            assert_eq!(rescued(&left), bytes_of(&since), "{fault:?}");
            again.open(1).await.assert_holds(&other).await;
        }
    }
}

/// Rights, open files, memory: what the next start may have again is no damage.
#[tokio::test]
async fn an_error_that_may_pass_refuses_the_folder_and_changes_nothing() {
    let Folder { disk, since, other, .. } = folder().await;
    disk.inject(SEGMENT, 0, Fault::Open { kind: io::ErrorKind::PermissionDenied });
    let before = disk.paths();
    let refused = Running::try_with(&disk, config()).err().unwrap();
    assert!(matches!(refused, OpenError::Storage(_)), "{refused}");
    assert_eq!(disk.paths(), before);
    let running = Running::with(&disk, config());
    assert_eq!(running.report.damaged, []);
    assert!(running.open(0).await.read_all(since[0].offsets.start).await == bytes_of(&since));
    running.open(1).await.assert_holds(&other).await;
}

/// A log without entries in the journal is not looked at: its bad sector costs what lies there.
#[tokio::test]
async fn a_bad_sector_costs_the_reads_that_meet_it() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let hit = running.open(0).await;
    hit.log.configure(LogSettings { segment_bytes: ByteCount::kib(2), ..settings() });
    let kept = [hit.append(large(1)).await, hit.append(large(1)).await, hit.append(large(1)).await];
    drop(hit);
    let disk = running.close().await;
    disk.spoil("/0/00000000000000000001.log", 0..1);
    let running = Running::with(&disk, config());
    assert_eq!(running.report.damaged, []);
    let hit = running.open(0).await;
    let limit = ReadLimit { bytes: ByteCount::new(1), minimum: Minimum::OneBatch };
    let end = hit.log.bounds().durable_end;
    for (index, one) in kept.iter().enumerate() {
        let read = hit.log.read(one.offsets.start, end, limit).await;
        if index == 1 {
            let Err(ReadError::Storage(error)) = read else { panic!("{read:?}") };
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        } else {
            assert!(read.unwrap().read_to_memory().unwrap() == one.bytes);
        }
    }
    hit.append(TestBatch::of(1)).await;
    let findings = running.file.verify(partition(0)).await.unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].message.contains("os error 5"), "{findings:?}");
}

/// Recovery is begun again until it has ended once; what it rescues is the same each time.
#[tokio::test]
async fn a_crash_while_a_log_is_rescued_loses_nothing() {
    let Folder { disk, since, other, .. } = folder().await;
    write_in_large(&disk, b"?");
    let damaged = disk.after(Crash::KeepAll);
    let kept = bytes_of(since.iter().filter(|one| one.bytes.len() < 1000));
    drop(Running::with(&damaged, config()));
    let mut replay = Replay::of(&damaged);
    let mut steps = 0;
    while replay.step().is_some() {
        steps += 1;
        let seed = replay.done() as u64;
        for image in
            [replay.after(Crash::DropAll), replay.after(Crash::Torn(seed)), replay.after_death()]
        {
            let running = Running::with(&image, config());
            assert_closed(&running, "is not in its segment").await;
            assert_eq!(rescued(&image), kept);
            running.open(1).await.assert_holds(&other).await;
            // What is served is durable, and so is what is not.
            let image = image.after(Crash::DropAll);
            assert_eq!(rescued(&image), kept);
            assert_closed(&Running::with(&image, config()), "is not in its segment").await;
        }
    }
    assert!(steps > 5, "a recovery does something");
}

/// Rows and journal that contradict each other are of no crash; they stand for a mistake of ours.
#[tokio::test]
async fn entries_that_overlap_what_the_rows_have_cost_their_log_only() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let (hit, sound) = (running.open(0).await, running.open(1).await);
    hit.append(TestBatch::of(3)).await;
    running.checkpoint().await;
    let wrong = SegmentFacts { next_offset: Offset::new(5), ..hit_facts(&running) };
    put_segment(&running, &wrong).await;
    // With what was written directly, as far as it is there.
    let kept = [
        hit.append(TestBatch::of(6)).await,
        hit.append(large(1)).await,
        hit.append(TestBatch::of(1)).await,
    ];
    let other = [sound.append(TestBatch::of(1)).await];
    let disk = disk.after(Crash::DropAll);
    let running = Running::with(&disk, config());
    assert_closed(&running, "overlaps").await;
    assert_eq!(rescued(&disk), bytes_of(&kept));
    running.open(1).await.assert_holds(&other).await;

    // A segment that ends elsewhere than the next entry is placed.
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let hit = running.open(0).await;
    hit.append_some(2).await;
    running.checkpoint().await;
    let facts = hit_facts(&running);
    put_segment(&running, &SegmentFacts { bytes: facts.bytes - 1, ..facts }).await;
    let kept = [hit.append(TestBatch::of(6)).await];
    let disk = disk.after(Crash::DropAll);
    let running = Running::with(&disk, config());
    assert_closed(&running, "does not follow").await;
    assert_eq!(rescued(&disk), bytes_of(&kept));
}

fn hit_facts(running: &Running) -> SegmentFacts {
    running.file.shared.rows.read().segments(partition(0))[0]
}

async fn put_segment(running: &Running, facts: &SegmentFacts) {
    let (done, answer) = oneshot::channel();
    let key = Bytes::copy_from_slice(&tables::segment_key(partition(0), facts.base_offset));
    let value = Some(tables::segment_value(facts));
    let change = PendingChange {
        expectations: Vec::new(),
        changes: vec![RowChange { table: tables::SEGMENTS, key, value }],
        wait: Wait::Sync,
        log: None,
        trim: None,
        rewritten: None,
        done,
    };
    running.file.shared.queue.push(Item::Change(change)).unwrap();
    answer.await.unwrap().unwrap();
}

/// What was taken back, or trimmed, is not brought back as a file either.
#[tokio::test]
async fn what_was_taken_back_is_not_rescued() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let hit = running.open(0).await;
    hit.append(TestBatch::of(3)).await;
    disk.inject(SEGMENT, 0, Fault::Write { kind: io::ErrorKind::Other, written: 0 });
    let (_, failed) = hit.submit(TestBatch::of(6)).await;
    failed.await.unwrap_err();
    let again = running.open(0).await;
    again.append(TestBatch::of(1)).await;
    again.log.roll().await.unwrap();
    again.log.trim(Offset::new(4)).await.unwrap();
    let kept = [again.append(TestBatch::of(2)).await, again.append(large(1)).await];
    let disk = disk.after(Crash::DropAll);
    let name = "/0/00000000000000000004.log";
    disk.remove_file(Path::new(&path_of(&disk, name).unwrap())).unwrap();
    let running = Running::with(&disk, config());
    assert_closed(&running, "is not in its segment").await;
    assert_eq!(rescued(&disk), bytes_of(&kept[..1]));
}
