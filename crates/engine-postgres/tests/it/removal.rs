//! Removing: in steps, and nothing is left.

use std::sync::Arc;

use strandline_engine_postgres::PostgresEngine;
use strandline_model::ByteCount;
use strandline_storage::Removal;
use strandline_storage::testkit::{Engine, Subject, TestBatch, partition};

use super::server::{self, run_sql};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_of_many_small_entries_goes_in_steps_and_leaves_nothing() {
    const STEP: ByteCount = ByteCount::new(3000);
    let config = server::shared().config();
    let schema = &config.schema;
    let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
    let engine = Arc::new(started.engine);
    let engine = Engine { logs: Arc::clone(&engine) as _, rows: engine };
    for index in 0..2 {
        Subject::open(&engine, index).await.append(TestBatch::of(3)).await;
    }
    // More than a statement looks at, over several chunks.
    run_sql(&format!(
        "INSERT INTO {schema}.entries
             (log_id, chunk, next_offset, base_offset, epoch, digest, length, data)
         SELECT log_id, 1 + n % 3, n, n - 1, 0, 0, 10, '\\x00112233445566778899'
         FROM {schema}.logs, generate_series(100, 1099) n WHERE partition = 0;
         UPDATE {schema}.logs SET active_bytes = active_bytes + 10000 WHERE partition = 0"
    ));
    let mut lefts = Vec::new();
    while let Removal::Remaining(left) =
        engine.logs.remove_some(partition(0), STEP).await.expect("removes")
    {
        lefts.push(left.get());
        assert!(lefts.len() < 10, "{lefts:?}");
    }
    assert!(lefts.len() >= 3, "a step removes no more than it may: {lefts:?}");
    assert!(lefts.is_sorted_by(|before, after| before > after), "{lefts:?}");
    run_sql(&format!(
        "DO $$ BEGIN
             ASSERT (SELECT count(*) FROM {schema}.entries) = 1, 'the entry of the other log';
             ASSERT (SELECT count(*) FROM {schema}.logs) = 1, 'the other log';
         END $$"
    ));
}
