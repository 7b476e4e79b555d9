//! Quarantine on files: cut at every step, and what a look at them finds lost.

use std::path::{Path, PathBuf};

use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_storage::testkit::{Appended, partition, settings};
use strandline_storage::{ErrorKind, LogSettings, LogStore, LossCertainty, Removal};

use super::Running;
use crate::Inspection;
use crate::disk::{Crash, Disk, Fault, OpenMode, Replay, TestDisk};

const SINCE: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// What a log held that was filled, with rows in the snapshot and batches in the journal only.
async fn filled(running: &Running, index: u32) -> Vec<Appended> {
    let subject = running.open(index).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(2), ..settings() });
    let mut kept = subject.append_some(30).await;
    running.checkpoint().await;
    kept.extend(subject.append_some(30).await);
    kept
}

fn paths_of(disk: &TestDisk, root: &str) -> Vec<PathBuf> {
    let mut paths = disk.paths();
    paths.retain(|path| path.starts_with(root) && path.extension().is_some());
    paths
}

/// Disks that a crash leaves after each operation of `disk` from `begin` on.
fn crashes(disk: &TestDisk, begin: usize) -> Vec<(usize, Crash, TestDisk)> {
    let mut replay = Replay::of(disk);
    let mut images = Vec::new();
    while replay.step().is_some() {
        if replay.done() < begin {
            continue;
        }
        let cut = replay.done();
        for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(cut as u64)] {
            images.push((cut, crash, replay.after(crash)));
        }
    }
    images
}

async fn open_is_refused(running: &Running, index: u32) -> ErrorKind {
    let request = strandline_storage::testkit::open_request(index, &std::sync::Arc::default());
    running.file.open(request).await.expect_err("it is in no service").kind()
}

#[tokio::test]
async fn files_of_a_quarantined_log_lie_aside_and_come_back() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let kept = filled(&running, 0).await;
    let before = paths_of(&disk, "logs");
    running.file.quarantine(partition(0), SINCE).await.unwrap();
    assert_eq!(paths_of(&disk, "logs"), Vec::<PathBuf>::new());
    let aside = paths_of(&disk, "quarantine");
    let names = |paths: &[PathBuf], root: &str| -> Vec<PathBuf> {
        paths.iter().map(|path| path.strip_prefix(root).unwrap().to_owned()).collect()
    };
    assert_eq!(names(&aside, "quarantine"), names(&before, "logs"));
    running.file.release(partition(0)).await.unwrap();
    assert_eq!(paths_of(&disk, "quarantine"), Vec::<PathBuf>::new());
    running.open(0).await.assert_holds(&kept).await;
}

#[tokio::test]
async fn a_quarantine_that_is_cut_anywhere_loses_nothing_and_is_completed() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let kept = filled(&running, 0).await;
    let begin = disk.operations();
    running.file.quarantine(partition(0), SINCE).await.unwrap();
    let end = disk.operations();
    drop(running);
    let images = crashes(&disk, begin);
    assert!(images.len() > 60, "{}", images.len());
    for (cut, crash, disk) in images {
        let context = format!("cut after {cut} of {begin}..{end}, {crash:?}");
        let again = Running::on(&disk);
        let quarantined = again.file.quarantined().await.unwrap();
        assert!(cut < end || !quarantined.is_empty(), "it was acknowledged: {context}");
        assert_eq!(again.file.list().await.unwrap(), [partition(0)], "{context}");
        assert_eq!(again.file.lost().await.unwrap(), [], "{context}");
        if !quarantined.is_empty() {
            assert_eq!(open_is_refused(&again, 0).await, ErrorKind::Invalid, "{context}");
            again.file.quarantine(partition(0), SINCE.plus_millis(9)).await.unwrap();
            assert_eq!(paths_of(&disk, "logs"), Vec::<PathBuf>::new(), "{context}");
            assert_eq!(again.file.quarantined().await.unwrap()[0].since, SINCE, "{context}");
            again.file.release(partition(0)).await.unwrap();
        }
        again.open(0).await.assert_holds(&kept).await;
    }
}

#[tokio::test]
async fn the_end_of_a_quarantine_that_is_cut_anywhere_is_completed() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let kept = filled(&running, 0).await;
    running.file.quarantine(partition(0), SINCE).await.unwrap();
    let begin = disk.operations();
    running.file.release(partition(0)).await.unwrap();
    let end = disk.operations();
    drop(running);
    for (cut, crash, disk) in crashes(&disk, begin) {
        let context = format!("cut after {cut} of {begin}..{end}, {crash:?}");
        let again = Running::on(&disk);
        let quarantined = again.file.quarantined().await.unwrap();
        assert!(cut < end || quarantined.is_empty(), "it was acknowledged: {context}");
        if !quarantined.is_empty() {
            assert_eq!(open_is_refused(&again, 0).await, ErrorKind::Invalid, "{context}");
        }
        again.file.release(partition(0)).await.unwrap();
        assert_eq!(again.file.lost().await.unwrap(), [], "{context}");
        again.open(0).await.assert_holds(&kept).await;
    }
}

#[tokio::test]
async fn a_purge_that_is_cut_anywhere_goes_on_until_nothing_is_left() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    filled(&running, 0).await;
    running.file.quarantine(partition(0), SINCE).await.unwrap();
    let begin = disk.operations();
    let purge = async |running: &Running| {
        for _ in 0..1000 {
            let budget = ByteCount::kib(4);
            if running.file.remove_some(partition(0), budget).await.unwrap() == Removal::Done {
                return;
            }
        }
        panic!("a purge ends");
    };
    purge(&running).await;
    let end = disk.operations();
    drop(running);
    for (cut, crash, disk) in crashes(&disk, begin) {
        let context = format!("cut after {cut} of {begin}..{end}, {crash:?}");
        let again = Running::on(&disk);
        let listed = again.file.list().await.unwrap();
        assert!(cut < end || listed.is_empty(), "it was acknowledged: {context}");
        if listed.is_empty() {
            continue;
        }
        purge(&again).await;
        assert_eq!(again.file.quarantined().await.unwrap(), [], "{context}");
        assert_eq!(again.file.list().await.unwrap(), [], "{context}");
        assert!(paths_of(&disk, "quarantine").is_empty(), "{context}");
        assert!(paths_of(&disk, "logs").is_empty(), "{context}");
        // The name is free for a new log, as after any removal.
        let subject = again.open(0).await;
        assert_eq!(subject.log.bounds().written_end, Offset::ZERO, "{context}");
    }
}

fn plant(disk: &TestDisk, folder: &Path) {
    let mut below = PathBuf::new();
    for part in folder {
        below.push(part);
        disk.create_dir(&below).unwrap();
    }
    let file = disk.open(&folder.join("00000000000000000000.log"), OpenMode::New).unwrap();
    file.write_at(0, &[b"what somebody copied here"]).unwrap();
}

#[tokio::test]
async fn a_folder_that_no_row_knows_is_listed_set_aside_and_purged() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let topic = partition(0).topic_id.to_string();
    plant(&disk, &Path::new("logs").join(&topic).join("7"));
    // Set aside by a life of the folder whose rows are gone.
    plant(&disk, &Path::new("quarantine").join(&topic).join("8"));
    for index in [7, 8] {
        assert!(running.file.list().await.unwrap().contains(&partition(index)));
        running.file.quarantine(partition(index), SINCE).await.unwrap();
        assert_eq!(open_is_refused(&running, index).await, ErrorKind::Invalid);
    }
    assert!(paths_of(&disk, "logs").is_empty());
    assert_eq!(running.file.quarantined().await.unwrap().len(), 2);
    for index in [7, 8] {
        while running.file.remove_some(partition(index), ByteCount::mib(1)).await.unwrap()
            != Removal::Done
        {}
    }
    assert_eq!(running.file.list().await.unwrap(), []);
    assert!(paths_of(&disk, "quarantine").is_empty());
}

/// What is none of ours is told of and left where it is, whatever becomes of the log around it.
#[tokio::test]
async fn what_is_none_of_ours_is_told_of_and_never_removed() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    filled(&running, 0).await;
    filled(&running, 1).await;
    let topic = Path::new("logs").join(partition(0).topic_id.to_string());
    let folders = [
        Path::new("logs/garbage").to_owned(),
        topic.join("xyz"),
        topic.join("0/sub"),
        topic.join("07"),
    ];
    for folder in &folders {
        disk.create_dir(folder).unwrap();
    }
    let files = [
        Path::new("logs/garbage/y").to_owned(),
        Path::new("logs/topfile").to_owned(),
        topic.join("1/notes.txt"),
    ];
    for file in &files {
        disk.open(file, OpenMode::New).unwrap().write_at(0, &[b"not ours"]).unwrap();
    }
    let mut expected: Vec<_> = folders.iter().chain(&files[1..]).collect();
    expected.sort();
    let expected: Vec<_> =
        expected.into_iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let mut found = running.file.foreign().await.unwrap();
    found.sort();
    assert_eq!(found, expected);

    // One log is removed, the other is set aside and purged.
    running.file.quarantine(partition(1), SINCE).await.unwrap();
    for index in [0, 1] {
        while running.file.remove_some(partition(index), ByteCount::mib(1)).await.unwrap()
            != Removal::Done
        {}
    }
    assert_eq!(running.file.list().await.unwrap(), [], "nobody removes it again");
    running.file.quarantine(partition(0), SINCE).await.unwrap();
    assert_eq!(running.file.quarantined().await.unwrap(), []);
    let mut found = running.file.foreign().await.unwrap();
    found.sort();
    assert_eq!(found, expected);
    assert!(files.iter().all(|file| disk.contents(file).unwrap() == b"not ours"));
    let seen = Inspection::open(std::sync::Arc::new(running.close().await)).unwrap();
    assert_eq!(seen.foreign().len(), expected.len());
    assert!(seen.list().unwrap().is_empty());
}

#[tokio::test]
async fn what_lies_where_it_would_be_set_aside_is_not_overwritten() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    filled(&running, 0).await;
    let topic = partition(0).topic_id.to_string();
    plant(&disk, &Path::new("quarantine").join(&topic).join("0"));
    let refused = running.file.quarantine(partition(0), SINCE).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(open_is_refused(&running, 0).await, ErrorKind::Invalid, "it is out of service");
    let planted = paths_of(&disk, "quarantine").remove(0);
    assert_eq!(disk.contents(planted).unwrap(), b"what somebody copied here");
}

#[tokio::test]
async fn a_log_whose_segment_is_gone_is_lost_and_never_empty() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    filled(&running, 0).await;
    filled(&running, 1).await;
    // Opened, and nothing ever appended: it has no files, and has lost none.
    drop(running.open(2).await);
    let disk = running.close().await;
    let folder = Path::new("logs").join(partition(0).topic_id.to_string()).join("0");
    for path in paths_of(&disk, &folder.to_string_lossy()) {
        disk.remove_file(&path).unwrap();
    }
    let running = Running::on(&disk);
    drop(running.open(2).await);
    let lost = running.file.lost().await.unwrap();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(lost[0].id, partition(0));
    assert!(lost[0].what.contains("segment is missing. file=`logs/"), "{lost:?}");
    assert_eq!(open_is_refused(&running, 0).await, ErrorKind::Corrupt);
    // While it is open, too: of a file that is not open nothing is left.
    let subject = running.open(1).await;
    let missing = disk.paths().into_iter().find(|path| {
        path.to_string_lossy().contains("/1/") && path.extension().is_some_and(|kind| kind == "log")
    });
    disk.remove_file(&missing.unwrap()).unwrap();
    let lost = running.file.lost().await.unwrap();
    assert_eq!(lost.iter().map(|one| one.id).collect::<Vec<_>>(), [partition(0), partition(1)]);
    drop(subject);
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_hides_its_own_log_only() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    filled(&running, 0).await;
    filled(&running, 1).await;
    filled(&running, 2).await;
    running.file.quarantine(partition(2), SINCE).await.unwrap();
    let topic = partition(0).topic_id.to_string();
    let missing = paths_of(&disk, "logs").into_iter().find(|path| {
        path.to_string_lossy().contains("/1/") && path.extension().is_some_and(|kind| kind == "log")
    });
    let missing = missing.unwrap();
    // Its file is open, and would be put back if it held anything.
    disk.open(&missing, OpenMode::Existing).unwrap().set_len(0).unwrap();
    disk.remove_file(&missing).unwrap();

    disk.inject(&format!("logs/{topic}/0"), 0, Fault::List);
    let lost = running.file.lost().await.unwrap();
    let told: Vec<_> = lost.iter().map(|one| (one.id, one.certainty)).collect();
    let expected = [(partition(0), LossCertainty::Unreadable), (partition(1), LossCertainty::Gone)];
    assert_eq!(told, expected);
    assert!(
        lost[0].what.contains("list folder") && lost[0].what.contains("os error 5"),
        "{lost:?}"
    );

    disk.clear_faults();
    // The topic's folder, here and aside; what its rows know is listed all the same.
    for root in ["logs", "quarantine"] {
        disk.inject(&format!("{root}/{topic}"), 0, Fault::List);
    }
    let all = [partition(0), partition(1), partition(2)];
    assert_eq!(running.file.list().await.unwrap(), all);
    disk.clear_faults();
    disk.inject(&format!("quarantine/{topic}/2"), 0, Fault::List);
    let quarantined = running.file.quarantined().await.unwrap();
    assert_eq!(quarantined.iter().map(|one| one.id).collect::<Vec<_>>(), [partition(2)]);

    // The same of a folder that nobody serves.
    disk.clear_faults();
    let disk = running.close().await;
    disk.inject(&format!("logs/{topic}/0"), 0, Fault::List);
    let seen = Inspection::open(std::sync::Arc::new(disk.clone())).unwrap();
    let told: Vec<_> = seen.lost().into_iter().map(|one| (one.id, one.certainty)).collect();
    assert_eq!(told, expected);
    let findings = seen.verify(partition(0)).findings;
    assert!(findings[0].1.message.contains("os error 5"), "{findings:?}");
}

#[tokio::test]
async fn a_topic_folder_of_strangers_that_cannot_be_read_is_no_secret() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let stranger = strandline_model::TopicId::from_bytes([9; 16]);
    disk.create_dir(Path::new("logs")).unwrap();
    disk.create_dir(&Path::new("logs").join(stranger.to_string())).unwrap();
    disk.inject(&stranger.to_string(), 0, Fault::List);
    let listed = running.file.list().await.unwrap();
    assert_eq!(listed.iter().map(|id| id.topic_id).collect::<Vec<_>>(), [stranger]);
}
