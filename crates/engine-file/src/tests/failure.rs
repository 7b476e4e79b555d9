//! Failed writes and syncs, of the journal and of segments.

use std::io;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use strandline_model::{ByteCount, LeaderEpoch, Offset};
use strandline_storage::testkit::{Subject, TestBatch, settings};
use strandline_storage::{
    AppendError, CommitError, Durability, ErrorKind, Found, LogSettings, LogStore, MetaBatch,
    MetaStore, Minimum, ReadError, ReadLimit, Table, Ticket,
};

use super::Running;
use crate::FileEngineConfig;
use crate::disk::{Crash, Fault, Persisted, TestDisk};
use crate::journal::BLOCK_BYTES;

/// Everything goes to the first file, which no thread but the one that commits touches.
fn one_file() -> FileEngineConfig {
    let journal_first_file = ByteCount::new(64 * BLOCK_BYTES);
    FileEngineConfig { journal_first_file, ..FileEngineConfig::tiny() }
}

async fn assert_dead(subject: &Subject) {
    subject.heard.death().await;
    let at = subject.log.bounds().written_end;
    let refused = subject.log.submit(at, TestBatch::of(1).seal(at, subject.epoch));
    let Err(AppendError::Refused(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(subject.log.roll().await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_failed_journal_sync_fails_what_waited_and_nothing_else() {
    for persisted in [Persisted::Nothing, Persisted::Torn(3), Persisted::Torn(4)] {
        let disk = TestDisk::new();
        let running = Running::with(&disk, one_file());
        let (hit, other) = (running.open(0).await, running.open(1).await);
        let mut kept = hit.append_some(3).await;
        let other_kept = other.append_some(2).await;
        disk.inject("0000.journal", 0, Fault::Sync { persisted });
        let (_, ticket) = hit.submit(TestBatch::of(5)).await;
        ticket.await.unwrap_err();
        assert_dead(&hit).await;
        assert_eq!(hit.log.bounds().durable_end, Offset::new(6));
        other.assert_holds(&other_kept).await;
        other.append(TestBatch::of(1)).await;

        let again = running.open(0).await;
        assert_eq!((again.found, again.epoch), (Found::Unclean, LeaderEpoch::new(1)));
        again.assert_holds(&kept).await;
        kept.push(again.append(TestBatch::of(2)).await);

        for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(9)] {
            let recovered = Running::on(&disk.after(crash));
            recovered.open(0).await.assert_holds(&kept).await;
            assert_eq!(recovered.open(1).await.log.bounds().durable_end, Offset::new(4));
        }
    }
}

#[tokio::test]
async fn a_failed_segment_write_kills_that_log_only() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, one_file());
    let (hit, other) = (running.open(0).await, running.open(1).await);
    let mut kept = hit.append_some(3).await;
    disk.inject("/0/", 0, Fault::Write { kind: io::ErrorKind::StorageFull, written: 7 });
    let (_, ticket) = hit.submit(TestBatch::of(5)).await;
    let waiting = hit.log.durable(Offset::new(11));
    assert_eq!(ticket.await.unwrap_err().kind(), ErrorKind::Full);
    waiting.await.unwrap_err();
    assert_dead(&hit).await;
    other.append_some(2).await;

    // Its entry is in the journal; the next epoch takes it back.
    let again = running.open(0).await;
    assert_eq!(again.epoch, LeaderEpoch::new(1));
    kept.push(again.append(TestBatch::of(2)).await);
    again.assert_holds(&kept).await;
    for crash in [Crash::KeepAll, Crash::DropAll] {
        let recovered = Running::on(&disk.after(crash));
        assert_eq!(recovered.report.batches_cut, 1);
        recovered.open(0).await.assert_holds(&kept).await;
    }
}

#[tokio::test]
async fn a_failed_sync_fails_rows_and_they_are_not_seen() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, one_file());
    let put = |value: &'static str| MetaBatch::new().put(Table::Cluster, "k", value);
    running.file.commit(put("first")).await.unwrap();
    disk.inject("0000.journal", 0, Fault::Sync { persisted: Persisted::Torn(1) });
    let failed = running.file.commit(put("second")).await;
    assert!(matches!(failed, Err(CommitError::Storage(_))), "{failed:?}");
    let value = running.file.get(Table::Cluster, "k".into()).await.unwrap();
    assert_eq!(value.unwrap(), "first");
    let recovered = Running::on(&disk.after(Crash::KeepAll));
    let value = recovered.file.get(Table::Cluster, "k".into()).await.unwrap();
    assert_eq!(value.unwrap(), "first");
    running.file.commit(put("third")).await.unwrap();
    let recovered = Running::on(&disk.after(Crash::DropAll));
    let value = recovered.file.get(Table::Cluster, "k".into()).await.unwrap();
    assert_eq!(value.unwrap(), "third");
}

#[tokio::test]
async fn what_was_published_unsynced_outlives_a_failed_sync() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, one_file());
    let loose = running.open(0).await;
    loose.log.configure(LogSettings { durability: Durability::Never, ..settings() });
    let published = loose.append_some(5).await;
    let strict = running.open(1).await;
    disk.inject("0000.journal", 0, Fault::Sync { persisted: Persisted::Nothing });
    let (_, ticket) = strict.submit(TestBatch::of(1)).await;
    ticket.await.unwrap_err();
    // The next acknowledgement stands on a checkpoint that has what was published.
    let strict = running.open(1).await;
    let kept = strict.append(TestBatch::of(3)).await;
    loose.assert_holds(&published).await;
    let recovered = Running::on(&disk.after(Crash::DropAll));
    recovered.open(0).await.assert_holds(&published).await;
    recovered.open(1).await.assert_holds(&[kept]).await;
}

#[tokio::test]
async fn without_any_journal_everything_is_refused_and_the_owner_hears_why() {
    let disk = TestDisk::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    let on_fatal = Arc::new(move |error: &strandline_storage::StorageError| {
        told.lock().push(error.to_string());
    });
    let running = Running::with(&disk, FileEngineConfig { on_fatal, ..FileEngineConfig::tiny() });
    let subject = running.open(0).await;
    let kept = subject.append_some(2).await;
    for _ in 0..8 {
        disk.inject("journal/", 0, Fault::Sync { persisted: Persisted::Nothing });
    }
    let (_, ticket) = subject.submit(TestBatch::of(1)).await;
    ticket.await.unwrap_err();
    let refused = running.file.commit(MetaBatch::new().put(Table::Topics, "a", "b")).await;
    let Err(CommitError::Storage(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(heard.lock().len(), 1, "{:?}", heard.lock());
    running.file.close().await.unwrap_err();
    disk.clear_faults();
    Running::on(&disk.after(Crash::DropAll)).open(0).await.assert_holds(&kept).await;
}

#[tokio::test]
async fn a_failed_snapshot_keeps_the_journal() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let subject = running.open(0).await;
    let mut kept = subject.append_some(5).await;
    disk.inject("snapshot", 0, Fault::Write { kind: io::ErrorKind::Other, written: 0 });
    running.file.shared.checkpoints.done(crate::queue::StopMark::Running).await.unwrap_err();
    kept.extend(subject.append_some(5).await);
    Running::on(&disk.after(Crash::DropAll)).open(0).await.assert_holds(&kept).await;
    // More than the journal holds: appends wait until a later checkpoint works.
    disk.inject("snapshot", 0, Fault::Write { kind: io::ErrorKind::StorageFull, written: 0 });
    for _ in 0..200 {
        kept.push(subject.append(TestBatch::of(1).value_bytes(5000)).await);
    }
    running.checkpoint().await;
    Running::on(&disk.after(Crash::DropAll)).open(0).await.assert_holds(&kept).await;
}

/// The journal has an append that failed in a segment which a later trim drops: it must not move the
/// end behind which the replay looks for what followed.
#[tokio::test]
async fn a_failed_append_to_a_segment_that_is_trimmed_later_hides_nothing() {
    // Ends below, across and behind the end that the failed append would have brought.
    for records in [2, 5, 9] {
        let disk = TestDisk::new();
        let running = Running::with(&disk, one_file());
        let hit = running.open(0).await;
        hit.append(TestBatch::of(3)).await;
        disk.inject("/0/", 0, Fault::Write { kind: io::ErrorKind::Other, written: 0 });
        let (_, ticket) = hit.submit(TestBatch::of(6)).await;
        ticket.await.unwrap_err();

        let again = running.open(0).await;
        again.append(TestBatch::of(1)).await;
        again.log.roll().await.unwrap();
        again.log.trim(Offset::new(4)).await.unwrap();
        let kept = again.append(TestBatch::of(records)).await;
        for crash in [Crash::KeepAll, Crash::DropAll] {
            let recovered = Running::on(&disk.after(crash));
            let log = recovered.open(0).await;
            assert_eq!(log.log.bounds().log_start, Offset::new(4));
            log.assert_holds(std::slice::from_ref(&kept)).await;
        }
    }
}

/// One group of the journal holds two appends that failed, the second in a segment of its own; then the
/// segment of the first goes. A start may bring back both of them or none.
#[tokio::test]
async fn what_failed_does_not_come_back_without_its_beginning() {
    for is_rewritten in [false, true] {
        let mut together = 0;
        for _ in 0..20 {
            let disk = TestDisk::new();
            let running = Running::with(&disk, one_file());
            let hit = running.open(0).await;
            let first = hit.append(TestBatch::of(3)).await;
            running.checkpoint().await;
            // Appends that wait for no sync go through the journal, however large.
            let (segment_bytes, durability) = (ByteCount::kib(2), Durability::Never);
            hit.log.configure(LogSettings { segment_bytes, durability, ..settings() });
            disk.inject("/0/", 0, Fault::Write { kind: io::ErrorKind::Other, written: 0 });
            let size = disk.operations();
            let (small, large) = submit_together(&running, &hit);
            small.await.unwrap_err();
            large.await.unwrap_err();
            // The journal's write and sync, for the change before them too, are all that happened.
            together += u32::from(disk.operations() <= size + 4);

            let again = running.open(0).await;
            again.log.roll().await.unwrap();
            if is_rewritten {
                let chunk = again.log.chunks()[0].id;
                let mut rewrite = again.log.rewrite(chunk, chunk).await.unwrap();
                rewrite.add(first.bytes.clone()).await.unwrap();
                rewrite.commit().await.unwrap();
            } else {
                again.log.trim(Offset::new(3)).await.unwrap();
            }
            for crash in [Crash::KeepAll, Crash::DropAll] {
                let recovered = Running::on(&disk.after(crash));
                let log = recovered.open(0).await;
                assert_eq!(log.log.bounds().durable_end, Offset::new(3), "{is_rewritten}");
            }
        }
        assert!(together > 5, "{together} of 20");
    }
}

/// Submits two appends that go into one group, mostly: the commit thread waits meanwhile.
fn submit_together(running: &Running, hit: &Subject) -> (Ticket, Ticket) {
    let before = running.disk.operations();
    let reading = running.file.shared.rows.read();
    let mut change = running.file.commit(MetaBatch::new().put(Table::Topics, "k", "v"));
    let mut nobody = Context::from_waker(Waker::noop());
    assert!(change.as_mut().poll(&mut nobody).is_pending());
    let deadline = Instant::now() + Duration::from_secs(20);
    while running.disk.operations() < before + 2 {
        assert!(Instant::now() < deadline, "the change is written and synced");
        std::thread::yield_now();
    }
    let at = hit.log.bounds().written_end;
    let small = TestBatch::of(4).seal(at, hit.epoch);
    let behind = small.next_offset();
    let large = TestBatch::of(2).value_bytes(2000).seal(behind, hit.epoch);
    let tickets = (hit.log.submit(at, small).unwrap(), hit.log.submit(behind, large).unwrap());
    drop(reading);
    tickets
}

#[tokio::test]
async fn a_journal_that_fails_again_after_the_snapshot_that_healed_it_is_replaced_again() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, one_file());
    let loose = running.open(0).await;
    loose.log.configure(LogSettings { durability: Durability::Never, ..settings() });
    let published = loose.append_some(5).await;
    let strict = running.open(1).await;
    disk.inject("0000.journal", 0, Fault::Sync { persisted: Persisted::Nothing });
    // Behind its making and its header: the record of the checkpoint.
    disk.inject("0001.journal", 2, Fault::Sync { persisted: Persisted::Nothing });
    let (_, ticket) = strict.submit(TestBatch::of(1)).await;
    ticket.await.unwrap_err();
    let strict = running.open(1).await;
    let kept = strict.append(TestBatch::of(3)).await;
    let recovered = Running::on(&disk.after(Crash::DropAll));
    recovered.open(0).await.assert_holds(&published).await;
    recovered.open(1).await.assert_holds(&[kept]).await;
}

#[tokio::test]
async fn nothing_is_queued_for_an_owner_who_is_none_any_more() {
    let running = Running::on(&TestDisk::new());
    let earlier = running.open(0).await;
    let live = running.file.shared.logs.live(strandline_storage::testkit::partition(0)).unwrap();
    let _later = running.open(0).await;
    // As a call does that looked at the handle just before the other opener came.
    let (done, _rolled) = Ticket::pair();
    let refused = running.file.shared.queue.push(crate::queue::Item::Roll { log: live, done });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Fenced);
    let limit = ReadLimit { bytes: ByteCount::kib(1), minimum: Minimum::OneBatch };
    let read = earlier.log.read(Offset::ZERO, Offset::ZERO, limit).await;
    let Err(ReadError::Storage(error)) = read else { panic!("{read:?}") };
    assert_eq!(error.kind(), ErrorKind::Fenced);
}

/// The header of a journal file could not be synced, so the file was removed; its generation is taken
/// anew in the next run, and a crash must not bring the file back beside it.
#[tokio::test]
async fn a_removed_journal_file_does_not_come_back_beside_its_successor() {
    for seed in 0..4 {
        let disk = TestDisk::new();
        let running = Running::on(&disk);
        // Its first sync is that of its making.
        let persisted = Persisted::Torn(seed);
        disk.inject("0001.journal", 1, Fault::Sync { persisted });
        running.open(0).await.append_some(2).await;
        disk.inject("0000.journal", 0, Fault::Sync { persisted: Persisted::Nothing });
        let (_, ticket) = running.open(0).await.submit(TestBatch::of(1)).await;
        ticket.await.unwrap_err();
        let deadline = Instant::now() + Duration::from_secs(20);
        while disk.contents("journal/0001.journal").is_some() {
            assert!(Instant::now() < deadline, "the file is removed");
            std::thread::yield_now();
        }
        drop(running);

        let running = Running::on(&disk);
        let again = running.open(0).await;
        again.append(TestBatch::of(1)).await;
        // With the append that failed, since no header could say that it did.
        let kept = again.read_all(Offset::ZERO).await;
        for crash in 0..16 {
            let recovered = Running::on(&disk.after(Crash::Torn(crash)));
            assert!(recovered.open(0).await.read_all(Offset::ZERO).await == kept);
        }
    }
}
