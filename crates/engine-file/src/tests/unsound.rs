//! Segments whose sync fails: a copy takes their place, and only their log notices.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::{ByteCount, LeaderEpoch, Offset};
use strandline_storage::testkit::{Appended, TestBatch, partition};
use strandline_storage::{Found, LogStore, Removal};

use super::Running;
use crate::FileEngineConfig;
use crate::disk::{Crash, Disk, Fault, OpenMode, Persisted, Replay, TestDisk};
use crate::journal::BLOCK_BYTES;
use crate::queue::StopMark;

const SEGMENT: &str = "/0/00000000000000000000.log";
const LOST: Fault = Fault::Sync { persisted: Persisted::Nothing };

/// What the owner of the engine hears.
type Heard = Arc<Mutex<Vec<String>>>;

fn heard() -> (Heard, FileEngineConfig) {
    let heard = Heard::default();
    let told = Arc::clone(&heard);
    let on_fatal = Arc::new(move |error: &strandline_storage::StorageError| {
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

    running.open(0).await.append_some(1).await;
    disk.inject(SEGMENT, 0, LOST);
    while running.file.remove_some(partition(0), ByteCount::new(1)).await.unwrap() != Removal::Done
    {
        running.checkpoint().await;
    }
    assert_no_logs(&disk);
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
        ("no room", ".log.new", 0, Fault::Write { kind: io::ErrorKind::StorageFull, written: 90 }),
        ("the copy is not synced", ".log.new", 0, LOST),
        ("its name is not synced", "/0", 1, Fault::SyncDir),
        ("a folder is not synced, all segments are", "/0", 0, Fault::SyncDir),
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
        assert_eq!(fatal.lock().len(), 1, "{label}: {:?}", fatal.lock());
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
        assert_eq!(fatal.lock().len(), 1, "{:?}", fatal.lock());
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
