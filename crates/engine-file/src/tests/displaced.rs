//! Files that somebody removes, moves or replaces while a log is open: nothing acknowledged goes with them.

use std::path::{Path, PathBuf};

use strandline_model::ByteCount;
use strandline_storage::testkit::{TestBatch, partition, settings};
use strandline_storage::{ErrorKind, LogSettings, LogStore, LossCertainty};

use super::Running;
use crate::FileEngineConfig;
use crate::disk::{Crash, Disk, OpenMode, TestDisk};

fn config() -> FileEngineConfig {
    FileEngineConfig { direct_min: ByteCount::new(1000), ..FileEngineConfig::tiny() }
}

fn segments(disk: &TestDisk) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    disk.paths().into_iter().filter(is_log).collect()
}

/// Puts files where they were, as a copy of the folder does: others than those that were there.
fn restore(disk: &TestDisk, saved: &[(PathBuf, Vec<u8>)]) {
    for (path, bytes) in saved {
        let mut folders: Vec<_> = path.ancestors().skip(1).collect();
        folders.reverse();
        for folder in folders.into_iter().filter(|folder| *folder != Path::new("")) {
            disk.create_dir(folder).unwrap();
        }
        let file = disk.open(path, OpenMode::New).unwrap();
        file.write_at(0, &[bytes]).unwrap();
        file.sync_data().unwrap();
    }
}

fn saved(disk: &TestDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |path: PathBuf| (path.clone(), disk.contents(path).unwrap());
    segments(disk).into_iter().map(read).collect()
}

fn remove_folder(disk: &TestDisk) {
    let below = |path: &PathBuf| path.starts_with("logs") && path.components().count() > 1;
    let mut paths: Vec<_> = disk.paths().into_iter().filter(below).collect();
    paths.reverse();
    for path in paths {
        let removed = disk.remove_file(&path);
        removed.or_else(|_| disk.remove_dir(&path)).unwrap();
    }
}

/// Something that happens to a log's files, given copies that were made of them when the log was shorter.
type Harm = (&'static str, fn(&TestDisk, &[(PathBuf, Vec<u8>)]));

const HARMS: [Harm; 4] = [
    ("the file is removed", |disk, _| {
        disk.remove_file(&segments(disk)[0]).unwrap();
    }),
    ("the folder is removed", |disk, _| remove_folder(disk)),
    ("the folder is removed and made anew from an older copy", |disk, older| {
        remove_folder(disk);
        restore(disk, older);
    }),
    ("the folder is removed and made anew as it was", |disk, _| {
        let saved = saved(disk);
        remove_folder(disk);
        restore(disk, &saved);
    }),
];

/// What is written afterwards: through the journal, and beside it.
fn batches() -> [TestBatch; 3] {
    [TestBatch::of(1), TestBatch::of(2).value_bytes(2000), TestBatch::of(1)]
}

#[tokio::test]
async fn a_checkpoint_gives_up_nothing_that_went_to_a_file_without_a_name() {
    for (label, harm) in HARMS {
        for before in [false, true] {
            println!("{label}, after a checkpoint: {before}");
            let disk = TestDisk::new();
            let running = Running::with(&disk, config());
            let subject = running.open(0).await;
            let mut kept = subject.append_some(3).await;
            let older = saved(&disk);
            kept.extend(subject.append_some(3).await);
            if before {
                running.checkpoint().await;
            }
            harm(&disk, &older);
            // Each is acknowledged or not, and the handle may end at any of them.
            for batch in batches() {
                let subject = running.open(0).await;
                let (appended, ticket) = subject.submit(batch).await;
                if ticket.await.is_ok() {
                    kept.push(appended);
                }
            }
            running.checkpoint().await;
            for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(7)] {
                let again = Running::with(&disk.after(crash), config());
                assert_eq!(again.report.damaged, []);
                again.open(0).await.assert_holds(&kept).await;
            }
            drop(subject);
            let disk = running.close().await;
            let again = Running::with(&disk, config());
            again.open(0).await.assert_holds(&kept).await;
            assert_eq!(again.file.verify(partition(0)).await.unwrap(), []);
        }
    }
}

/// The same without another append: a look finds it, and a clean stop loses nothing.
#[tokio::test]
async fn a_look_puts_back_what_is_open_and_has_no_name() {
    for (label, harm) in HARMS {
        println!("{label}");
        let disk = TestDisk::new();
        let running = Running::with(&disk, config());
        let subject = running.open(0).await;
        let mut kept = subject.append_some(3).await;
        let older = saved(&disk);
        kept.extend(subject.append_some(3).await);
        running.checkpoint().await;
        harm(&disk, &older);
        assert_eq!(running.file.lost().await.unwrap(), []);
        let at = subject.log.bounds().written_end;
        let refused = subject.log.durable(at);
        drop(refused);
        let error = subject.log.load_state().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "its handle is ended: {error}");
        let subject = running.open(0).await;
        subject.assert_holds(&kept).await;
        kept.push(subject.append(TestBatch::of(2)).await);
        drop(subject);
        let disk = running.close().await;
        let again = Running::with(&disk, config());
        again.open(0).await.assert_holds(&kept).await;
        assert_eq!(again.file.verify(partition(0)).await.unwrap(), []);
        assert_eq!(again.file.lost().await.unwrap(), []);
    }
}

/// A file that comes back under its name was never away.
#[tokio::test]
async fn a_file_that_is_moved_away_and_back_is_the_same() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let subject = running.open(0).await;
    let mut kept = subject.append_some(3).await;
    let path = segments(&disk).remove(0);
    disk.rename(&path, Path::new("elsewhere")).unwrap();
    kept.extend(subject.append_some(3).await);
    disk.rename(Path::new("elsewhere"), &path).unwrap();
    running.checkpoint().await;
    assert_eq!(running.file.lost().await.unwrap(), []);
    kept.push(subject.append(TestBatch::of(1)).await);
    subject.assert_holds(&kept).await;
}

/// What is not open is gone with its name; what is open is put back all the same.
#[tokio::test]
async fn what_is_gone_for_good_is_told_and_the_rest_is_put_back() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::new(450), ..settings() });
    let mut kept = subject.append_some(12).await;
    drop(subject);
    let disk = running.close().await;
    let running = Running::with(&disk, config());
    let subject = running.open(0).await;
    kept.extend(subject.append_some(1).await);
    let before = saved(&disk);
    remove_folder(&disk);
    let lost = running.file.lost().await.unwrap();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(lost[0].certainty, LossCertainty::Gone);
    assert!(lost[0].what.contains("segment is missing"), "{lost:?}");
    let there = segments(&disk);
    assert!(!there.is_empty() && there.len() < before.len(), "{there:?}");
    // Somebody brings the others from a copy.
    let others: Vec<_> =
        before.into_iter().filter(|(path, _)| disk.contents(path).is_none()).collect();
    restore(&disk, &others);
    assert_eq!(running.file.lost().await.unwrap(), []);
    running.open(0).await.assert_holds(&kept).await;
}
