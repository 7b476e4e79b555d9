//! Segments whose sync fails: a copy takes their place, and only their log notices.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::{ByteCount, LeaderEpoch, Offset};
use strandline_storage::testkit::{Appended, TestBatch, open_request, partition, settings};
use strandline_storage::{
    ErrorKind, Found, LogSettings, LogStore, MetaBatch, MetaStore, Removal, StorageError, Table,
};

use super::Running;
use crate::FileEngineConfig;
use crate::disk::{Crash, Disk, Fault, OpenMode, Operation, Persisted, Replay, TestDisk};
use crate::journal::BLOCK_BYTES;
use crate::queue::StopMark;

const SEGMENT: &str = "/0/00000000000000000000.log";
const LOST: Fault = Fault::Sync { persisted: Persisted::Nothing };

/// What the owner of the engine hears.
type Heard = Arc<Mutex<Vec<String>>>;

fn heard() -> (Heard, FileEngineConfig) {
    let heard = Heard::default();
    let told = Arc::clone(&heard);
    let on_fatal = Arc::new(move |error: &StorageError| {
        told.lock().push(error.to_string());
    });
    let config = FileEngineConfig {
        journal_first_file: ByteCount::new(64 * BLOCK_BYTES),
        direct_min: ByteCount::new(1000),
        on_fatal,
        ..FileEngineConfig::tiny()
    };
    (heard, config)
}

fn large(records: u32) -> TestBatch {
    TestBatch::of(records).value_bytes(2000)
}

fn segment_path(disk: &TestDisk) -> PathBuf {
    let named = |path: &PathBuf| path.to_string_lossy().ends_with(SEGMENT);
    disk.paths().into_iter().find(named).expect("the segment is there")
}

fn assert_no_logs(disk: &TestDisk) {
    let is_topic = |path: &PathBuf| path.parent() == Some(Path::new("logs"));
    assert!(!disk.paths().iter().any(is_topic), "{:?}", disk.paths());
}

async fn assert_kept(disk: &TestDisk, kept: &[Appended]) {
    for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(1), Crash::Torn(2)] {
        let recovered = Running::with(&disk.after(crash), heard().1);
        recovered.open(0).await.assert_holds(kept).await;
    }
}

#[tokio::test]
async fn a_segment_that_a_checkpoint_cannot_sync_costs_its_log_the_handle() {
    for persisted in [Persisted::Nothing, Persisted::Torn(3), Persisted::Torn(4)] {
        let disk = TestDisk::new();
        let (fatal, config) = heard();
        let running = Running::with(&disk, config);
        let (hit, other) = (running.open(0).await, running.open(1).await);
        // Some of it durable since an earlier checkpoint, some written directly.
        let mut kept = hit.append_some(3).await;
        running.checkpoint().await;
        kept.push(hit.append(large(2)).await);
        kept.extend(hit.append_some(3).await);
        let other_kept = other.append_some(2).await;
        disk.inject(SEGMENT, 0, Fault::Sync { persisted });
        running.checkpoint().await;
        hit.heard.death().await;
        assert_kept(&disk, &kept).await;

        other.assert_holds(&other_kept).await;
        other.append(TestBatch::of(1)).await;
        let again = running.open(0).await;
        assert_eq!((again.found, again.epoch), (Found::Unclean, LeaderEpoch::new(1)));
        again.assert_holds(&kept).await;
        assert_eq!(running.file.verify(partition(0)).await.unwrap(), []);
        kept.push(again.append(TestBatch::of(2)).await);
        kept.push(again.append(large(1)).await);
        assert_kept(&disk, &kept).await;
        // The copy is synced as any file.
        running.checkpoint().await;
        assert_kept(&disk, &kept).await;
        assert_eq!(*fatal.lock(), [] as [String; 0]);
        Running::on(&running.close().await).open(0).await.assert_holds(&kept).await;
    }
}

#[tokio::test]
async fn a_segment_that_a_large_append_cannot_sync_costs_its_log_the_handle() {
    let disk = TestDisk::new();
    let (fatal, config) = heard();
    let running = Running::with(&disk, config);
    let (hit, other) = (running.open(0).await, running.open(1).await);
    let mut kept = vec![hit.append(large(2)).await, hit.append(TestBatch::of(1)).await];
    disk.inject(SEGMENT, 0, Fault::Sync { persisted: Persisted::Torn(5) });
    let (_, failed) = hit.submit(large(1)).await;
    let (_, other_ticket) = other.submit(large(1)).await;
    failed.await.unwrap_err();
    other_ticket.await.unwrap();
    hit.heard.death().await;
    assert_kept(&disk, &kept).await;
    // Waits for the copy.
    let again = running.open(0).await;
    assert!(!running.file.shared.unsound.contains(partition(0)));
    kept.push(again.append(large(1)).await);
    again.assert_holds(&kept).await;
    assert_kept(&disk, &kept).await;
    assert_eq!(*fatal.lock(), [] as [String; 0]);
}

#[tokio::test]
async fn a_closed_log_is_replaced_too_and_a_removed_one_need_not_be() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, heard().1);
    let mut kept = running.open(0).await.append_some(3).await;
    disk.inject(SEGMENT, 0, LOST);
    running.checkpoint().await;
    assert_kept(&disk, &kept).await;
    running.open(0).await.assert_holds(&kept).await;

    // By the checkpoint of a clean stop.
    kept.extend(running.open(0).await.append_some(2).await);
    disk.inject(SEGMENT, 0, LOST);
    let running = Running::with(&running.close().await, heard().1);
    assert_kept(&disk, &kept).await;
    running.open(0).await.assert_holds(&kept).await;

    // A large append meets the failure when the removal has begun, which is not known to it.
    let hit = running.open(0).await;
    for _ in 0..4 {
        hit.append(large(4)).await;
    }
    drop(hit);
    let step = running.file.remove_some(partition(0), ByteCount::new(1)).await.unwrap();
    assert!(matches!(step, Removal::Remaining(_)), "{step:?}");
    let error = StorageError::new(ErrorKind::Unavailable, "sync segment");
    running.file.shared.unsound.mark(partition(0), Offset::ZERO, &error, None);
    let (failed, copies) = (failed_syncs(&disk), copies(&disk));
    assert_eq!((failed, copies), (2, 2), "each of those above failed once, and has its copy");
    running.checkpoint().await;
    assert!(!running.file.shared.unsound.contains(partition(0)));
    while running.file.remove_some(partition(0), ByteCount::new(1)).await.unwrap() != Removal::Done
    {
    }
    assert_eq!(self::copies(&disk), copies, "nobody needs it");
    assert_no_logs(&disk);
}

/// Syncs of files that failed.
fn failed_syncs(disk: &TestDisk) -> usize {
    count(disk, |operation| matches!(operation, Operation::SyncFailed { .. }))
}

/// Copies of segments that were begun.
fn copies(disk: &TestDisk) -> usize {
    count(
        disk,
        |operation| matches!(operation, Operation::Create { path, .. } if path.to_string_lossy().ends_with(".log.new")),
    )
}

fn count(disk: &TestDisk, is_counted: impl Fn(&Operation) -> bool) -> usize {
    let mut replay = Replay::of(disk);
    std::iter::from_fn(|| replay.step()).filter(is_counted).count()
}

/// Names can't be made durable by a copy: the next start writes what they name again.
#[tokio::test]
async fn a_folder_that_cannot_be_synced_ends_the_engine_though_all_segments_are() {
    let disk = TestDisk::new();
    let (fatal, config) = heard();
    let running = Running::with(&disk, config);
    let kept = running.open(0).await.append_some(4).await;
    disk.inject("/0", 0, Fault::SyncDir);
    running.file.shared.checkpoints.done(StopMark::Running).await.unwrap_err();
    assert_eq!((failed_syncs(&disk), copies(&disk)), (0, 0));
    let told = fatal.lock().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_kept(&disk, &kept).await;
}

/// A full disk is what lets syncs fail on some systems: the log waits for room, the others go on, and
/// what makes room goes on too.
#[tokio::test]
async fn a_copy_waits_for_room_and_its_log_with_it() {
    for by_the_write in [false, true] {
        let disk = TestDisk::new();
        let (fatal, config) = heard();
        let reserve = config.reserve.get();
        let running = Running::with(&disk, config);
        let (hit, large_one) = (running.open(0).await, running.open(1).await);
        let mut kept = hit.append_some(3).await;
        for _ in 0..10 {
            large_one.append(large(8)).await;
        }
        running.checkpoint().await;
        kept.extend(hit.append_some(2).await);
        disk.inject(SEGMENT, 0, LOST);
        if by_the_write {
            let kind = io::ErrorKind::StorageFull;
            disk.inject(".log.new", 0, Fault::Write { kind, written: 90 });
        } else {
            let used = used(&disk);
            disk.set_capacity(Some(ByteCount::new(used + reserve / 2)));
        }
        let refused = running.file.shared.checkpoints.done(StopMark::Running).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Full);
        hit.heard.death().await;
        assert_eq!(copies(&disk), usize::from(by_the_write));
        assert!(!disk.paths().iter().any(|path| path.to_string_lossy().ends_with(".new")));
        assert_kept(&disk, &kept).await;
        let request = open_request(0, &Arc::default());
        if !by_the_write {
            let refused = running.file.open(request).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unavailable);
        }
        running.file.commit(MetaBatch::new().put(Table::Deletions, "t", "")).await.unwrap();
        drop(large_one);
        while running.file.remove_some(partition(1), ByteCount::kib(64)).await.unwrap()
            != Removal::Done
        {}
        let again = running.open(0).await;
        again.assert_holds(&kept).await;
        kept.push(again.append(large(1)).await);
        assert_kept(&disk, &kept).await;
        assert_eq!(*fatal.lock(), [] as [String; 0]);
    }
}

fn used(disk: &TestDisk) -> u64 {
    let files = disk.paths();
    files.iter().filter_map(|path| disk.contents(path)).map(|bytes| bytes.len() as u64).sum()
}

/// Whoever waits to open a log while the engine fails may not cut what the journal knows better.
#[tokio::test]
async fn who_opens_a_log_while_the_engine_fails_changes_nothing() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, heard().1);
    let hit = running.open(0).await;
    let kept = hit.append_some(3).await;
    drop(hit);
    let turn = running.file.shared.turn().await;
    let file = Arc::clone(&running.file);
    let opening =
        tokio::spawn(async move { file.open(open_request(0, &Arc::default())).await.map(|_| ()) });
    tokio::task::yield_now().await;
    assert!(!opening.is_finished(), "it waits for its turn");
    disk.inject("/0", 0, Fault::SyncDir);
    running.file.shared.checkpoints.done(StopMark::Running).await.unwrap_err();
    let before = disk.operations();
    drop(turn);
    assert_eq!(opening.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(disk.operations(), before);
    assert_kept(&disk, &kept).await;
}

/// The folder's next owner finds nobody who still removes files in it.
#[tokio::test]
async fn a_close_waits_for_the_removal_of_dropped_segments() {
    let mut disk = TestDisk::new();
    for round in 0..20 {
        let running = Running::with(&disk, heard().1);
        let subject = running.open(0).await;
        subject.log.configure(LogSettings { segment_bytes: ByteCount::new(300), ..settings() });
        subject.append_some(40).await;
        subject.log.trim(subject.log.bounds().durable_end).await.unwrap();
        drop(subject);
        disk = running.close().await;
        let closed = disk.operations();
        let lock = disk.lock().unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(disk.operations(), closed);
        drop(lock);
    }
}

/// Every moment of the replacement, by a power cut and by the death of the process.
#[tokio::test]
async fn a_crash_at_any_step_of_the_replacement_loses_nothing() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, heard().1);
    let hit = running.open(0).await;
    let mut kept = hit.append_some(3).await;
    kept.push(hit.append(large(1)).await);
    kept.push(hit.append(TestBatch::of(2)).await);
    let before = disk.operations();
    disk.inject(SEGMENT, 0, LOST);
    running.checkpoint().await;
    let mut replay = Replay::of(&disk);
    let mut copies = 0;
    while replay.step().is_some() {
        if replay.done() < before {
            continue;
        }
        let seed = replay.done() as u64;
        for image in
            [replay.after(Crash::DropAll), replay.after(Crash::Torn(seed)), replay.after_death()]
        {
            let is_copy = |path: &PathBuf| path.to_string_lossy().ends_with(".log.new");
            copies += image.paths().iter().filter(|path| is_copy(path)).count();
            let recovered = Running::with(&image, heard().1);
            recovered.open(0).await.assert_holds(&kept).await;
            assert!(
                !image.paths().iter().any(is_copy),
                "left behind by the crash, gone at the opening"
            );
        }
    }
    assert!(copies > 0, "some crashes come before the copy has its place");
}

#[tokio::test]
async fn a_replacement_that_fails_ends_the_engine_and_the_next_start_has_everything() {
    let other = io::ErrorKind::Other;
    let cases = [
        ("no copy is made", ".log.new", 0, Fault::Open { kind: other }),
        ("the copy is not synced", ".log.new", 0, LOST),
        ("its name is not synced", "/0", 1, Fault::SyncDir),
        ("a folder is not synced", "/0", 0, Fault::SyncDir),
        ("the segment is not read", SEGMENT, 0, Fault::Read),
    ];
    for (label, path, skip, fault) in cases {
        let disk = TestDisk::new();
        let (fatal, config) = heard();
        let running = Running::with(&disk, config);
        let hit = running.open(0).await;
        let kept = hit.append_some(4).await;
        disk.inject(SEGMENT, 0, LOST);
        disk.inject(path, skip, fault);
        running.file.shared.checkpoints.done(StopMark::Running).await.expect_err(label);
        let told = fatal.lock().clone();
        assert_eq!(told.len(), 1, "{label}: {told:?}");
        running.file.close().await.unwrap_err();
        disk.clear_faults();
        assert_kept(&disk, &kept).await;
    }
}

/// The system gave up the pages: what is read is not what was written.
#[tokio::test]
async fn what_is_not_what_was_written_is_not_copied() {
    const LEADER_EPOCH: u64 = 12;
    // Other bytes, which the checksum tells; the same batch as an older epoch left it, which it does not.
    for (at, bytes) in [(65, &b"?"[..]), (LEADER_EPOCH, &[0; 4])] {
        let disk = TestDisk::new();
        let (fatal, config) = heard();
        let running = Running::with(&disk, config);
        let hit = running.open(0).await;
        let mut kept = hit.append_some(1).await;
        disk.inject("0000.journal", 0, LOST);
        let (_, ticket) = hit.submit(TestBatch::of(1)).await;
        ticket.await.unwrap_err();
        let hit = running.open(0).await;
        assert_eq!(hit.epoch, LeaderEpoch::new(1));
        let position = disk.contents(segment_path(&disk)).unwrap().len() as u64;
        kept.push(hit.append(TestBatch::of(1)).await);
        let file = disk.open(&segment_path(&disk), OpenMode::Existing).unwrap();
        file.write_at(position + at, &[bytes]).unwrap();
        disk.inject(SEGMENT, 0, LOST);
        running.file.shared.checkpoints.done(StopMark::Running).await.unwrap_err();
        let told = fatal.lock().clone();
        assert_eq!(told.len(), 1, "{told:?}");
        for crash in [Crash::DropAll, Crash::Torn(1)] {
            let recovered = Running::with(&disk.after(crash), heard().1);
            recovered.open(0).await.assert_holds(&kept).await;
        }
    }
}

#[tokio::test]
async fn what_a_crash_left_of_a_copy_goes_with_its_log() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, heard().1);
    running.open(0).await.append_some(2).await;
    let copy = segment_path(&disk).with_extension("log.new");
    disk.open(Path::new(&copy), OpenMode::New).unwrap();
    while running.file.remove_some(partition(0), ByteCount::mib(1)).await.unwrap() != Removal::Done
    {
    }
    assert_no_logs(&disk);
    assert_eq!(running.open(0).await.log.bounds().durable_end, Offset::ZERO);
}
