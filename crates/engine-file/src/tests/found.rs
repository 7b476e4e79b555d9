//! What a start, or an opening, finds in a log's folder beside what it believes.

use std::path::{Path, PathBuf};

use strandline_model::{ByteCount, Offset};
use strandline_storage::testkit::{Appended, TestBatch, partition, settings};
use strandline_storage::{LogSettings, LogStore};

use super::Running;
use crate::disk::{Crash, Disk, OpenMode, TestDisk};

/// A log of several segments.
struct Found {
    disk: TestDisk,
    kept: Vec<Appended>,
}

/// Of a clean stop, or of a crash after which the journal has a part of the log.
async fn found(cleanly: bool) -> Found {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::new(450), ..settings() });
    let mut kept = subject.append_some(20).await;
    running.checkpoint().await;
    kept.extend(subject.append_some(5).await);
    assert!(subject.log.chunks().len() > 4);
    if cleanly {
        drop(subject);
        Found { disk: running.close().await, kept }
    } else {
        Found { disk: disk.after(Crash::KeepAll), kept }
    }
}

/// The segments of the log, oldest first.
fn segments(disk: &TestDisk) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    disk.paths().into_iter().filter(is_log).collect()
}

fn newest(disk: &TestDisk) -> PathBuf {
    segments(disk).pop().unwrap()
}

fn add(disk: &TestDisk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, OpenMode::Either).unwrap();
    let size = file.size().unwrap();
    file.write_at(size, &[bytes]).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(path.parent().unwrap()).unwrap();
}

/// The segment that would begin at the end of the log.
fn next(found: &Found) -> PathBuf {
    let end = found.kept.last().unwrap().offsets.end;
    newest(&found.disk).with_file_name(format!("{:020}.log", end.get()))
}

/// A segment among the others that the log does not have.
fn between(found: &Found) -> PathBuf {
    let known = segments(&found.disk);
    let named = |offset: u32| known[0].with_file_name(format!("{offset:020}.log"));
    (1..1000).map(named).find(|path| !known.contains(path)).unwrap()
}

type Leave = fn(&Found);

const LEFTOVERS: &[(&str, Leave)] = &[
    ("half a batch", |found| {
        let batch = &found.kept[0].bytes;
        add(&found.disk, &newest(&found.disk), &batch[..batch.len() / 2]);
    }),
    ("a whole batch that nobody appended", |found| {
        let end = found.kept.last().unwrap().offsets.end;
        let stranger = TestBatch::of(2).seal(end, strandline_model::LeaderEpoch::ZERO);
        add(&found.disk, &newest(&found.disk), stranger.bytes());
    }),
    ("garbage", |found| add(&found.disk, &newest(&found.disk), &[0xa5; 777])),
    ("zeros", |found| add(&found.disk, &newest(&found.disk), &[0; 4096])),
    ("an empty next segment, as a roll leaves it", |found| add(&found.disk, &next(found), &[])),
    ("a next segment of zeros", |found| add(&found.disk, &next(found), &[0; 8192])),
    ("a next segment with a batch", |found| {
        let end = found.kept.last().unwrap().offsets.end;
        let stranger = TestBatch::of(2).seal(end, strandline_model::LeaderEpoch::ZERO);
        add(&found.disk, &next(found), stranger.bytes());
    }),
    ("an index of no segment", |found| {
        add(&found.disk, &next(found).with_extension("index"), &[7; 80]);
        add(&found.disk, &next(found).with_extension("timeindex"), &[]);
    }),
    ("a segment twice", |found| {
        let bytes = found.disk.contents(&segments(&found.disk)[0]).unwrap();
        add(&found.disk, &between(found), &bytes);
    }),
    ("a segment that overlaps others", |found| {
        let bytes: Vec<u8> = segments(&found.disk)
            .iter()
            .take(3)
            .flat_map(|path| found.disk.contents(path).unwrap())
            .collect();
        add(&found.disk, &between(found), &bytes);
    }),
    ("a removal that was cut off", |found| add(&found.disk, &between(found), &[])),
    ("a copy that was cut off", |found| {
        add(&found.disk, &newest(&found.disk).with_extension("log.new"), &[1; 300]);
    }),
    ("indexes that are gone", |found| {
        for path in segments(&found.disk) {
            for extension in ["index", "timeindex"] {
                drop(found.disk.remove_file(&path.with_extension(extension)));
            }
        }
    }),
    ("indexes that are too long", |found| {
        for path in segments(&found.disk) {
            for extension in ["index", "timeindex"] {
                add(&found.disk, &path.with_extension(extension), &[0xff; 120]);
            }
        }
    }),
];

#[tokio::test]
async fn what_a_log_did_not_keep_changes_nothing_of_it() {
    for (label, leave) in LEFTOVERS {
        for cleanly in [true, false] {
            println!("{label}, cleanly: {cleanly}");
            let found = found(cleanly).await;
            leave(&found);
            let Found { disk, mut kept } = found;
            let running = Running::on(&disk);
            assert_eq!(running.report.damaged, []);
            let subject = running.open(0).await;
            assert_eq!(subject.log.bounds().durable_end, kept.last().unwrap().offsets.end);
            subject.assert_holds(&kept).await;
            kept.push(subject.append(TestBatch::of(3)).await);
            for one in &kept {
                let found = subject.log.find_timestamp(one.timestamp.unwrap()).await.unwrap();
                assert!(found.is_some_and(|found| Some(found.max_timestamp) >= one.timestamp));
            }
            running.checkpoint().await;
            wait_until_only_segments_of(&subject.log.chunks(), &disk);
            assert_eq!(running.file.verify(partition(0)).await.unwrap(), []);
            for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(3)] {
                Running::on(&disk.after(crash)).open(0).await.assert_holds(&kept).await;
            }
        }
    }
}

/// Dropped segments go in paced steps: a poll with a deadline.
fn wait_until_only_segments_of(chunks: &[strandline_storage::ChunkInfo], disk: &TestDisk) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let expected: Vec<Offset> = chunks.iter().map(|chunk| chunk.base_offset).collect();
    loop {
        let stems = segments(disk).into_iter().map(|path| {
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            Offset::new(stem.parse().unwrap())
        });
        let found: Vec<Offset> = stems.collect();
        if found == expected {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{found:?} instead of {expected:?}");
        std::thread::yield_now();
    }
}

/// Files of a name that is none of ours are somebody else's.
#[tokio::test]
async fn a_file_of_a_strange_name_is_left_alone() {
    let Found { disk, kept } = found(true).await;
    let names = ["00000000000000000003.log.deleted", "leader-epoch-checkpoint", "3.log"];
    for name in names {
        add(&disk, &newest(&disk).with_file_name(name), b"not ours");
    }
    let running = Running::on(&disk);
    running.open(0).await.assert_holds(&kept).await;
    for name in names {
        assert_eq!(disk.contents(newest(&disk).with_file_name(name)).unwrap(), b"not ours");
    }
}
