//! Folders of other versions: an older one goes on in ours, a newer one is refused.

use std::path::{Path, PathBuf};

use strandline_model::{LeaderEpoch, Offset};
use strandline_records::crc32c;
use strandline_storage::testkit::TestBatch;
use strandline_storage::{MetaStore, Table};

use super::Running;
use crate::disk::{Crash, Disk, OpenMode, Replay, TestDisk};
use crate::snapshot::VERSION;
use crate::{FileEngineConfig, Inspection, OpenError, Started};

/// Folders that the program wrote before segments were rewritten and logs set aside.
const FIRST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/v1");

/// A folder of the first version, and what it holds.
struct Old {
    /// Its name below [`FIRST`].
    name: &'static str,
    started: Started,
    /// Records of each batch of the first log, whose start is 1.
    records: &'static [u32],
    /// Where the second log ends.
    second_end: i64,
}

const OLD: [Old; 2] = [
    Old { name: "closed", started: Started::Clean, records: &[1, 2, 3, 1, 2], second_end: 0 },
    Old {
        name: "killed",
        started: Started::Recovered,
        records: &[1, 2, 3, 1, 2, 1, 2, 3, 4],
        second_end: 1,
    },
];

/// The folder `name` on a disk in memory, durable.
fn load(name: &str) -> TestDisk {
    let disk = TestDisk::new();
    copy(&disk, &Path::new(FIRST).join(name), Path::new(""));
    disk.after(Crash::DropAll)
}

fn copy(disk: &TestDisk, from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let path = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            disk.create_dir(&path).unwrap();
            copy(disk, &entry.path(), &path);
        } else {
            let file = disk.open(&path, OpenMode::New).unwrap();
            file.write_at(0, &[&std::fs::read(entry.path()).unwrap()]).unwrap();
            file.sync_data().unwrap();
        }
    }
    disk.sync_dir(to).unwrap();
}

/// The version that a program finds, before it looks at anything else.
fn version(disk: &TestDisk) -> u32 {
    let snapshot = disk.contents("snapshot").unwrap();
    u32::from_be_bytes(snapshot[12..16].try_into().unwrap())
}

/// Opens the folder and reads everything. What nobody opened before ended uncleanly or not.
async fn assert_is_whole(disk: &TestDisk, old: &Old) -> Running {
    let running = Running::on(disk);
    assert_eq!(version(disk), VERSION, "{}: raised before anybody is served", old.name);
    let row = running.file.get(Table::Topics, "key".into()).await.unwrap();
    assert_eq!(row.unwrap(), "value");
    let subject = running.open(0).await;
    let mut at = Offset::ZERO;
    let mut expected = Vec::new();
    for records in old.records {
        let sealed = TestBatch::of(*records).seal(at, LeaderEpoch::ZERO);
        at = sealed.next_offset();
        if at > Offset::new(1) {
            expected.extend_from_slice(sealed.bytes());
        }
    }
    let bounds = subject.log.bounds();
    assert_eq!((bounds.log_start, bounds.durable_end), (Offset::new(1), at), "{}", old.name);
    assert_eq!(subject.read_all(bounds.log_start).await, expected, "{}", old.name);
    let second = running.open(1).await.log.bounds().durable_end;
    assert_eq!(second, Offset::new(old.second_end), "{}", old.name);
    running
}

#[tokio::test]
async fn a_folder_of_the_first_version_goes_on_in_ours() {
    for old in OLD {
        let disk = load(old.name);
        assert_eq!(version(&disk), 1);
        drop(Inspection::open(std::sync::Arc::new(disk.clone())).unwrap());
        assert_eq!(version(&disk), 1, "a look changes nothing");
        let running = assert_is_whole(&disk, &old).await;
        assert_eq!(running.report.started, old.started, "{}", old.name);
        let kept = running.open(1).await.append_some(2).await.len();
        let disk = running.close().await;
        let running = Running::on(&disk);
        let end = running.open(1).await.log.bounds().durable_end.get();
        assert_eq!((kept, end), (2, old.second_end + 3), "{}", old.name);
    }
}

#[tokio::test]
async fn a_cut_while_a_folder_is_raised_leaves_the_old_one_or_ours() {
    for old in OLD {
        let disk = load(old.name);
        drop(Running::on(&disk));
        let mut replay = Replay::of(&disk);
        let mut seen = Vec::new();
        while replay.step().is_some() {
            for crash in [Crash::DropAll, Crash::KeepAll, Crash::Torn(replay.done() as u64)] {
                let left = replay.after(crash);
                seen.push(version(&left));
                drop(assert_is_whole(&left, &old).await);
            }
        }
        seen.dedup();
        assert!(seen.starts_with(&[1]) && seen.ends_with(&[VERSION]), "{}: {seen:?}", old.name);
    }
}

#[tokio::test]
async fn a_folder_of_a_newer_version_is_refused_and_left_alone() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    running.open(0).await.append_some(2).await;
    let disk = running.close().await;
    let mut header = disk.contents("snapshot").unwrap()[..96].to_vec();
    header[12..16].copy_from_slice(&(VERSION + 1).to_be_bytes());
    let checksum = crc32c(&header[12..]);
    header[8..12].copy_from_slice(&checksum.to_be_bytes());
    let file = disk.open(Path::new("snapshot"), OpenMode::Existing).unwrap();
    file.write_at(0, &[&header]).unwrap();
    let contents = |disk: &TestDisk| {
        let files = disk.paths().into_iter().filter(|path| path != Path::new("lock"));
        files.map(|path| (path.clone(), disk.contents(path))).collect::<Vec<(PathBuf, _)>>()
    };
    let before = contents(&disk);
    let opened = Running::try_with(&disk, FileEngineConfig::tiny()).err().unwrap();
    let looked_at = Inspection::open(std::sync::Arc::new(disk.clone())).err().unwrap();
    for refused in [opened, looked_at] {
        assert!(matches!(refused, OpenError::Newer { found: 3, supported: 2 }), "{refused}");
        let text = "data folder has format version 3, this program reads up to 2: start the newer \
                    program again";
        assert_eq!(refused.to_string(), text);
    }
    assert_eq!(contents(&disk), before);
}
