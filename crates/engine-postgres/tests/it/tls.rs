//! TLS: who is let in, who is refused, and that nothing is sent in plain text instead.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use strandline_engine_postgres::{OpenError, Password, PostgresConfig, PostgresEngine};
use strandline_model::config::{ClientCertificate, PostgresTls, PostgresTlsMode};
use strandline_storage::{MetaBatch, MetaStore, Table};

use super::server::{self, Server};

/// Long enough for a key of the tests, short enough to make one in no time.
const NEW_KEY: [&str; 6] =
    ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"];

/// How long a server may take to read its files again.
const RELOAD_MAX: Duration = Duration::from_secs(20);

fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(test)
}

/// Makes an authority: `NAME.pem` and `NAME.key`.
fn make_authority(server: &Server, name: &str) {
    let (pem, key, subject) = (format!("{name}.pem"), format!("{name}.key"), format!("/CN={name}"));
    let mut arguments = vec!["req", "-x509"];
    arguments.extend(NEW_KEY);
    arguments.extend([&*key, "-out", &*pem, "-days", "30", "-subj", &*subject]);
    server.run("openssl", &arguments);
}

/// Makes a certificate for a name, which an authority signs.
fn make_certificate(server: &Server, file: &str, authority: &str, name: &str, days: &str) {
    let [pem, key, request, names] =
        ["pem", "key", "csr", "ext"].map(|ending| format!("{file}.{ending}"));
    let subject = format!("/CN={name}");
    let mut arguments = vec!["req"];
    arguments.extend(NEW_KEY);
    arguments.extend([&*key, "-out", &*request, "-subj", &*subject]);
    server.run("openssl", &arguments);
    let alternative = format!("echo subjectAltName=DNS:{name} > {names}");
    server.run("sh", &["-c", &alternative]);
    let [root, root_key] = ["pem", "key"].map(|ending| format!("{authority}.{ending}"));
    server.run(
        "openssl",
        &[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &root,
            "-CAkey",
            &root_key,
            "-CAcreateserial",
            "-days",
            days,
            "-out",
            &pem,
            "-extfile",
            &names,
        ],
    );
}

/// A server that speaks TLS as `localhost`, by the authority `ours`.
fn encrypted() -> Server {
    let mut server = Server::start();
    make_authority(&server, "ours");
    make_authority(&server, "theirs");
    make_certificate(&server, "server", "ours", "localhost", "30");
    let folder = server.folder().display().to_string();
    let settings = format!(
        "cat >> data/postgresql.conf <<END\nssl = on\nssl_cert_file = '{folder}/server.pem'\n\
         ssl_key_file = '{folder}/server.key'\nssl_ca_file = '{folder}/ours.pem'\nEND\n\
         sed -i '1i hostssl all certified 127.0.0.1/32 cert' data/pg_hba.conf"
    );
    server.run("sh", &["-c", &settings]);
    server.restart();
    server
}

fn file(server: &Server, name: &str) -> String {
    server.folder().join(name).to_str().expect("a plain name").to_owned()
}

/// `localhost` by way of the network, with `ours` trusted.
fn verified(server: &Server) -> PostgresConfig {
    let tls = PostgresTls {
        mode: PostgresTlsMode::VerifyFull,
        root_cert_file: Some(file(server, "ours.pem")),
        client: None,
    };
    PostgresConfig { host: "localhost".to_owned(), tls, ..server.config_over_tcp() }
}

fn with_mode(config: &PostgresConfig, mode: PostgresTlsMode) -> PostgresConfig {
    let root_cert_file =
        config.tls.root_cert_file.clone().filter(|_| mode != PostgresTlsMode::Require);
    PostgresConfig {
        tls: PostgresTls { mode, root_cert_file, ..config.tls.clone() },
        ..config.clone()
    }
}

async fn refused(config: PostgresConfig) -> String {
    let error = PostgresEngine::open(config).await.map(|_| ()).expect_err("it is refused");
    let OpenError::Tls { reason, .. } = error else { panic!("{error:?}") };
    reason
}

async fn commits(engine: &PostgresEngine) {
    let batch = MetaBatch::new().put(Table::Cluster, "key", "value");
    engine.commit(batch).await.expect("commits");
}

#[test]
fn a_server_is_who_its_certificate_says_or_nothing_is_sent() {
    let server = encrypted();
    run(async {
        let right = verified(&server);
        let started = PostgresEngine::open(right.clone()).await.expect("the right name");
        commits(&started.engine).await;
        let plain = "SELECT count(*) FILTER (WHERE NOT ssl) || '/' || count(*) FROM pg_stat_ssl \
                     JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'strandline%'";
        let found = server.sql(plain);
        assert!(found.starts_with("0/") && found != "0/0", "plain connections of all: {found}");

        let address = PostgresConfig { host: "127.0.0.1".to_owned(), ..right.clone() };
        let reason = refused(address.clone()).await;
        assert!(reason.contains("is for another name"), "{reason}");
        for mode in [PostgresTlsMode::VerifyCa, PostgresTlsMode::Require] {
            PostgresEngine::open(with_mode(&address, mode))
                .await
                .expect("the name is not asked for");
        }

        let mut strange = right.clone();
        strange.tls.root_cert_file = Some(file(&server, "theirs.pem"));
        for config in [strange.clone(), with_mode(&strange, PostgresTlsMode::VerifyCa)] {
            let reason = refused(config).await;
            assert!(reason.contains("signed by nobody that is trusted"), "{reason}");
        }
        PostgresEngine::open(with_mode(&strange, PostgresTlsMode::Require)).await.expect("anybody");
        let mut system = right.clone();
        system.tls.root_cert_file = None;
        let reason = refused(system).await;
        // A system may have no roots at all.
        assert!(
            reason.contains("nobody that is trusted") || reason.contains("no root"),
            "{reason}"
        );
    });
}

#[test]
fn an_expired_certificate_is_refused_and_new_ones_need_no_restart() {
    let server = encrypted();
    run(async {
        let config = verified(&server);
        let started = PostgresEngine::open(config.clone()).await.expect("the engine opens");
        make_certificate(&server, "server", "ours", "localhost", "-1");
        server.sql("SELECT pg_reload_conf()");
        let begun = Instant::now();
        let reason = loop {
            // The server reads its files again a moment later.
            match PostgresEngine::open(config.clone()).await {
                Err(OpenError::Tls { reason, .. }) => break reason,
                other => assert!(begun.elapsed() < RELOAD_MAX, "{other:?}"),
            }
        };
        assert!(reason.contains("has expired"), "{reason}");
        let reason = refused(with_mode(&config, PostgresTlsMode::VerifyCa)).await;
        assert!(reason.contains("has expired"), "{reason}");

        // Another authority altogether: root certificates are read for each new connection.
        make_certificate(&server, "server", "theirs", "localhost", "30");
        server.run("cp", &["theirs.pem", "ours.pem"]);
        server.sql("SELECT pg_reload_conf()");
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                      WHERE application_name LIKE 'strandline%'";
        server.sql(others);
        commits(&started.engine).await;
    });
}

#[test]
fn a_server_may_ask_for_our_certificate() {
    let server = encrypted();
    server.sql("CREATE ROLE certified LOGIN SUPERUSER");
    make_certificate(&server, "client", "ours", "certified", "30");
    run(async {
        let config = PostgresConfig { user: "certified".to_owned(), ..verified(&server) };
        let error =
            PostgresEngine::open(config.clone()).await.map(|_| ()).expect_err("no certificate");
        let OpenError::Refused { reason, .. } = &error else { panic!("{error:?}") };
        assert!(reason.contains("client certificate"), "{reason}");
        let with = |cert: &str, key: &str| {
            let mut config = config.clone();
            let (cert_file, key_file) = (file(&server, cert), file(&server, key));
            config.tls.client = Some(ClientCertificate { cert_file, key_file });
            config
        };
        let started = PostgresEngine::open(with("client.pem", "client.key")).await;
        commits(&started.expect("the certificate opens").engine).await;
        let reason = refused(with("client.pem", "server.key")).await;
        assert!(reason.contains("do not fit"), "{reason}");
        let reason = refused(with("client.pem", "client.csr")).await;
        assert!(reason.contains("no private key"), "{reason}");
    });
}

#[test]
fn a_server_without_tls_gets_nothing_in_plain_text() {
    let heard = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = heard.local_addr().expect("bound").port();
    let listening = std::thread::spawn(move || {
        let (mut peer, _) = heard.accept().expect("somebody comes");
        let mut asked = [0; 8];
        peer.read_exact(&mut asked).expect("asks for TLS");
        assert_eq!(asked[4..], 80_877_103_u32.to_be_bytes(), "a request for TLS");
        peer.write_all(b"N").expect("answers");
        let mut more = Vec::new();
        peer.read_to_end(&mut more).expect("hangs up");
        more
    });
    run(async {
        let tls = PostgresTls { mode: PostgresTlsMode::Require, ..PostgresTls::disabled() };
        let (host, password) = ("127.0.0.1".to_owned(), Some(Password::new("open sesame")));
        let config = PostgresConfig { host, port, password, tls, ..PostgresConfig::new() };
        assert_eq!(refused(config).await, "the server does not speak TLS");
        let tls = PostgresTls { mode: PostgresTlsMode::VerifyFull, ..PostgresTls::disabled() };
        let real = PostgresConfig { tls, ..server::shared().config_over_tcp() };
        let real = refused_by_a_plain_server(real).await;
        assert_eq!(real, "the server does not speak TLS");
    });
    assert_eq!(listening.join().expect("no panic"), b"", "nothing follows the refusal");
}

/// With roots of our own: a system may have none.
async fn refused_by_a_plain_server(mut config: PostgresConfig) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let pem = folder.path().join("root.pem");
    let key = folder.path().join("root.key");
    let status = std::process::Command::new("openssl")
        .args(["req", "-x509"])
        .args(NEW_KEY)
        .args([Path::new(&key), Path::new("-out"), Path::new(&pem)])
        .args(["-days", "30", "-subj", "/CN=root"])
        .output()
        .expect("openssl runs");
    assert!(status.status.success(), "{status:?}");
    config.tls.root_cert_file = pem.to_str().map(ToOwned::to_owned);
    refused(config).await
}
