//! Removals of several logs at once, and of one by several.

use strandline_model::ByteCount;
use strandline_storage::testkit::partition;
use strandline_storage::{Found, LogStore, Removal};

use super::Running;
use crate::disk::{Crash, Operation, Replay, TestDisk};

async fn remove(running: &Running, index: u32) {
    while running.file.remove_some(partition(index), ByteCount::mib(1)).await.unwrap()
        != Removal::Done
    {
        tokio::task::yield_now().await;
    }
}

fn snapshots(disk: &TestDisk) -> usize {
    let mut replay = Replay::of(disk);
    let operations = std::iter::from_fn(|| replay.step());
    operations.filter(|operation| matches!(operation, Operation::Rename { .. })).count()
}

#[tokio::test]
async fn removals_that_wait_share_a_checkpoint() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    for index in 0..7 {
        running.open(index).await.append_some(2).await;
    }
    running.checkpoint().await;
    let before = snapshots(&disk);
    // The next one begins a little later: by then all of them wait for it.
    running.file.shared.checkpoints.note_failure();
    let all = |index| remove(&running, index);
    tokio::join!(all(0), all(1), all(2), all(3), all(4), all(5));
    let made = snapshots(&disk) - before;
    assert!((1..=3).contains(&made), "{made} checkpoints for six logs");
    assert_eq!(running.file.list().await.unwrap(), [partition(6)]);
    let recovered = Running::on(&disk.after(Crash::DropAll));
    assert_eq!(recovered.file.list().await.unwrap(), [partition(6)]);
    assert_eq!(recovered.open(3).await.found, Found::Created);
}

#[tokio::test]
async fn a_log_is_removed_by_one_at_a_time_and_others_open_meanwhile() {
    let running = Running::on(&TestDisk::new());
    running.open(0).await.append_some(2).await;
    running.file.shared.checkpoints.note_failure();
    let others = async {
        while !running.file.shared.rows.read().is_removed(partition(0)) {
            tokio::task::yield_now().await;
        }
        running.open(1).await.append_some(1).await;
        let also = running.file.remove_some(partition(0), ByteCount::mib(1)).await.unwrap();
        assert!(matches!(also, Removal::Remaining(_)), "somebody else waits for the checkpoint");
    };
    tokio::join!(remove(&running, 0), others);
    assert_eq!(running.open(0).await.found, Found::Created);
}
