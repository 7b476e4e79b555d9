//! Files that were dropped before a stop: they go although nobody opens their log.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use strandline_model::ByteCount;
use strandline_storage::testkit::{Appended, Subject, partition, settings};
use strandline_storage::{LogSettings, LogStore};

use super::Running;
use crate::disk::{Crash, Disk, Fault, TestDisk};

const OLDEST: &str = "00000000000000000000.log";

fn log_files(disk: &TestDisk) -> Vec<PathBuf> {
    let mut paths = disk.paths();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "log"));
    paths
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::task::yield_now().await;
    }
}

/// A log whose oldest segment is dropped and can't be removed until the faults are cleared.
async fn with_a_dropped_segment(disk: &TestDisk) -> (Running, Subject, Vec<Appended>) {
    let running = Running::on(disk);
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(2), ..settings() });
    let kept = subject.append_some(100).await;
    for _ in 0..100 {
        disk.inject(OLDEST, 0, Fault::Open { kind: io::ErrorKind::PermissionDenied });
    }
    let chunks = subject.log.chunks();
    subject.log.trim(chunks[3].base_offset).await.unwrap();
    until("the sweeper fails once", || log_files(disk).len() == chunks.len() - 2).await;
    until("the others are counted as gone", || running.file.space().dropped == chunks[0].bytes)
        .await;
    assert!(running.file.space().used >= chunks[3..].iter().map(|chunk| chunk.bytes).sum());
    (running, subject, kept)
}

#[tokio::test]
async fn a_start_removes_what_was_dropped_before_it_though_nobody_opens_the_log() {
    let disk = TestDisk::new();
    let (running, subject, kept) = with_a_dropped_segment(&disk).await;
    let crashed = [Crash::KeepAll, Crash::DropAll, Crash::Torn(3)].map(|crash| disk.after(crash));
    let disk = running.close().await;
    drop(subject);
    disk.clear_faults();
    assert!(log_files(&disk).iter().any(|path| path.ends_with(OLDEST)));
    for disk in crashed.into_iter().chain([disk]) {
        let again = Running::on(&disk);
        let is_there = || log_files(&disk).iter().any(|path| path.ends_with(OLDEST));
        until("what was dropped goes", || !is_there() && again.file.space().dropped.get() == 0)
            .await;
        let named = again.file.stored(partition(0)).unwrap().chunks;
        assert!(log_files(&disk).len() >= named.len(), "what the rows name stays");
        assert_eq!(again.file.verify(partition(0)).await.unwrap(), []);
        // A file beyond the end is no such leftover: it waits until somebody opens the log.
        again.open(0).await.assert_holds(&kept).await;
        until("what lies beyond the end went at the opening", || {
            log_files(&disk).len() == again.file.stored(partition(0)).unwrap().chunks.len()
        })
        .await;
    }
}

#[tokio::test]
async fn what_an_open_log_could_not_remove_goes_when_it_is_closed() {
    let disk = TestDisk::new();
    let (running, subject, _) = with_a_dropped_segment(&disk).await;
    disk.clear_faults();
    drop(subject);
    // Until then the commit thread has it open. It would be tried again half a minute after the failure.
    running.checkpoint().await;
    let named = running.file.stored(partition(0)).unwrap().chunks;
    until("it goes", || log_files(&disk).len() == named.len()).await;
    until("nothing is left", || running.file.space().dropped.get() == 0).await;
}

#[tokio::test]
async fn nothing_of_a_damaged_or_unknown_log_is_swept() {
    let disk = TestDisk::new();
    let (running, subject, _) = with_a_dropped_segment(&disk).await;
    let disk = running.close().await;
    drop(subject);
    disk.clear_faults();
    let newest = log_files(&disk).pop().unwrap();
    let folder = newest.parent().unwrap();
    disk.remove_file(&newest).unwrap();
    // A log that no row knows.
    let unknown = folder.parent().unwrap().join("7");
    disk.create_dir(&unknown).unwrap();
    let planted = unknown.join(OLDEST);
    disk.open(&planted, crate::disk::OpenMode::New).unwrap().write_at(0, &[b"x"]).unwrap();
    // Another one that is swept, so that one sees when the sweeper was there.
    let running = Running::on(&disk);
    let other = running.open(9).await;
    other.append_some(5).await;
    let end = other.log.bounds().durable_end;
    other.log.trim(end).await.unwrap();
    until("the other is swept", || {
        !log_files(&disk).iter().any(|path| path.to_string_lossy().contains("/9/"))
    })
    .await;
    let left = log_files(&disk);
    assert!(left.iter().any(|path| path.starts_with(folder) && path.ends_with(OLDEST)));
    assert!(left.contains(&planted));
}
