//! What an opening tells of itself while it is under way.

use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::ByteCount;
use strandline_storage::testkit::TestBatch;

use super::Running;
use crate::disk::{Crash, TestDisk};
use crate::{FileEngineConfig, OpenProgress, OpenStep, OpenWork};

/// Looks at the progress in the midst of each read from now on.
fn watch(disk: &TestDisk, progress: &Arc<OpenProgress>, seen: &Arc<Mutex<Vec<OpenStep>>>) {
    let (again, progress, seen) = (disk.clone(), Arc::clone(progress), Arc::clone(seen));
    disk.during_next_read(move || {
        seen.lock().push(progress.now());
        watch(&again, &progress, &seen);
    });
}

#[tokio::test]
async fn a_recovery_tells_how_far_it_is() {
    let disk = TestDisk::new();
    let config = FileEngineConfig { checkpoint_at: ByteCount::mib(1), ..FileEngineConfig::tiny() };
    let running = Running::with(&disk, config);
    for index in 0..20 {
        running.open(index).await.append(TestBatch::of(1)).await;
    }
    let crashed = disk.after(Crash::DropAll);

    let read = crashed.after(Crash::KeepAll);
    let config = FileEngineConfig::tiny();
    let (progress, seen) = (Arc::clone(&config.progress), Arc::default());
    watch(&read, &progress, &seen);
    let recovered = Running::with(&read, config);
    assert_eq!(progress.now().work, OpenWork::Done);
    let seen = std::mem::take(&mut *seen.lock());
    assert!(seen.is_sorted_by_key(|step| (step.work, step.done)), "{seen:?}");
    for work in [OpenWork::ReadRows, OpenWork::BringBack] {
        let of_work = seen.iter().filter(|step| step.work == work);
        let (dones, totals): (Vec<_>, Vec<_>) = of_work.map(|step| (step.done, step.total)).unzip();
        assert!(totals.iter().all(|total| *total == totals[0]), "{work:?} {totals:?}");
        assert!(dones.len() > 2 && dones[0] == 0, "{work:?} {dones:?}");
        assert!((1..=totals[0]).contains(dones.last().unwrap()), "{work:?} {dones:?} {totals:?}");
    }
    drop(recovered);
}
