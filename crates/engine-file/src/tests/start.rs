//! How a start finds a folder.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use strandline_model::{ByteCount, LeaderEpoch, Offset};
use strandline_storage::testkit::{Recorder, TestBatch, open_request, partition, settings};
use strandline_storage::{
    Durability, ErrorKind, Found, LogSettings, LogStore, MetaBatch, MetaStore, Table,
};

use super::Running;
use crate::disk::{Crash, Disk, OpenMode, Operation, Replay, TestDisk};
use crate::{FileEngine, FileEngineConfig, OpenError, Started};

#[tokio::test]
async fn a_folder_is_new_then_clean_then_recovered() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    assert_eq!(running.report.started, Started::New);
    running.open(0).await.append_some(3).await;
    let disk = running.close().await;

    let running = Running::on(&disk);
    assert_eq!(running.report.started, Started::Clean);
    assert_eq!((running.report.topics, running.report.partitions), (1, 1));
    assert_eq!(running.report.batches_replayed, 0);
    let subject = running.open(0).await;
    assert_eq!((subject.found, subject.epoch), (Found::Clean, LeaderEpoch::ZERO));
    subject.append_some(2).await;

    let crashed = disk.after(Crash::DropAll);
    let again = Running::on(&crashed);
    assert_eq!(again.report.started, Started::Recovered);
    assert_eq!(again.report.batches_replayed, 2, "only what came after the stop is read");
    let subject = again.open(0).await;
    assert_eq!((subject.found, subject.epoch), (Found::Unclean, LeaderEpoch::new(1)));
    assert_eq!(subject.log.bounds().durable_end, Offset::new(9));
}

#[tokio::test]
async fn a_partition_that_nobody_opened_keeps_its_unclean_stop_in_mind() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    running.open(0).await.append_some(1).await;
    let disk = disk.after(Crash::DropAll);
    // Started, closed and started again without a look at the log.
    let disk = Running::on(&disk).close().await;
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    assert_eq!((subject.found, subject.epoch), (Found::Unclean, LeaderEpoch::new(1)));
    subject.append_some(1).await;
    drop(subject);
    let disk = running.close().await;
    let subject = Running::on(&disk).open(0).await;
    assert_eq!((subject.found, subject.epoch), (Found::Clean, LeaderEpoch::new(1)));
}

#[tokio::test]
async fn a_run_that_left_nothing_but_a_begun_file_stopped_uncleanly() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    running.open(0).await.append_some(1).await;
    let disk = running.close().await;
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    subject.log.configure(LogSettings { durability: Durability::Never, ..settings() });
    subject.append(TestBatch::of(2)).await;
    // What readers saw at these offsets is gone: whoever writes there next must be told apart.
    let again = Running::on(&disk.after(Crash::DropAll));
    let subject = again.open(0).await;
    assert_eq!(subject.log.bounds().durable_end, Offset::new(1));
    assert_eq!((subject.found, subject.epoch), (Found::Unclean, LeaderEpoch::new(1)));
}

/// The process dies at any moment of a run; the next one goes on with what the system still knows;
/// then the power goes.
#[tokio::test]
async fn a_power_cut_after_the_death_of_a_process_takes_nothing_of_the_next_one() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    running.open(0).await.append_some(2).await;
    running.checkpoint().await;
    running.open(1).await.append_some(1).await;
    let disk = running.close().await;
    let running = Running::on(&disk);
    running.open(0).await.append_some(1).await;
    running.close().await;
    let mut replay = Replay::of(&disk);
    while replay.step().is_some() {
        let survivor = replay.after_death();
        let running = Running::on(&survivor);
        let subject = running.open(2).await;
        let kept = subject.append_some(2).await;
        for crash in [Crash::DropAll, Crash::Torn(replay.done() as u64)] {
            let recovered = Running::on(&survivor.after(crash));
            recovered.open(2).await.assert_holds(&kept).await;
        }
    }
}

#[tokio::test]
async fn a_folder_in_use_is_refused_with_the_process_that_has_it() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let refused = FileEngine::open(Arc::new(disk.clone()), FileEngineConfig::tiny()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { process: Some(id) } if id == std::process::id()));
    let text = format!("data folder is in use by process {}", std::process::id());
    assert_eq!(refused.to_string(), text);
    drop(running);
    Running::on(&disk);
}

#[tokio::test]
async fn a_folder_without_its_snapshot_is_refused_and_left_alone() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    running.open(0).await.append_some(1).await;
    let disk = running.close().await;
    disk.remove_file(Path::new("snapshot")).unwrap();
    let before = disk.paths();
    let refused = Running::try_with(&disk, FileEngineConfig::tiny()).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert_eq!(disk.paths(), before);
}

#[tokio::test]
async fn an_older_snapshot_in_its_place_is_noticed() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    subject.append_some(1).await;
    running.checkpoint().await;
    let old = disk.contents("snapshot").unwrap();
    subject.append_some(1).await;
    running.checkpoint().await;
    subject.append_some(1).await;
    let crashed = disk.after(Crash::KeepAll);
    let file = crashed.open(Path::new("snapshot"), OpenMode::Existing).unwrap();
    file.set_len(0).unwrap();
    file.write_at(0, &[&old]).unwrap();
    let refused = Running::try_with(&crashed, FileEngineConfig::tiny()).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
}

#[tokio::test]
async fn a_log_whose_file_is_gone_is_never_opened_empty() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    running.open(0).await.append_some(1).await;
    let disk = running.close().await;
    let segment =
        disk.paths().into_iter().find(|path| path.extension().is_some_and(|e| e == "log"));
    disk.remove_file(&segment.unwrap()).unwrap();
    let running = Running::on(&disk);
    let refused = running.file.open(open_request(0, &Arc::new(Recorder::default()))).await;
    let kind = refused.unwrap_err().kind();
    assert!(matches!(kind, ErrorKind::Missing | ErrorKind::Corrupt), "{kind:?}");
}

#[tokio::test]
async fn opening_a_log_that_never_had_bytes_writes_nothing() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    running.checkpoint().await;
    let before = disk.operations();
    for index in 0..50 {
        drop(running.open(index).await);
    }
    assert_eq!(disk.operations(), before);
    assert_eq!(running.file.list().await.unwrap(), []);
    assert_eq!(running.file.epoch(partition(7)), Some(LeaderEpoch::ZERO));
}

#[tokio::test]
async fn a_crash_during_recovery_starts_it_again() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    let mut appended = subject.append_some(40).await;
    running.checkpoint().await;
    appended.extend(subject.append_some(20).await);
    let row = MetaBatch::new().put(Table::Cluster, "k", "v");
    running.file.commit(row).await.unwrap();
    let crashed = disk.after(Crash::DropAll);
    let mut limit = 0;
    let recovered = loop {
        let attempt = crashed.after(Crash::KeepAll);
        attempt.power_off_after(limit);
        if let Ok(running) = Running::try_with(&attempt, FileEngineConfig::tiny()) {
            break running;
        }
        let left = attempt.after(Crash::Torn(limit as u64));
        let running = Running::on(&left);
        running.open(0).await.assert_holds(&appended).await;
        limit += 1;
    };
    assert!(limit > 5, "recovery does something");
    drop(recovered);
}

#[tokio::test]
async fn a_recovery_of_many_logs_keeps_few_files_unsynced() {
    let disk = TestDisk::new();
    // Without a checkpoint all of them are to be recovered.
    let config = FileEngineConfig {
        open_files_max: 1000,
        checkpoint_at: ByteCount::mib(1),
        ..FileEngineConfig::tiny()
    };
    let running = Running::with(&disk, config);
    for index in 0..60 {
        running.open(index).await.append(TestBatch::of(1)).await;
    }
    let crashed = disk.after(Crash::DropAll);
    drop(Running::on(&crashed));
    let (mut unsynced, mut most) = (BTreeSet::new(), 0);
    let mut replay = Replay::of(&crashed);
    while let Some(operation) = replay.step() {
        match operation {
            Operation::Write { file, .. } => drop(unsynced.insert(file)),
            Operation::Sync(file) => drop(unsynced.remove(&file)),
            _ => {}
        }
        most = most.max(unsynced.len());
    }
    let open_files_max = FileEngineConfig::tiny().open_files_max;
    assert!((4..=open_files_max).contains(&most), "{most}");
}

#[tokio::test]
async fn spare_files_that_exceed_what_is_kept_are_removed_at_start() {
    let disk = Running::on(&TestDisk::new()).close().await;
    let config = FileEngineConfig::tiny();
    for slot in 10..40 {
        let path = format!("journal/{slot:04}.journal");
        let file = disk.open(Path::new(&path), OpenMode::New).unwrap();
        file.write_zeros(0, config.journal_file.get()).unwrap();
    }
    let kept_max = config.journal_cap.get() / 2;
    let running = Running::with(&disk, config);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let paths = disk.paths().into_iter().filter(|path| path.starts_with("journal/"));
        let bytes: usize = paths.filter_map(|path| disk.contents(path)).map(|b| b.len()).sum();
        if bytes as u64 <= kept_max {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{bytes} of {kept_max}");
        std::thread::yield_now();
    }
    running.close().await;
}

#[tokio::test]
async fn tickets_of_a_dropped_engine_resolve() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    let (_, ticket) = subject.submit(TestBatch::of(1)).await;
    drop((subject, running));
    ticket.await.expect("what was queued is done before the threads end");
}
