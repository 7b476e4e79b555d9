//! A segment that somebody cut: told of by a look, and the others stay readable.

use std::path::{Path, PathBuf};

use strandline_model::{ByteCount, Offset};
use strandline_storage::testkit::{Appended, TestBatch, partition, settings};
use strandline_storage::{ErrorKind, LogSettings, LogStore, LossCertainty, Minimum, ReadLimit};

use super::Running;
use crate::Inspection;
use crate::disk::{Disk, OpenMode, TestDisk};

fn segments(disk: &TestDisk) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    disk.paths().into_iter().filter(is_log).collect()
}

fn cut(disk: &TestDisk, path: &Path, by: u64) {
    let file = disk.open(path, OpenMode::Existing).unwrap();
    file.set_len(file.size().unwrap() - by).unwrap();
}

/// A folder with a log of many segments that was stopped cleanly.
async fn stopped() -> (TestDisk, Vec<Appended>) {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::new(450), ..settings() });
    let kept = subject.append_some(20).await;
    drop(subject);
    (running.close().await, kept)
}

#[tokio::test]
async fn a_closed_segment_that_was_cut_is_told_of_and_the_others_are_read() {
    for is_open in [false, true] {
        let (disk, mut kept) = stopped().await;
        let path = segments(&disk).remove(1);
        let base = path.file_stem().unwrap().to_string_lossy().parse().map(Offset::new).unwrap();
        if !is_open {
            cut(&disk, &path, 1);
        }
        let running = Running::on(&disk);
        let subject = running.open(0).await;
        if is_open {
            subject.assert_holds(&kept).await;
            cut(&disk, &path, 1);
        }
        let [lost] = &running.file.lost().await.unwrap()[..] else { panic!("one is damaged") };
        assert_eq!((lost.id, lost.certainty), (partition(0), LossCertainty::InPart));
        assert!(lost.what.contains("segment is shorter than it was. file=`logs/"), "{lost:?}");
        assert!(lost.what.contains("bytes=`") && lost.what.contains("expected=`"), "{lost:?}");

        // It goes on, and all but that segment is read.
        kept.push(subject.append(TestBatch::of(2)).await);
        let next = kept.iter().find(|one| one.offsets.start > base).unwrap().offsets.start;
        let end = subject.log.bounds().durable_end;
        let limit = ReadLimit { bytes: ByteCount::mib(1), minimum: Minimum::OneBatch };
        let mut read = 0;
        for one in &kept {
            if subject.log.read(one.offsets.start, end, limit).await.is_ok() {
                read += 1;
            }
        }
        assert!(read >= kept.len() - 4 && next > base, "{read} of {}", kept.len());
        drop(subject);
        let disk = running.close().await;
        let [lost] = &Inspection::open(std::sync::Arc::new(disk)).unwrap().lost()[..] else {
            panic!("it is told of a folder that nobody serves")
        };
        assert_eq!(lost.certainty, LossCertainty::InPart);
    }
}

#[tokio::test]
async fn a_last_segment_that_was_cut_stops_its_log_and_is_told_of() {
    for is_open in [false, true] {
        let (disk, kept) = stopped().await;
        let path = segments(&disk).pop().unwrap();
        let whole = disk.contents(&path).unwrap();
        let running = Running::on(&disk);
        if is_open {
            let subject = running.open(0).await;
            cut(&disk, &path, 1);
            let [lost] = &running.file.lost().await.unwrap()[..] else { panic!("it is lost") };
            assert_eq!(lost.certainty, LossCertainty::Gone);
            let error = subject.log.load_state().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "nobody writes behind a hole: {error}");
        } else {
            cut(&disk, &path, 1);
        }
        let [lost] = &running.file.lost().await.unwrap()[..] else { panic!("it is lost") };
        assert_eq!((lost.id, lost.certainty), (partition(0), LossCertainty::Gone));
        assert!(lost.what.contains("segment is shorter than it was"), "{lost:?}");
        let request = strandline_storage::testkit::open_request(0, &std::sync::Arc::default());
        let refused = running.file.open(request).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);

        // It is there again.
        let file = disk.open(&path, OpenMode::Existing).unwrap();
        file.write_at(0, &[&whole]).unwrap();
        assert_eq!(running.file.lost().await.unwrap(), []);
        running.open(0).await.assert_holds(&kept).await;
    }
}
