//! Checkpoints that are due come by themselves.

use std::time::{Duration, Instant};

use strandline_storage::testkit::TestBatch;

use super::Running;
use crate::disk::TestDisk;

const DEADLINE: Duration = Duration::from_secs(20);

/// Each log that is written anew is one more file to sync; half as many as may be open are too many.
/// They are synced though nothing is written any more that would ask for it.
#[tokio::test]
async fn a_burst_that_outruns_its_checkpoint_is_followed_by_another() {
    for burst in 0..20 {
        let running = Running::on(&TestDisk::new());
        for index in 0..20 + burst {
            running.open(index).await.append(TestBatch::of(1)).await;
        }
        let begun = Instant::now();
        while running.file.shared.segments.has_many_unsynced() {
            let unsynced = running.file.shared.segments.unsynced_files();
            assert!(begun.elapsed() < DEADLINE, "{unsynced} files wait for a checkpoint");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
