//! A folder that was copied file by file while an engine worked in it, which nobody should do.
//!
//! The copy mixes moments: it may be refused, and a log of it may be damaged; what it serves must be
//! what was appended there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{ByteCount, Offset};
use strandline_records::batches;
use strandline_storage::testkit::{Subject, TestBatch, open_request, partition, settings};
use strandline_storage::{ErrorKind, LogSettings, LogStore, MetaBatch, MetaStore, Opened, Table};

use super::Running;
use crate::disk::{Disk, OpenMode, TestDisk};
use crate::{FileEngineConfig, OpenError};

const LOGS: u32 = 3;

/// `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ (x >> 31)) % end as u64).unwrap()
    }
}

/// The engine in the folder, and everything that it was given.
struct Work {
    running: Running,
    logs: Vec<Subject>,
    appended: BTreeMap<(usize, Offset), Bytes>,
    rows: u64,
}

impl Work {
    async fn begin(disk: &TestDisk) -> Self {
        let running = Running::on(disk);
        let mut logs = Vec::new();
        for index in 0..LOGS {
            let subject = running.open(index).await;
            let segment_bytes = ByteCount::new(6000);
            subject.log.configure(LogSettings { segment_bytes, ..settings() });
            logs.push(subject);
        }
        Self { running, logs, appended: BTreeMap::new(), rows: 0 }
    }

    async fn go_on(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.below(6) {
            let at = dice.below(self.logs.len());
            let subject = &self.logs[at];
            match dice.below(12) {
                0 => self.running.checkpoint().await,
                1 => {
                    let chunks = subject.log.chunks();
                    if chunks.len() > 2 {
                        subject.log.trim(chunks[1].next_offset).await.unwrap();
                    }
                }
                2 => {
                    self.rows += 1;
                    let row = self.rows.to_string();
                    let batch = MetaBatch::new().put(Table::Cluster, "a", row.clone());
                    let batch = batch.put(Table::Topics, "b", row);
                    self.running.file.commit(batch).await.unwrap();
                }
                size => {
                    let value_bytes = if size == 3 { 4500 } else { 300 };
                    let one = subject.append(TestBatch::of(2).value_bytes(value_bytes)).await;
                    self.appended.insert((at, one.offsets.start), one.bytes);
                }
            }
        }
    }

    /// Copies every file that there is at the beginning, one after another, in some order.
    async fn copy(&mut self, dice: &mut Dice) -> TestDisk {
        let (disk, copy) = (self.running.disk.clone(), TestDisk::new());
        let mut left: Vec<PathBuf> = disk.paths();
        while !left.is_empty() {
            let path = left.swap_remove(dice.below(left.len()));
            if let Some(bytes) = disk.contents(&path) {
                paste(&copy, &path, &bytes);
                self.go_on(dice).await;
            }
        }
        copy
    }
}

fn paste(copy: &TestDisk, path: &Path, bytes: &[u8]) {
    let mut above: Vec<_> = path.ancestors().skip(1).collect();
    above.reverse();
    for folder in above {
        if folder != Path::new("") {
            copy.create_dir(folder).unwrap();
        }
    }
    copy.open(path, OpenMode::New).unwrap().write_at(0, &[bytes]).unwrap();
}

/// Whether the copy was taken for a folder.
async fn check(copy: &TestDisk, work: &Work) -> bool {
    let running = match Running::try_with(copy, FileEngineConfig::tiny()) {
        Ok(running) => running,
        Err(OpenError::Damaged { .. }) => return false,
        Err(error) => panic!("not damaged, but {error}"),
    };
    let row = |table, key: &'static str| {
        let file = Arc::clone(&running.file);
        async move { file.get(table, key.into()).await.unwrap() }
    };
    assert_eq!(row(Table::Cluster, "a").await, row(Table::Topics, "b").await, "half a commit");
    for index in 0..LOGS {
        let opened = running.file.open(open_request(index, &Arc::default())).await;
        let log = match opened {
            Ok(Opened { log, .. }) => log,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                continue;
            }
        };
        let bounds = log.bounds();
        let mut from = bounds.log_start;
        while from < bounds.durable_end {
            let limit = strandline_storage::ReadLimit {
                bytes: ByteCount::kib(64),
                minimum: strandline_storage::Minimum::OneBatch,
            };
            let bytes = match log.read(from, bounds.durable_end, limit).await {
                Ok(read) => read.read_to_memory().unwrap(),
                // A segment that is not the last is compared when it is read.
                Err(strandline_storage::ReadError::Storage(error)) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Missing),
                        "{error}"
                    );
                    break;
                }
                Err(error) => panic!("{error}"),
            };
            for batch in batches(&bytes) {
                let batch = batch.unwrap();
                let base = batch.base_offset().unwrap();
                let expected = work.appended.get(&(index as usize, base));
                assert!(
                    expected.is_some_and(|expected| expected == batch.bytes()),
                    "{}: other bytes than were appended at {base}",
                    partition(index)
                );
                from = batch.next_offset().unwrap();
            }
        }
    }
    true
}

#[tokio::test]
async fn a_folder_copied_while_running_is_refused_or_serves_what_was_there() {
    let mut taken = 0;
    let copies = 60;
    for seed in 0..copies {
        let mut dice = Dice(seed);
        let mut work = Work::begin(&TestDisk::new()).await;
        for _ in 0..10 {
            work.go_on(&mut dice).await;
        }
        let copy = work.copy(&mut dice).await;
        println!("copy of seed {seed}");
        taken += u64::from(check(&copy, &work).await);
    }
    assert!(0 < taken && taken < copies, "{taken} of {copies} were taken for a folder");
}
