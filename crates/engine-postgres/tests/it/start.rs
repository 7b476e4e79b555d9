//! Starting: the schema, which several may make at once, and everything that is wrong with a server.

use std::collections::BTreeSet;

use strandline_engine_postgres::{OpenError, Password, PostgresConfig, PostgresEngine};
use strandline_storage::MetaStore;
use strandline_storage::testkit::TestBatch;
use strandline_storage::testkit::{Engine, Subject};
use strandline_storage::{MetaBatch, Table};

use super::server::{self, run_sql};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime starts")
}

async fn start(config: &PostgresConfig) -> Engine {
    let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
    let engine = std::sync::Arc::new(started.engine);
    Engine { logs: std::sync::Arc::clone(&engine) as _, rows: engine }
}

async fn refused(config: PostgresConfig) -> OpenError {
    PostgresEngine::open(config).await.map(|started| started.advice).expect_err("it is refused")
}

#[test]
fn several_brokers_make_one_schema_at_once() {
    runtime().block_on(async {
        let config = server::shared().config();
        let starts: Vec<_> =
            (0..8).map(|_| tokio::spawn(PostgresEngine::open(config.clone()))).collect();
        let mut engines = Vec::new();
        for start in starts {
            engines.push(start.await.expect("no start panics").expect("the engine opens").engine);
        }
        let batch = MetaBatch::new().put(Table::Cluster, "key", "value");
        engines[0].commit(batch).await.expect("commits");
        for engine in &engines {
            let got = engine.get(Table::Cluster, "key".into()).await.expect("reads");
            assert_eq!(got.as_deref(), Some(b"value".as_slice()));
        }
    });
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    runtime().block_on(async {
        let config = server::shared().config();
        drop(PostgresEngine::open(config.clone()).await.expect("the engine opens"));
        let schema = config.schema.clone();
        run_sql(&format!("INSERT INTO {schema}.schema_version (version) VALUES (999)"));
        let error = refused(config).await;
        let OpenError::NewerSchema { found, known, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*found, *known), (999, 1));
        assert!(error.to_string().contains("start a newer one"), "{error}");
    });
}

#[test]
fn a_password_opens_and_a_wrong_one_is_told_apart_from_an_absent_server() {
    runtime().block_on(async {
        let config = server::shared().config_over_tcp();
        let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
        let messages: Vec<_> = started.advice.iter().map(|advice| advice.message.clone()).collect();
        assert_eq!(messages.len(), 1, "the tests' server does not sync: {messages:?}");
        assert!(messages[0].starts_with("fsync is off"), "{messages:?}");

        let wrong = Some(Password::new("wrong horse"));
        let error = refused(PostgresConfig { password: wrong, ..config.clone() }).await;
        let OpenError::Refused { reason, .. } = &error else { panic!("{error:?}") };
        assert!(reason.contains("password authentication failed"), "{reason}");
        assert!(!format!("{error} {error:?}").contains("horse"));

        let error = refused(PostgresConfig { database: "none".to_owned(), ..config.clone() }).await;
        assert!(matches!(&error, OpenError::Refused { .. }), "{error:?}");
        // A port that nobody listens on, but that is never another's: the discard service's.
        let error = refused(PostgresConfig { port: 9, ..config }).await;
        assert!(matches!(&error, OpenError::Unreachable { .. }), "{error:?}");
    });
}

#[test]
fn a_user_whose_commits_would_not_be_durable_is_refused() {
    runtime().block_on(async {
        let config = server::shared().config();
        run_sql("CREATE ROLE careless LOGIN SUPERUSER");
        run_sql("ALTER ROLE careless SET synchronous_commit = off");
        let error = refused(PostgresConfig { user: "careless".to_owned(), ..config }).await;
        let OpenError::Unfit(message) = &error else { panic!("{error:?}") };
        assert!(message.contains("synchronous_commit is off"), "{message}");
    });
}

#[test]
fn what_a_restore_forgot_is_told_and_never_served_as_empty() {
    runtime().block_on(async {
        let config = server::shared().config();
        let engine = start(&config).await;
        for index in 0..2 {
            let subject = Subject::open(&engine, index).await;
            subject.append(TestBatch::of(3)).await;
        }
        engine.logs.close().await.expect("closes");
        let schema = &config.schema;
        run_sql(&format!(
            "DELETE FROM {schema}.entries WHERE log_id = \
             (SELECT log_id FROM {schema}.logs WHERE partition = 1)"
        ));
        let engine = start(&config).await;
        let lost = engine.logs.lost().await.expect("looks");
        let lost: BTreeSet<_> = lost.into_iter().map(|one| one.id).collect();
        assert_eq!(lost, BTreeSet::from([strandline_storage::testkit::partition(1)]));
        let heard = std::sync::Arc::default();
        let opened = engine.logs.open(strandline_storage::testkit::open_request(1, &heard)).await;
        let error = opened.expect_err("it is not served as empty");
        assert_eq!(error.kind(), strandline_storage::ErrorKind::Missing);
        let findings = engine.logs.verify(strandline_storage::testkit::partition(1)).await;
        assert_eq!(findings.expect("checks").len(), 1);
        assert_eq!(Subject::open(&engine, 0).await.log.bounds().durable_end.get(), 3);
    });
}

#[test]
fn rows_are_read_in_pages_and_none_is_left_out() {
    runtime().block_on(async {
        let config = server::shared().config();
        let engine = start(&config).await;
        Subject::open(&engine, 0).await.append(TestBatch::of(3)).await;
        engine.logs.close().await.expect("closes");
        let schema = &config.schema;
        // The second chunk took the place of others: its number is higher than that of the one behind it.
        run_sql(&format!(
            "INSERT INTO {schema}.logs (topic_id, partition, epoch, opener, is_open, end_offset)
             SELECT topic_id, n, 0, 0, false, 20 FROM {schema}.logs, generate_series(1, 20000) n;
             INSERT INTO {schema}.chunks
                 (log_id, number, state, base_offset, next_offset, bytes, first_at, last_at)
             SELECT log_id, n, 1, 20 - n * 10, 30 - n * 10, 5, 0, 0
             FROM {schema}.logs, generate_series(1, 2) n WHERE partition > 0"
        ));
        let engine = start(&config).await;
        assert_eq!(engine.logs.list().await.expect("lists").len(), 20_001);
        for index in [1, 9_999, 10_000, 10_001, 20_000] {
            let stored = engine.logs.stored(strandline_storage::testkit::partition(index));
            let chunks = stored.expect("it is known").chunks;
            let bases: Vec<_> = chunks.iter().map(|chunk| chunk.base_offset.get()).collect();
            assert_eq!(bases, [0, 10], "{index}");
        }
        // All but one lack their entries; of so many the first are told, here of six pages.
        let lost = engine.logs.lost().await.expect("looks");
        assert_eq!(lost.len(), 5_999);
        assert_eq!(lost[0].id, strandline_storage::testkit::partition(1));
        assert!(lost[0].what.contains("1, 2"), "{}", lost[0].what);
        run_sql(&format!("DELETE FROM {schema}.logs WHERE partition < 20000"));
        assert_eq!(engine.logs.lost().await.expect("looks").len(), 1);
    });
}
