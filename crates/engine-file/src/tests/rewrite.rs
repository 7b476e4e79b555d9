//! Rewrites of segments on a disk that fails, and what is left in the folder.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use strandline_model::ByteCount;
use strandline_storage::testkit::{Appended, Subject, settings};
use strandline_storage::{ChunkInfo, ErrorKind, LogSettings, LogStore, StorageError};

use super::Running;
use crate::disk::{Crash, Fault, Persisted, TestDisk};

/// The names of the segments in the folder.
fn names(disk: &TestDisk) -> Vec<String> {
    let mut paths = disk.paths();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "log"));
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths.iter().filter_map(|path| name(path)).collect()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::task::yield_now().await;
    }
}

/// The folder holds what is listed and nothing else, soon.
async fn until_tidy(disk: &TestDisk, subject: &Subject) {
    let listed = || subject.log.chunks().iter().map(|chunk| chunk.name.clone()).collect::<Vec<_>>();
    until("the folder holds what is listed", || names(disk) == listed()).await;
}

async fn filled(running: &Running) -> (Subject, Vec<Appended>) {
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(2), ..settings() });
    let appended = subject.append_some(100).await;
    (subject, appended)
}

/// Replaces chunks by their last batch.
async fn rewrite(
    subject: &Subject,
    chunks: &[ChunkInfo],
    appended: &[Appended],
) -> Result<Vec<Appended>, StorageError> {
    let (first, last) = (&chunks[0], &chunks[chunks.len() - 1]);
    let is_last = |batch: &&Appended| batch.offsets.end == last.next_offset;
    let kept = appended.iter().find(is_last).expect("chunks end with a batch");
    let mut rewrite = subject.log.rewrite(first.id, last.id).await?;
    rewrite.add(kept.bytes.clone()).await?;
    rewrite.commit().await?;
    let is_outside = |batch: &Appended| {
        batch.offsets.start < first.base_offset || batch.offsets.end >= last.next_offset
    };
    Ok(appended.iter().filter(|batch| is_outside(batch)).cloned().collect())
}

#[tokio::test]
async fn old_files_go_and_new_ones_have_names_of_their_own() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let (subject, mut left) = filled(&running).await;
    for _ in 0..3 {
        let chunks = subject.log.chunks();
        left = rewrite(&subject, &chunks[..2], &left).await.unwrap();
        until_tidy(&disk, &subject).await;
        subject.assert_holds(&left).await;
    }
    let chunks = subject.log.chunks();
    assert!(chunks[0].name.ends_with(".3.log"), "{chunks:?}");
    drop(subject);
    let disk = running.close().await;
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    subject.assert_holds(&left).await;
    let chunks = subject.log.chunks();
    let left = rewrite(&subject, &chunks[..2], &left).await.unwrap();
    assert!(subject.log.chunks()[0].name.ends_with(".4.log"), "no name comes again");
    subject.assert_holds(&left).await;
}

#[tokio::test]
async fn a_rewrite_that_fails_anywhere_leaves_the_log_as_it_was() {
    let other = io::ErrorKind::Other;
    let faults = [
        (".1.log", Fault::Open { kind: other }, ErrorKind::Unavailable),
        (".1.log", Fault::Write { kind: other, written: 10 }, ErrorKind::Unavailable),
        (".1.log", Fault::Write { kind: io::ErrorKind::StorageFull, written: 0 }, ErrorKind::Full),
        (".1.log", Fault::Sync { persisted: Persisted::Nothing }, ErrorKind::Unavailable),
    ];
    for (name, fault, kind) in faults {
        let disk = TestDisk::new();
        let running = Running::on(&disk);
        let (subject, appended) = filled(&running).await;
        let chunks = subject.log.chunks();
        disk.inject(name, 0, fault);
        let failed = rewrite(&subject, &chunks[..3], &appended).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{fault:?}");
        assert_eq!(subject.log.chunks(), chunks, "{fault:?}");
        subject.assert_holds(&appended).await;
        until_tidy(&disk, &subject).await;
        // The log goes on, and so does compaction.
        let mut left = rewrite(&subject, &chunks[..3], &appended).await.unwrap();
        left.extend(subject.append_some(3).await);
        subject.assert_holds(&left).await;
        until_tidy(&disk, &subject).await;
        drop(subject);
        let again = Running::on(&disk.after(Crash::DropAll));
        again.open(0).await.assert_holds(&left).await;
    }
}

#[tokio::test]
async fn a_swap_that_the_journal_lost_has_not_happened() {
    for persisted in [Persisted::Nothing, Persisted::Torn(5), Persisted::Torn(6)] {
        let disk = TestDisk::new();
        let running = Running::on(&disk);
        let (subject, appended) = filled(&running).await;
        let chunks = subject.log.chunks();
        running.checkpoint().await;
        disk.inject(".journal", 0, Fault::Sync { persisted });
        rewrite(&subject, &chunks[..3], &appended).await.unwrap_err();
        subject.assert_holds(&appended).await;
        for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(9)] {
            let again = Running::on(&disk.after(crash));
            let subject = again.open(0).await;
            subject.assert_holds(&appended).await;
            until_tidy(&again.disk, &subject).await;
        }
        let left = rewrite(&subject, &chunks[..3], &appended).await.unwrap();
        subject.assert_holds(&left).await;
        until_tidy(&disk, &subject).await;
    }
}

#[tokio::test]
async fn a_disk_without_room_for_the_copy_keeps_its_reserve() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let (subject, appended) = filled(&running).await;
    let chunks = subject.log.chunks();
    running.checkpoint().await;
    let used: usize = disk.paths().iter().filter_map(|path| Some(disk.contents(path)?.len())).sum();
    let room = running.file.space().reserve.get() + 3000;
    disk.set_capacity(Some(ByteCount::new(used as u64 + room)));
    let refused = rewrite(&subject, &chunks[..3], &appended).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert_eq!(subject.log.chunks(), chunks);
    disk.set_capacity(None);
    let left = rewrite(&subject, &chunks[..3], &appended).await.unwrap();
    subject.assert_holds(&left).await;
}

/// What a start brings back goes behind what the snapshot has: no segment may be replaced before the
/// snapshot has all up to it, though its file is synced, and though another handle wrote it.
#[tokio::test]
async fn nothing_is_replaced_that_a_start_may_bring_back() {
    for is_reopened in [false, true] {
        let disk = TestDisk::new();
        let running = Running::on(&disk);
        let (mut subject, mut appended) = filled(&running).await;
        for _ in 0..50 {
            disk.inject("snapshot.new", 0, Fault::Sync { persisted: Persisted::Nothing });
        }
        let checkpoint = running.file.shared.checkpoints.done(crate::queue::StopMark::Running);
        checkpoint.await.unwrap_err();
        if is_reopened {
            drop(subject);
            subject = running.open(0).await;
        }
        let chunks = subject.log.chunks();
        rewrite(&subject, &chunks[1..4], &appended).await.unwrap_err();
        assert_eq!(subject.log.chunks(), chunks);
        appended.extend(subject.append_some(2).await);
        let mut replayed = 0;
        for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(9)] {
            let again = Running::on(&disk.after(crash));
            replayed += again.report.batches_replayed;
            let subject = again.open(0).await;
            subject.assert_holds(&appended).await;
            let left = rewrite(&subject, &chunks[1..4], &appended).await.unwrap();
            subject.assert_holds(&left).await;
            until_tidy(&again.disk, &subject).await;
            let again = Running::on(&again.disk.after(crash));
            again.open(0).await.assert_holds(&left).await;
        }
        assert!(replayed > 0, "the snapshot does not have all");
    }
}
