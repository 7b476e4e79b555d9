//! The password: read when it is needed, and told to nobody.

use std::os::unix::fs::PermissionsExt;

use strandline_engine_postgres::{OpenError, Password, PostgresConfig, PostgresEngine};
use strandline_storage::{MetaBatch, MetaStore, Table};

use super::server;

fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(test)
}

#[test]
fn a_new_password_in_the_file_is_used_without_a_restart() {
    let server = server::shared();
    server.sql("CREATE ROLE rotating LOGIN SUPERUSER PASSWORD 'the first'");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "the first\n").expect("written");
    let password = Some(Password::from_file(file.path()));
    let config =
        PostgresConfig { user: "rotating".to_owned(), password, ..server.config_over_tcp() };
    run(async {
        let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
        let secrets: Vec<_> =
            started.advice.iter().filter(|one| one.message.contains("password")).collect();
        assert_eq!(secrets.len(), 0, "{secrets:?}");
        let commit = |value: &'static str| {
            started.engine.commit(MetaBatch::new().put(Table::Cluster, "key", value))
        };
        commit("one").await.expect("commits");
        server.sql("ALTER ROLE rotating PASSWORD 'the second'");
        std::fs::write(file.path(), "the second\n").expect("written");
        let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                     WHERE usename = 'rotating'";
        assert_ne!(server.sql(ended), "0");
        commit("two").await.expect("commits with the new password");

        std::fs::write(file.path(), "the third\n").expect("written");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).expect("set");
        let error = PostgresEngine::open(config.clone()).await.map(|_| ()).expect_err("wrong");
        assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("third"), "{error:?}");
        std::fs::write(file.path(), "the second").expect("written");
        let again = PostgresEngine::open(config.clone()).await.expect("the engine opens");
        let told = again.advice.iter().any(|one| one.message.contains("can read the password"));
        assert!(told, "{:?}", again.advice);

        file.close().expect("removed");
        let error = PostgresEngine::open(config).await.map(|_| ()).expect_err("no file");
        assert!(matches!(error, OpenError::Password { .. }), "{error:?}");
    });
}
