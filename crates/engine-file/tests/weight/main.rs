//! What a log weighs that nobody holds any more.
//!
//! A binary of its own with one test, because the counters are global: another test beside it would be
//! counted too.

use std::alloc::System;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use strandline_engine_file::disk::RealDisk;
use strandline_engine_file::{FileEngine, FileEngineConfig};
use strandline_model::Offset;
use strandline_storage::testkit::{Recorder, TestBatch, open_request};
use strandline_storage::{LogStore, Opened};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LOGS: u32 = 1_000;
/// Bytes that a log may weigh which took a record and is closed: half of what a partition may.
const WEIGHT_MAX: usize = 1_536;
const PATIENCE: Duration = Duration::from_secs(20);

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

#[tokio::test]
async fn a_log_that_nobody_holds_weighs_little() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let disk = RealDisk::open(folder.path()).expect("the folder is there");
    let config = FileEngineConfig::production(Arc::new(|_| {}));
    let (engine, _) = FileEngine::open(Arc::new(disk), config).expect("an empty folder opens");
    let heard = Arc::new(Recorder::default());
    let before = held();
    for index in 0..LOGS {
        let Opened { log, epoch, .. } =
            engine.open(open_request(index, &heard)).await.expect("it opens");
        let batch = TestBatch::of(1).value_bytes(100).seal(Offset::ZERO, epoch);
        log.submit(Offset::ZERO, batch).expect("taken").await.expect("durable");
    }
    drop(heard);
    // The commit thread lets go of the last ones a moment later.
    let begun = Instant::now();
    let each = || held().saturating_sub(before) / LOGS as usize;
    while each() > WEIGHT_MAX {
        assert!(begun.elapsed() < PATIENCE, "each weighs {} bytes", each());
        std::thread::sleep(Duration::from_millis(10));
    }
    engine.close().await.expect("a healthy engine closes");
}
