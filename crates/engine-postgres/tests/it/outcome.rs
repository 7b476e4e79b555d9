//! Nothing acknowledged is lost and nothing is there twice, wherever a connection is cut and however
//! the server stops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use strandline_engine_postgres::{PostgresConfig, PostgresEngine};
use strandline_model::{ByteCount, Offset};
use strandline_storage::testkit::{Appended, Engine, Subject, TestBatch, partition, settings};
use strandline_storage::{ChunkState, Compacted, Found, LogSettings, MetaBatch, Removal, Table};
use tokio::task::JoinSet;

use super::proxy::{Cut, Proxy};
use super::server::{self, Server};

/// How often the server is killed.
const RESTARTS: usize = 4;

/// Workloads that run beside each other.
const AT_ONCE: usize = 8;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
}

async fn start(config: &PostgresConfig) -> Engine {
    let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
    let engine = Arc::new(started.engine);
    Engine { logs: Arc::clone(&engine) as _, rows: engine }
}

/// What must be there afterwards.
#[derive(Debug, Default)]
struct Expected {
    logs: BTreeMap<u32, Vec<Appended>>,
    log_start: Offset,
    commits: u32,
}

async fn commit(engine: &Engine, expected: &mut Expected) {
    let number = expected.commits;
    let batch = MetaBatch::new()
        .expect_equals(Table::Cluster, "count", number.to_string())
        .expect_absent(Table::Topics, format!("row {number}"))
        .put(Table::Cluster, "count", (number + 1).to_string())
        .put(Table::Topics, format!("row {number}"), "x");
    engine.rows.commit(batch).await.expect("a commit outlives a lost connection");
    expected.commits += 1;
}

/// Everything that an owner does with a log. Nothing of it may fail.
async fn work(engine: &Engine) -> Expected {
    let mut expected = Expected::default();
    let first = MetaBatch::new().put(Table::Cluster, "count", "0");
    engine.rows.commit(first).await.expect("commits");
    let subjects = [Subject::open(engine, 0).await, Subject::open(engine, 1).await];
    for subject in &subjects {
        subject.log.configure(LogSettings { segment_bytes: ByteCount::new(400), ..settings() });
    }
    for round in 0..3 {
        let mut tickets = Vec::new();
        for (index, subject) in (0..).zip(&subjects) {
            for number in 0..3 {
                let (appended, ticket) =
                    subject.submit(TestBatch::of(1 + (round + number) % 3)).await;
                expected.logs.entry(index).or_default().push(appended);
                tickets.push(ticket);
            }
        }
        for ticket in tickets {
            ticket.await.expect("an append outlives a lost connection");
        }
        commit(engine, &mut expected).await;
    }
    let log = &subjects[0].log;
    let end = log.bounds().durable_end;
    log.save_state(end, "state".into()).await.expect("saves");
    log.roll().await.expect("rolls");
    let all = expected.logs.entry(0).or_default();
    thin_out(&subjects[0], all).await;
    let log_start = all[2].offsets.start;
    log.trim(log_start).await.expect("trims");
    expected.log_start = log_start;
    let note = Compacted { clean_end: end, delete_horizon: None };
    log.note_compacted(note).await.expect("notes");
    let last = subjects[0].append(TestBatch::of(2)).await;
    expected.logs.entry(0).or_default().push(last);
    drop(Subject::open(engine, 2).await.append(TestBatch::of(1)).await);
    while engine.logs.remove_some(partition(2), ByteCount::mib(1)).await.expect("removes")
        != Removal::Done
    {}
    expected
}

/// Rewrites the second chunk and what follows it, without every second batch.
async fn thin_out(subject: &Subject, appended: &mut Vec<Appended>) {
    let chunks = subject.log.chunks();
    assert!(chunks.iter().all(|chunk| chunk.state == ChunkState::Sealed), "{chunks:?}");
    let (first, last) = (&chunks[1], &chunks[chunks.len() - 2]);
    let mut rewrite = subject.log.rewrite(first.id, last.id).await.expect("begins");
    let mut number = 0;
    let mut kept = Vec::new();
    for batch in appended.drain(..) {
        let is_in =
            batch.offsets.start >= first.base_offset && batch.offsets.end <= last.next_offset;
        number += u32::from(is_in);
        if is_in && number.is_multiple_of(2) {
            continue;
        }
        if is_in {
            rewrite.add(batch.bytes.clone()).await.expect("adds");
        }
        kept.push(batch);
    }
    rewrite.commit().await.expect("a rewrite outlives a lost connection");
    *appended = kept;
}

/// Looks at everything with an engine that nobody disturbs.
async fn check(config: &PostgresConfig, expected: &Expected) {
    let engine = start(config).await;
    for (&index, appended) in &expected.logs {
        let subject = Subject::open(&engine, index).await;
        assert_eq!(subject.found, Found::Clean);
        subject.assert_holds(appended).await;
        assert_eq!(engine.logs.verify(partition(index)).await.expect("verifies"), []);
    }
    let subject = Subject::open(&engine, 0).await;
    assert_eq!(subject.log.bounds().log_start, expected.log_start);
    let state = subject.log.load_state().await.expect("loads").expect("it was saved");
    assert_eq!(&state.1[..], b"state");
    assert!(subject.log.compacted().clean_end > Offset::ZERO);
    let listed = engine.logs.list().await.expect("lists");
    assert_eq!(listed, [partition(0), partition(1)]);
    let count = engine.rows.get(Table::Cluster, "count".into()).await.expect("reads");
    assert_eq!(count.expect("it is there"), expected.commits.to_string());
    let rows = engine.rows.scan(Table::Topics, None, 100).await.expect("scans").rows;
    assert_eq!(rows.len(), usize::try_from(expected.commits).expect("few"));
}

/// One workload with one cut; says how many statements there were.
async fn cut_once(number: usize, cut: Cut) -> usize {
    let server = server::shared();
    let proxy = Proxy::start(server.port()).await;
    let direct = server.config_over_tcp();
    let config = PostgresConfig { port: proxy.port, ..direct.clone() };
    let engine = start(&config).await;
    proxy.arm(number, cut).await;
    let expected = work(&engine).await;
    engine.logs.close().await.expect("closes");
    let seen = proxy.seen();
    proxy.finish().await;
    check(&direct, &expected).await;
    seen
}

#[test]
fn a_connection_that_is_cut_anywhere_loses_nothing_and_doubles_nothing() {
    runtime().block_on(async {
        let statements = cut_once(usize::MAX, Cut::Before).await;
        assert!(statements > 40, "{statements}");
        let all = (1..=statements).flat_map(|number| Cut::ALL.map(|cut| (number, cut)));
        let mut running = JoinSet::new();
        for (number, cut) in all {
            if running.len() == AT_ONCE {
                joined(running.join_next().await);
            }
            running.spawn(async move {
                eprintln!("statement {number} {cut:?}");
                cut_once(number, cut).await;
            });
        }
        while let Some(outcome) = running.join_next().await {
            joined(Some(outcome));
        }
    });
}

fn joined(outcome: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = outcome {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// What a log was sent, in order, and whether it was acknowledged.
type Sent = Vec<(Appended, bool)>;

/// Appends until it is told to stop.
async fn write(engine: Engine, index: u32, subject: Subject, told: Arc<Told>) -> (u32, Sent) {
    let mut subject = subject;
    let mut sent = Sent::new();
    while !told.stop.load(Ordering::Relaxed) {
        let (appended, ticket) = subject.submit(TestBatch::of(2)).await;
        let outcome = ticket.await;
        sent.push((appended, outcome.is_ok()));
        match outcome {
            Ok(()) => drop(told.acknowledged[index as usize].fetch_add(1, Ordering::Relaxed)),
            Err(_) => subject = Subject::open(&engine, index).await,
        }
    }
    (index, sent)
}

/// What the writers and whoever disturbs them tell each other.
#[derive(Debug, Default)]
struct Told {
    acknowledged: [AtomicUsize; 3],
    stop: AtomicBool,
}

/// Kills the server some times, and waits each time until everybody gets on.
fn disturb(mut server: Server, told: &Told) -> Server {
    for _ in 0..RESTARTS {
        server.restart();
        for count in &told.acknowledged {
            let before = count.load(Ordering::Relaxed);
            let begun = Instant::now();
            while count.load(Ordering::Relaxed) < before + 3 {
                assert!(begun.elapsed() < Duration::from_mins(1), "nothing goes on");
                std::thread::yield_now();
            }
        }
    }
    told.stop.store(true, Ordering::Relaxed);
    server
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing() {
    runtime().block_on(async {
        let server = tokio::task::spawn_blocking(Server::start).await.expect("it starts");
        let config = server.config();
        let engine = start(&config).await;
        let told = Arc::new(Told::default());
        let mut writers = JoinSet::new();
        for index in 0..3 {
            let subject = Subject::open(&engine, index).await;
            writers.spawn(write(engine.clone(), index, subject, Arc::clone(&told)));
        }
        let disturbing = tokio::task::spawn_blocking(move || disturb(server, &told));
        let mut written = BTreeMap::new();
        while let Some(writer) = writers.join_next().await {
            let (index, sent) = writer.expect("no writer panics");
            written.insert(index, sent);
        }
        let server = disturbing.await.expect("it restarts");
        engine.logs.close().await.expect("closes");
        let engine = start(&config).await;
        for (index, sent) in written {
            let bytes = Subject::open(&engine, index).await.read_all(Offset::ZERO).await;
            let mut rest = &bytes[..];
            for (batch, is_acknowledged) in &sent {
                match rest.strip_prefix(&batch.bytes[..]) {
                    Some(after) => rest = after,
                    None => assert!(!is_acknowledged, "{:?} is lost", batch.offsets),
                }
            }
            assert_eq!(rest.len(), 0, "something is there that nobody sent, or twice");
        }
        drop(server);
    });
}
