//! A folder that is only looked at: what is wrong is found, what is right is not blamed, nothing moves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use strandline_model::ByteCount;
use strandline_storage::testkit::{TestBatch, partition, settings};
use strandline_storage::{LogSettings, LogStore, MetaBatch, MetaStore, Table};

use super::Running;
use crate::disk::{Crash, Disk, OpenMode, Operation, ReadOnlyDisk, RealDisk, Replay, TestDisk};
use crate::{FileEngine, FileEngineConfig, Inspection, OpenError, Severity};

/// Two logs with some segments, of which some batches are in the journal only, and one row.
async fn folder() -> TestDisk {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    for index in [0, 1] {
        let subject = running.open(index).await;
        subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(2), ..settings() });
        subject.append_some(40).await;
        running.checkpoint().await;
        subject.append_some(10).await;
        // Large enough to go to its segment directly.
        subject.append(TestBatch::of(1).value_bytes(9_000)).await;
    }
    running.file.commit(MetaBatch::new().put(Table::Topics, "t", "row")).await.unwrap();
    disk
}

fn inspect(disk: &TestDisk) -> Inspection {
    try_inspect(disk).expect("the folder is whole")
}

fn try_inspect(disk: &TestDisk) -> Result<Inspection, OpenError> {
    let before = disk.operations();
    let inspected = Inspection::open(Arc::new(disk.clone()));
    assert_eq!(disk.operations(), before, "it is only looked at");
    inspected
}

/// What is damaged in log `index`, and what is only noted.
fn findings(disk: &TestDisk, index: u32) -> (Vec<String>, Vec<String>) {
    let before = disk.operations();
    let check = inspect(disk).verify(partition(index));
    assert_eq!(disk.operations(), before, "it is only looked at");
    let of = |severity| {
        let some = check.findings.iter().filter(|(found, _)| *found == severity);
        some.map(|(_, finding)| format!("{}: {}", finding.chunk, finding.message)).collect()
    };
    (of(Severity::Damage), of(Severity::Note))
}

fn files(disk: &TestDisk, index: u32, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new("logs").join(partition(0).topic_id.to_string()).join(index.to_string());
    let mut paths = disk.paths();
    paths.retain(|path| {
        path.starts_with(&folder) && path.extension().is_some_and(|kind| kind == extension)
    });
    paths
}

/// The names of one folder reach the medium in any order: of a first start whose power is cut between the
/// snapshot's rename and the sync of the folder, the snapshot may be there without the journal's folder.
#[tokio::test]
async fn a_snapshot_without_the_journals_folder_is_whole() {
    let disk = Running::on(&TestDisk::new()).close().await;
    let mut replay = Replay::of(&disk);
    while !matches!(replay.step().expect("a snapshot is renamed"), Operation::Rename { .. }) {}
    let images = (0..64).map(|seed| replay.after(Crash::Torn(seed)));
    let (snapshot, journal) = (Path::new("snapshot"), Path::new("journal"));
    let holds = |disk: &TestDisk, path| disk.open(path, OpenMode::Existing).is_ok();
    let image = images.into_iter().find(|it| holds(it, snapshot) && it.list(journal).is_err());
    let image = image.expect("one of them lost one name and kept the other");
    assert_eq!(inspect(&image).list().unwrap().len(), 0);
    let subject = Running::on(&image).open(0).await;
    assert_eq!(subject.append_some(3).await.len(), 3);
}

#[tokio::test]
async fn a_whole_folder_has_no_faults_however_it_was_left() {
    let disk = folder().await;
    let images = [Crash::KeepAll, Crash::DropAll, Crash::Torn(1), Crash::Torn(2)];
    let mut images: Vec<_> = images.iter().map(|crash| disk.after(*crash)).collect();
    let recovered = Running::on(&disk.after(Crash::DropAll));
    images.push(recovered.close().await);
    for disk in images {
        for index in [0, 1] {
            let (damage, _) = findings(&disk, index);
            assert_eq!(damage, Vec::<String>::new());
        }
        let inspection = inspect(&disk);
        let listed: Vec<_> = inspection.list().unwrap().into_iter().collect();
        assert_eq!(listed, [partition(0), partition(1)]);
        assert_eq!(inspection.lost(), []);
        assert_eq!(inspection.quarantined(), []);
        let row = inspection.get(Table::Topics, "t".into()).await.unwrap();
        assert_eq!(row.as_deref(), Some(&b"row"[..]));
        assert_eq!(inspection.scan(Table::Topics, None, 9).await.unwrap().rows.len(), 1);
        inspection.commit(MetaBatch::new().put(Table::Topics, "u", "")).await.unwrap_err();
    }
}

#[tokio::test]
async fn each_changed_byte_of_a_batch_is_found_where_it_is() {
    let disk = Running::on(&folder().await.after(Crash::DropAll)).close().await;
    let path = files(&disk, 0, "log").remove(1);
    let file = disk.open(&path, OpenMode::Existing).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    for position in (0..file.size().unwrap()).step_by(37) {
        let mut byte = [0];
        file.read_at(position, &mut byte).unwrap();
        file.write_at(position, &[&[byte[0] ^ 0x40]]).unwrap();
        let (damage, _) = findings(&disk, 0);
        // The leader epoch lies outside of the checksum.
        let is_found = damage.iter().any(|found| found.starts_with(&name));
        let in_epoch = disk_epoch(&*file, position);
        assert!(is_found || in_epoch, "a changed byte at {position}: {damage:?}");
        assert_eq!(findings(&disk, 1).0, Vec::<String>::new(), "others are whole");
        file.write_at(position, &[&byte]).unwrap();
    }
    assert_eq!(findings(&disk, 0).0, Vec::<String>::new());
}

/// Whether a position lies in the leader epoch of its batch.
fn disk_epoch(file: &dyn crate::disk::DiskFile, position: u64) -> bool {
    let mut at = 0;
    while at < file.size().unwrap() {
        let mut length = [0; 4];
        file.read_at(at + 8, &mut length).unwrap();
        let end = at + 12 + u64::from(u32::from_be_bytes(length));
        if (at..end).contains(&position) || end > file.size().unwrap() {
            return (at + 12..at + 16).contains(&position) || (at + 8..at + 12).contains(&position);
        }
        at = end;
    }
    false
}

#[tokio::test]
async fn what_is_missing_short_or_superfluous_is_told_apart() {
    let whole = Running::on(&folder().await.after(Crash::DropAll)).close().await;
    let copy = || whole.after(Crash::KeepAll);

    let disk = copy();
    disk.remove_file(&files(&disk, 0, "log")[2]).unwrap();
    let (damage, _) = findings(&disk, 0);
    assert!(damage.len() == 1 && damage[0].ends_with("file is missing"), "{damage:?}");
    let lost = inspect(&disk).lost();
    assert_eq!(lost.iter().map(|one| one.id).collect::<Vec<_>>(), [partition(0)]);

    let disk = copy();
    let last = disk.open(files(&disk, 1, "log").last().unwrap(), OpenMode::Existing).unwrap();
    last.set_len(last.size().unwrap() - 5).unwrap();
    let (damage, _) = findings(&disk, 1);
    assert!(damage.iter().any(|one| one.contains("file is too short")), "{damage:?}");

    let disk = copy();
    let index = files(&disk, 0, "log").remove(0).with_extension("index");
    let index = disk.open(&index, OpenMode::Either).unwrap();
    index.set_len(0).unwrap();
    // A batch that ends one record behind the first, at byte 1.
    index.write_at(0, &[&[0, 0, 0, 1, 0, 0, 0, 1]]).unwrap();
    let (damage, notes) = findings(&disk, 0);
    assert_eq!(damage, Vec::<String>::new(), "an index is derived");
    assert!(notes.iter().any(|one| one.contains("index entry names no batch")), "{notes:?}");

    let disk = copy();
    let folder = files(&disk, 0, "log").remove(0).parent().unwrap().to_owned();
    let stray = folder.join("00000000000000009999.log");
    disk.open(&stray, OpenMode::New).unwrap().write_at(0, &[b"x"]).unwrap();
    let (damage, notes) = findings(&disk, 0);
    assert_eq!(damage, Vec::<String>::new());
    assert!(notes.iter().any(|one| one.contains("no row names this file")), "{notes:?}");
}

#[tokio::test]
async fn a_segment_that_the_journal_names_and_is_gone_is_damage() {
    // Not stopped cleanly: a batch that went to its segment directly is named by the journal alone.
    let disk = folder().await.after(Crash::DropAll);
    let last = files(&disk, 1, "log").pop().unwrap();
    disk.open(&last, OpenMode::Existing).unwrap().set_len(0).unwrap();
    let (damage, _) = findings(&disk, 1);
    assert!(damage.iter().any(|one| one.contains("not in its segment")), "{damage:?}");
}

#[tokio::test]
async fn what_a_start_would_refuse_is_refused_with_the_same_words() {
    let whole = folder().await.after(Crash::DropAll);
    let mut journals = whole.paths();
    journals.retain(|path| path.extension().is_some_and(|kind| kind == "journal"));
    let mut refused = 0;
    for path in journals {
        for block in 0..whole.contents(&path).unwrap().len() as u64 / 4096 {
            let disk = whole.after(Crash::KeepAll);
            let file = disk.open(&path, OpenMode::Existing).unwrap();
            file.write_at(block * 4096 + 20, &[&[0xff; 64]]).unwrap();
            let seen = try_inspect(&disk).err().map(|error| error.to_string());
            let started = Running::try_with(&disk, FileEngineConfig::tiny());
            assert_eq!(started.err().map(|error| error.to_string()), seen, "{path:?} {block}");
            refused += usize::from(seen.is_some());
        }
    }
    assert!(refused > 0, "a group in the middle is needed");
    assert!(try_inspect(&TestDisk::new()).unwrap_err().to_string().contains("nothing of ours"));
}

#[tokio::test]
async fn a_folder_in_use_is_not_looked_at_and_a_look_keeps_a_start_away() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        FileEngine::open(Arc::new(RealDisk::open(folder.path()).unwrap()), FileEngineConfig::tiny())
    };
    let look = || Inspection::open(Arc::new(ReadOnlyDisk::open(folder.path()).unwrap()));
    let (engine, _) = open().unwrap();
    let refused = look().unwrap_err();
    let us = std::process::id();
    assert!(matches!(refused, OpenError::InUse { process: Some(process) } if process == us));
    engine.close().await.unwrap();
    drop(engine);
    let (first, second) = (look().unwrap(), look().unwrap());
    assert!(matches!(open(), Err(OpenError::InUse { .. })));
    drop((first, second));
    open().unwrap();
}

#[test]
fn a_disk_that_is_only_looked_at_refuses_every_change() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), b"text").unwrap();
    let disk = ReadOnlyDisk::open(folder.path()).unwrap();
    let path = Path::new("file");
    let file = disk.open(path, OpenMode::Existing).unwrap();
    file.write_at(0, &[b"x"]).unwrap_err();
    file.set_len(0).unwrap_err();
    for mode in [OpenMode::New, OpenMode::Either] {
        disk.open(Path::new("other"), mode).unwrap_err();
    }
    disk.rename(path, Path::new("other")).unwrap_err();
    disk.remove_file(path).unwrap_err();
    disk.create_dir(Path::new("dir")).unwrap_err();
    disk.remove_dir(Path::new("dir")).unwrap_err();
    disk.sync_dir(Path::new("")).unwrap_err();
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"text");
    assert_eq!(disk.list(Path::new("")).unwrap().len(), 1);
    ReadOnlyDisk::open(folder.path().join("none")).unwrap_err();
}
