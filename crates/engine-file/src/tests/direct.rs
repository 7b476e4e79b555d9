//! Large appends: written to their segment once, and named by the journal.

use std::io;

use strandline_model::ByteCount;
use strandline_storage::testkit::{Appended, TestBatch, settings};
use strandline_storage::{Durability, ErrorKind, LogSettings};

use super::Running;
use crate::FileEngineConfig;
use crate::disk::{Crash, Fault, Persisted, Replay, TestDisk};
use crate::journal::BLOCK_BYTES;

const SEGMENT: &str = "/0/00000000000000000000.log";
const CRASHES: [Crash; 4] = [Crash::KeepAll, Crash::DropAll, Crash::Torn(1), Crash::Torn(2)];

fn config() -> FileEngineConfig {
    FileEngineConfig {
        journal_first_file: ByteCount::new(64 * BLOCK_BYTES),
        direct_min: ByteCount::new(1000),
        ..FileEngineConfig::tiny()
    }
}

fn large(records: u32) -> TestBatch {
    TestBatch::of(records).value_bytes(2000)
}

/// Bytes of the journal that are not zero. Its first file is made in the background.
fn journal_bytes(disk: &TestDisk) -> usize {
    let bytes = disk.contents("journal/0000.journal").unwrap_or_default();
    bytes.iter().filter(|byte| **byte != 0).count()
}

async fn assert_kept(disk: &TestDisk, kept: &[Appended]) {
    for crash in CRASHES {
        let recovered = Running::with(&disk.after(crash), config());
        recovered.open(0).await.assert_holds(kept).await;
    }
}

#[tokio::test]
async fn large_appends_are_written_once_and_outlive_a_crash() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let subject = running.open(0).await;
    let mut kept = Vec::new();
    for round in 0..6 {
        kept.push(subject.append(TestBatch::of(1)).await);
        let before = journal_bytes(&disk);
        kept.push(subject.append(large(3)).await);
        assert!(journal_bytes(&disk) < before + 300, "an entry without its batches");
        if round % 2 == 1 {
            subject.log.roll().await.unwrap();
        }
        assert_kept(&disk, &kept).await;
    }

    // A start that is cut short is begun again, and what it made goes on.
    let left = disk.after(Crash::DropAll);
    drop(Running::with(&left, config()));
    let left = left.after(Crash::DropAll);
    let running = Running::with(&left, config());
    let subject = running.open(0).await;
    kept.push(subject.append(large(2)).await);
    assert_kept(&left, &kept).await;
    running.checkpoint().await;
    assert_kept(&left, &kept).await;
}

#[tokio::test]
async fn what_need_not_be_synced_goes_through_the_journal() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { durability: Durability::Never, ..settings() });
    let before = journal_bytes(&disk);
    subject.append(large(1)).await;
    assert!(journal_bytes(&disk) > before + 1000, "a whole append");
}

#[tokio::test]
async fn a_large_append_that_fails_kills_its_log_and_leaves_nothing() {
    let write = Fault::Write { kind: io::ErrorKind::StorageFull, written: 700 };
    let sync = Fault::Sync { persisted: Persisted::Torn(3) };
    for (path, fault, kind) in
        [(SEGMENT, write, ErrorKind::Full), ("0000.journal", sync, ErrorKind::Unavailable)]
    {
        let disk = TestDisk::new();
        let running = Running::with(&disk, config());
        let (hit, other) = (running.open(0).await, running.open(1).await);
        let mut kept = vec![hit.append(TestBatch::of(2)).await, hit.append(large(2)).await];
        disk.inject(path, 0, fault);
        let (_, ticket) = hit.submit(large(4)).await;
        assert_eq!(ticket.await.unwrap_err().kind(), kind);
        hit.heard.death().await;
        assert_kept(&disk, &kept).await;
        other.append(large(1)).await;

        let again = running.open(0).await;
        kept.push(again.append(large(1)).await);
        kept.push(again.append(TestBatch::of(1)).await);
        assert_kept(&disk, &kept).await;
    }
}

/// A group that was given up may have reached the disk all the same; only the header of the file behind
/// it says that it is none, and that may not be durable yet when a start believes it.
#[tokio::test]
async fn what_a_start_cuts_is_given_up_for_good() {
    let mut met = 0;
    for seed in 0..3 {
        let disk = TestDisk::new();
        let running = Running::with(&disk, config());
        let hit = running.open(0).await;
        let kept = [hit.append(TestBatch::of(2)).await];
        let before = disk.operations();
        disk.inject("0000.journal", 0, Fault::Sync { persisted: Persisted::Torn(seed) });
        let (_, ticket) = hit.submit(large(1)).await;
        ticket.await.unwrap_err();
        drop(running);

        let mut replay = Replay::of(&disk);
        while replay.step().is_some() {
            if replay.done() <= before {
                continue;
            }
            // The process dies here, the next one starts, and then the power goes at any step of that.
            let survivor = replay.after_death();
            let began = survivor.operations();
            drop(Running::with(&survivor, config()));
            let mut recovery = Replay::of(&survivor);
            while recovery.step().is_some() {
                if recovery.done() > began {
                    met += 1;
                    let left = recovery.after(Crash::DropAll);
                    let recovered = Running::with(&left, config());
                    let log = recovered.open(0).await;
                    assert!(log.log.bounds().durable_end >= kept[0].offsets.end);
                }
            }
        }
    }
    assert!(met > 0, "there was something to cut");
}
