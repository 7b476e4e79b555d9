//! What the durability of a log makes its appends wait for.

use std::time::{Duration, Instant};

use strandline_storage::testkit::{Subject, TestBatch, settings};
use strandline_storage::{Durability, LogSettings};

use super::Running;
use crate::disk::{Crash, TestDisk};

fn set(subject: &Subject, durability: Durability) {
    subject.log.configure(LogSettings { durability, ..settings() });
}

#[tokio::test]
async fn a_short_interval_does_not_wait_for_a_longer_one_that_is_running() {
    let disk = TestDisk::new();
    let running = Running::on(&disk);
    let (slow, fast) = (running.open(0).await, running.open(1).await);
    set(&slow, Durability::Interval(Duration::from_hours(1)));
    set(&fast, Durability::Interval(Duration::from_millis(1)));
    slow.append(TestBatch::of(1)).await;
    let kept = fast.append(TestBatch::of(1)).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let recovered = Running::on(&disk.after(Crash::DropAll));
        let subject = recovered.open(1).await;
        if subject.log.bounds().durable_end == kept.offsets.end {
            return subject.assert_holds(&[kept]).await;
        }
        assert!(Instant::now() < deadline, "it is synced soon");
    }
}
