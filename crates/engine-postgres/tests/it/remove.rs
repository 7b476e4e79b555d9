//! Removing in small steps, whatever else the server is held up by.

use std::sync::Arc;
use std::time::{Duration, Instant};

use strandline_engine_postgres::{PostgresConfig, PostgresEngine};
use strandline_model::ByteCount;
use strandline_storage::Removal;
use strandline_storage::testkit::{Engine, Subject, TestBatch, partition};
use tokio_postgres::{Client, NoTls};

use super::server;

async fn start(config: &PostgresConfig) -> Engine {
    let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
    let engine = Arc::new(started.engine);
    Engine { logs: Arc::clone(&engine) as _, rows: engine }
}

/// A session beside the engine's, in its schema.
async fn session(config: &PostgresConfig) -> Client {
    let (client, connection) = tokio_postgres::Config::new()
        .host(&config.host)
        .port(config.port)
        .user(&config.user)
        .dbname(&config.database)
        .options(format!("-c search_path={}", config.schema))
        .connect(NoTls)
        .await
        .expect("it connects");
    tokio::spawn(connection);
    client
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("the server answers").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_does_not_walk_through_what_is_gone_already() {
    let config = server::shared().config();
    let engine = start(&config).await;
    Subject::open(&engine, 0).await.append(TestBatch::of(1)).await;
    let beside = session(&config).await;
    // As if there had been so many appends and so many chunks.
    let many = "
        INSERT INTO entries
            (log_id, chunk, next_offset, base_offset, epoch, digest, length, data)
        SELECT log_id, 1, n + 1, n, 0, 0, 10, '0123456789' FROM logs, generate_series(1, 9999) n;
        INSERT INTO chunks
            (log_id, number, state, base_offset, next_offset, bytes, first_at, last_at)
        SELECT log_id, n, 2, 0, 0, 0, 0, 0 FROM logs, generate_series(100, 9099) n";
    beside.batch_execute(many).await.expect("they are there");
    // As long as this transaction is open nothing leaves the index.
    let holder = session(&config).await;
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.expect("begins");
    let mut steps = 0;
    while engine.logs.remove_some(partition(0), ByteCount::kib(8)).await.expect("removes")
        != Removal::Done
    {
        steps += 1;
        assert!(steps < 100, "the log goes at some time");
    }
    assert!(steps > 4, "a step is bounded");
    for table in ["logs", "chunks", "entries"] {
        assert_eq!(number(&beside, &format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    engine.logs.close().await.expect("closes");
    let read = "SELECT idx_tup_read FROM pg_stat_user_indexes
                WHERE schemaname = current_schema() AND indexrelname = 'entries_pkey'";
    let begun = Instant::now();
    // What a session has done is counted when it has ended.
    while number(&beside, read).await < 10_000 {
        assert!(begun.elapsed() < Duration::from_mins(1), "the server counts what is read");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let read = number(&beside, read).await;
    assert!(read < 60_000, "10 000 entries took {read} steps in their index");
}
