//! What a durable append costs: acknowledgements per second, with many appenders that each wait for
//! theirs, and bytes per second of large batches.
//!
//! `cargo bench -p strandline-engine-file --bench durable [FOLDER]`; the folder's file system counts.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strandline_engine_file::disk::RealDisk;
use strandline_engine_file::{FileEngine, FileEngineConfig};
use strandline_model::ByteCount;
use strandline_storage::testkit::{Engine, Subject, TestBatch, settings};
use strandline_storage::{AppendError, LogSettings};

const ROUND: Duration = Duration::from_secs(2);

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime starts");
    for appenders in [1, 10, 100, 1000] {
        report(&runtime.block_on(small(&folder, appenders)));
    }
    for bytes in [16 << 10, 256 << 10, 1 << 20] {
        report(&runtime.block_on(large(&folder, bytes)));
    }
}

fn report(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("standard output is open");
}

fn open(folder: &std::path::Path) -> (tempfile::TempDir, Engine) {
    let folder = tempfile::tempdir_in(folder).expect("a folder can be made");
    let config = FileEngineConfig::production(Arc::new(|error| panic!("{error}")));
    let disk = Arc::new(RealDisk::open(folder.path()).expect("the folder is there"));
    let (engine, _) = FileEngine::open(disk, config).expect("it opens");
    (folder, Engine { logs: Arc::clone(&engine) as _, rows: engine })
}

/// Time of this process on all cores.
fn cpu() -> Duration {
    let usage = std::fs::read_to_string("/proc/self/stat").expect("Linux tells");
    let fields: Vec<&str> = usage.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("a number");
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Each appender has its own partition and one record of 100 bytes on its way.
async fn small(folder: &std::path::Path, appenders: u32) -> String {
    let (_folder, engine) = open(folder);
    let mut tasks = Vec::new();
    let (began, cpu_before) = (Instant::now(), cpu());
    for index in 0..appenders {
        let engine = engine.clone();
        tasks.push(tokio::spawn(async move {
            let subject = Subject::open(&engine, index).await;
            let mut times = Vec::new();
            while began.elapsed() < ROUND {
                let start = Instant::now();
                subject.append(TestBatch::of(1).value_bytes(100)).await;
                times.push(start.elapsed());
            }
            times
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("an appender ends"));
    }
    let (took, cpu_used) = (began.elapsed(), cpu().saturating_sub(cpu_before));
    times.sort_unstable();
    let count = times.len();
    let mut line = format!("{appenders:5} appenders: ");
    let rate = count as f64 / took.as_secs_f64();
    let each = cpu_used.as_secs_f64() * 1e6 / count as f64;
    let (p50, p99) = (times[count / 2], times[count * 99 / 100]);
    write!(line, "{rate:8.0} acks/s, p50 {p50:?}, p99 {p99:?}, {each:.1} us CPU each")
        .expect("memory is there");
    line
}

/// One appender keeps several large batches on their way.
async fn large(folder: &std::path::Path, bytes: usize) -> String {
    let (_folder, engine) = open(folder);
    let subject = Subject::open(&engine, 0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::gib(1), ..settings() });
    let (began, cpu_before) = (Instant::now(), cpu());
    let batch = TestBatch::of(1).value_bytes(bytes);
    let mut at = subject.log.bounds().written_end;
    let sealed = batch.seal(at, subject.epoch);
    let mut pending = std::collections::VecDeque::new();
    let mut total = 0_u64;
    while began.elapsed() < ROUND {
        // The same bytes again: only their offset is written anew.
        let mut copy = bytes::BytesMut::from(&sealed.bytes()[..]);
        copy[..8].copy_from_slice(&at.get().to_be_bytes());
        let next = strandline_records::SealedBatches::from_sealed(copy.freeze(), batch.appended_at)
            .expect("whole")
            .expect("one");
        let ticket = loop {
            match subject.log.submit(at, next.clone()) {
                Ok(ticket) => break ticket,
                Err(AppendError::Busy) => subject.log.ready().await,
                Err(error) => panic!("{error}"),
            }
        };
        total += next.size().get();
        at = next.next_offset();
        pending.push_back(ticket);
        if pending.len() > 5 {
            pending.pop_front().expect("there are some").await.expect("durable");
        }
    }
    for ticket in pending {
        ticket.await.expect("durable");
    }
    let (took, cpu_used) = (began.elapsed(), cpu().saturating_sub(cpu_before));
    let rate = total as f64 / took.as_secs_f64() / 1e9;
    let each = cpu_used.as_secs_f64() / (total as f64 / 1e9);
    format!("{:5} KiB batches: {rate:.2} GB/s, {each:.2} CPU-s/GB", bytes / 1024)
}
