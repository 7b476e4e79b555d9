//! Full disks, a full journal, checkpoints and what they free.

use std::path::Path;

use strandline_model::{ByteCount, Offset};
use strandline_storage::testkit::{TestBatch, partition, settings};
use strandline_storage::{
    AppendError, ErrorKind, LogSettings, LogStore, MetaBatch, MetaStore, Removal, Table,
};

use super::Running;
use crate::FileEngineConfig;
use crate::disk::{Crash, Disk, TestDisk};

#[tokio::test]
async fn the_journal_stays_within_its_cap_however_much_is_appended() {
    let disk = TestDisk::new();
    let config = FileEngineConfig::tiny();
    let (cap, queue_max) = (config.journal_cap.get(), config.queue_max.get());
    let running = Running::with(&disk, config);
    let subject = running.open(0).await;
    let mut kept = Vec::new();
    for _ in 0..600 {
        kept.push(subject.submit(TestBatch::of(3).value_bytes(1000)).await);
    }
    for (_, ticket) in &mut kept {
        ticket.await.unwrap();
    }
    let journal: u64 = disk
        .list(Path::new("journal"))
        .unwrap()
        .into_iter()
        .map(|entry| disk.contents(Path::new("journal").join(entry.name)).unwrap().len() as u64)
        .sum();
    assert!(journal <= cap * 2, "{journal}");
    let kept: Vec<_> = kept.into_iter().map(|(appended, _)| appended).collect();
    let recovered = Running::on(&disk.after(Crash::DropAll));
    // Appends stop at three quarters of the cap, but what was queued by then is written.
    let replayed = recovered.report.bytes_replayed;
    assert!(replayed <= cap * 3 / 4 + queue_max, "checkpoints were made: {replayed}");
    recovered.open(0).await.assert_holds(&kept).await;
}

#[tokio::test]
async fn a_full_disk_refuses_appends_lets_rows_and_removals_go_on_and_recovers() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let (large, small) = (running.open(0).await, running.open(1).await);
    let batch = TestBatch::of(1).value_bytes(8000);
    let mut kept = vec![small.append(batch).await];
    for _ in 0..10 {
        large.append(batch).await;
    }
    running.checkpoint().await;
    let used: usize =
        disk.paths().iter().filter_map(|path| disk.contents(path)).map(|b| b.len()).sum();
    let reserve = FileEngineConfig::tiny().reserve;
    disk.set_capacity(Some(ByteCount::new(used as u64 + reserve.get() + 4000)));
    // Noticed at the next look, or by the write itself.
    let error = loop {
        let at = small.log.bounds().written_end;
        match small.log.submit(at, batch.seal(at, small.epoch)) {
            Ok(ticket) => match ticket.await {
                Ok(()) => kept.push(appended(at, batch, small.epoch)),
                Err(error) => break error,
            },
            Err(AppendError::Busy) => small.log.ready().await,
            Err(AppendError::Refused(error)) => break error,
            Err(error @ AppendError::Moved { .. }) => panic!("{error}"),
        }
    };
    assert_eq!(error.kind(), ErrorKind::Full);
    running.file.commit(MetaBatch::new().put(Table::Deletions, "t", "")).await.unwrap();
    drop(large);
    while running.file.remove_some(partition(0), ByteCount::kib(64)).await.unwrap() != Removal::Done
    {
    }
    drop(small);
    let small = running.open(1).await;
    kept.push(small.append(batch).await);
    small.assert_holds(&kept).await;
}

/// Room is what deleting makes; the start must not need it.
#[tokio::test]
async fn a_start_on_a_full_disk_serves_reads_and_removals_and_goes_on_when_there_is_room() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let (large, small) = (running.open(0).await, running.open(1).await);
    let batch = TestBatch::of(1).value_bytes(8000);
    let mut kept = vec![small.append(batch).await];
    running.checkpoint().await;
    kept.extend(small.append_some(4).await);
    for _ in 0..10 {
        large.append(batch).await;
    }
    let images = [disk.after_death(), disk.after(Crash::KeepAll)];
    let cleanly = {
        drop((large, small));
        running.close().await
    };
    for image in images.into_iter().chain([cleanly]) {
        let used: usize =
            image.paths().iter().filter_map(|path| image.contents(path)).map(|b| b.len()).sum();
        image.set_capacity(Some(ByteCount::new(used as u64)));
        let running = Running::on(&image);
        let small = running.open(1).await;
        small.assert_holds(&kept).await;
        let at = small.log.bounds().written_end;
        let refused = small.log.submit(at, batch.seal(at, small.epoch));
        let Err(AppendError::Refused(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.kind(), ErrorKind::Full);
        let removal = async {
            while running.file.remove_some(partition(0), ByteCount::kib(64)).await.unwrap()
                != Removal::Done
            {}
        };
        removal.await;
        assert_eq!(running.file.list().await.unwrap(), [partition(1)]);
        image.set_capacity(None);
        let appended = small.append(batch).await;
        let all: Vec<_> = kept.iter().cloned().chain([appended]).collect();
        Running::on(&image.after(Crash::DropAll)).open(1).await.assert_holds(&all).await;
    }
}

fn appended(
    at: Offset,
    batch: TestBatch,
    epoch: strandline_model::LeaderEpoch,
) -> strandline_storage::testkit::Appended {
    let sealed = batch.seal(at, epoch);
    strandline_storage::testkit::Appended {
        offsets: at..sealed.next_offset(),
        bytes: sealed.bytes().clone(),
        timestamp: batch.timestamp,
    }
}

#[tokio::test]
async fn a_trim_drops_files_and_recovery_does_not_bring_them_back() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(2), ..settings() });
    let kept = subject.append_some(100).await;
    let chunk = subject.log.chunks()[3].clone();
    subject.log.trim(chunk.next_offset).await.unwrap();
    let name = disk.paths().into_iter().find(|path| path.ends_with("00000000000000000000.log"));
    if let Some(name) = name {
        // The sweeper may not have come to it yet; a poll with a deadline, not a sleep.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while disk.contents(&name).is_some() {
            assert!(std::time::Instant::now() < deadline, "dropped segments are swept");
            std::thread::yield_now();
        }
    }
    for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(5)] {
        let recovered = Running::on(&disk.after(crash));
        let again = recovered.open(0).await;
        assert_eq!(again.log.bounds().log_start, chunk.next_offset);
        again.assert_holds(&kept).await;
        assert_eq!(recovered.file.verify(partition(0)).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_removed_log_stays_away_after_any_crash() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    subject.append_some(50).await;
    drop(subject);
    let step = running.file.remove_some(partition(0), ByteCount::new(1)).await.unwrap();
    assert!(matches!(step, Removal::Remaining(_)), "{step:?}");
    for crash in [Crash::KeepAll, Crash::DropAll] {
        let recovered = Running::on(&disk.after(crash));
        assert_eq!(recovered.file.list().await.unwrap(), [partition(0)]);
        let refused = recovered
            .file
            .open(strandline_storage::testkit::open_request(0, &std::sync::Arc::default()))
            .await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
        while recovered.file.remove_some(partition(0), ByteCount::mib(1)).await.unwrap()
            != Removal::Done
        {}
        let again = Running::on(&recovered.disk.after(Crash::DropAll));
        assert_eq!(again.file.list().await.unwrap(), []);
    }
}
