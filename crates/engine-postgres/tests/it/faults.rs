//! A database that is gone for a while, a task that panics: what callers see meanwhile and afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use strandline_engine_postgres::{PostgresConfig, PostgresEngine};
use strandline_model::Offset;
use strandline_storage::testkit::{Engine, Subject, TestBatch};
use strandline_storage::{
    ErrorKind, FigureValue, Found, LogStore, MetaBatch, Minimum, ReadError, ReadLimit, Table,
};

use super::server::Server;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
}

async fn start(config: &PostgresConfig) -> (Arc<PostgresEngine>, Engine) {
    let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
    let engine = Arc::new(started.engine);
    (Arc::clone(&engine), Engine { logs: Arc::clone(&engine) as _, rows: engine })
}

/// A count of the engine's.
fn counted(engine: &PostgresEngine, name: &str) -> u64 {
    let figure = engine.figures().into_iter().find(|figure| figure.name == name);
    match figure.expect("there is such a figure").value {
        FigureValue::Count(count) => count,
        other => panic!("{other:?}"),
    }
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Fifty at a time, none of which is kept.
async fn commit_in_vain(store: &Engine) {
    let commits = (0..50).map(|number| {
        let rows = Arc::clone(&store.rows);
        tokio::spawn(async move {
            let batch = MetaBatch::new().put(Table::Cluster, format!("{number}"), "x");
            rows.commit(batch).await.expect_err("nobody keeps it")
        })
    });
    for commit in commits.collect::<Vec<_>>() {
        commit.await.expect("no commit panics");
    }
}

#[test]
fn a_server_that_is_gone_is_told_of_asked_for_seldom_and_found_again() {
    runtime().block_on(async {
        let mut server = tokio::task::spawn_blocking(Server::start).await.expect("it starts");
        let lease = Duration::from_secs(2);
        let config = PostgresConfig {
            read_lease: lease,
            outcome_wait: Duration::from_secs(3),
            commit_wait: Duration::from_secs(1),
            tail_bytes: strandline_model::ByteCount::mib(1),
            ..server.config()
        };
        let (engine, store) = start(&config).await;
        let subject = Subject::open(&store, 0).await;
        let appended = subject.append(TestBatch::of(3)).await;
        let end = appended.offsets.end;
        let limit =
            ReadLimit { bytes: strandline_model::ByteCount::mib(1), minimum: Minimum::OneBatch };
        let log = Arc::clone(&subject.log);
        let read = || log.read(Offset::ZERO, end, limit);

        let gone_at = Instant::now();
        let server = tokio::task::spawn_blocking(move || {
            server.stop();
            server
        });
        let mut server = server.await.expect("it stops");
        read().await.expect("what is in memory is read for the length of the lease");
        // Nobody but the engine itself asks anything.
        wait_until("trouble is known", || engine.trouble().is_some()).await;
        let attempts = counted(&engine, "connection_attempts");
        commit_in_vain(&store).await;
        loop {
            match read().await {
                Ok(_) => assert!(gone_at.elapsed() < 4 * lease, "read for ever"),
                Err(ReadError::Storage(error)) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    assert!(gone_at.elapsed() > lease / 2, "{error}");
                    break;
                }
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let trouble = engine.trouble().expect("it is gone");
        assert!(trouble.what.starts_with("the database is not reached: "), "{trouble:?}");
        let tried = counted(&engine, "connection_attempts") - attempts;
        let seconds = gone_at.elapsed().as_secs() + 1;
        assert!(tried < 20 + 4 * seconds, "{tried} attempts in {seconds} s");

        let server = tokio::task::spawn_blocking(move || {
            server.begin();
            server
        });
        let server = server.await.expect("it starts");
        wait_until("trouble is over", || engine.trouble().is_none()).await;
        read().await.expect("it is read again");
        subject.append(TestBatch::of(1)).await;
        let batch = MetaBatch::new().put(Table::Cluster, "key", "value");
        store.rows.commit(batch).await.expect("rows are kept again");
        drop((subject, log, server));
    });
}

#[test]
fn a_lane_that_panics_begins_again_and_its_logs_with_a_higher_epoch() {
    runtime().block_on(async {
        let config = super::server::shared().config();
        let (engine, store) = start(&config).await;
        // Neighbours in number: one is of the lane that panics, one of the other.
        let mut subjects = Vec::new();
        for index in 0..2 {
            let subject = Subject::open(&store, index).await;
            subject.append(TestBatch::of(2)).await;
            subjects.push(subject);
        }
        engine.panic_lane();
        wait_until("the panic is counted", || counted(&engine, "tasks_restarted") == 1).await;
        let mut opened_anew = 0;
        for (index, subject) in (0..).zip(subjects) {
            let end = subject.log.bounds().durable_end;
            let next = TestBatch::of(1).seal(end, subject.epoch);
            if let Ok(ticket) = subject.log.submit(end, next) {
                ticket.await.expect("the other lane goes on");
                continue;
            }
            opened_anew += 1;
            let again = Subject::open(&store, index).await;
            assert_eq!((again.found, again.epoch), (Found::Unclean, subject.epoch.next()));
            again.append(TestBatch::of(1)).await;
            assert_eq!(again.log.bounds().durable_end, Offset::new(3));
        }
        assert_eq!(opened_anew, 1);
        store.logs.close().await.expect("closes");
    });
}
