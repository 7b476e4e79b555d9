//! A PostgreSQL server of the tests' own, on a free port and in a fresh folder.
//!
//! The server refuses to run as root: then it runs as the user `postgres`, whom Debian's package makes.
//! A shell holds it, reads from a pipe until this process is gone, however it ends, and then stops it
//! and removes its folder.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use strandline_engine_postgres::{Password, PostgresConfig};
use strandline_model::ByteCount;

const MISSING: &str = "these tests start a PostgreSQL server, and none is installed: \
                       apt-get install postgresql (15 or later), or name the folder of `initdb` \
                       and `postgres` in STRANDLINE_POSTGRES_BIN";

const PASSWORD: &str = "open sesame";
const START_MAX: Duration = Duration::from_mins(1);

/// Stops its server when it reads the end of its input, which comes with the end of the tests.
const KEEPER: &str = r#"
    bin=$1 folder=$2 port=$3
    "$bin/postgres" -D "$folder/data" -p "$port" -k "$folder" \
        -c listen_addresses=127.0.0.1 -c max_connections=400 -c fsync=off \
        -c shared_buffers=64MB -c max_wal_size=256MB >>"$folder/log" 2>&1 &
    read -r ends
    kill -QUIT $! 2>/dev/null
    wait
    if [ "$ends" != keep ]; then rm -rf "$folder"; fi
"#;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    keeper: Child,
    line: Option<ChildStdin>,
}

/// The server that most tests share.
pub(crate) fn shared() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(Server::start)
}

/// Carries out SQL on the shared server.
pub(crate) fn run_sql(sql: &str) {
    shared().sql(sql);
}

/// The folder of the newest server's programs.
fn programs() -> PathBuf {
    if let Some(folder) = std::env::var_os("STRANDLINE_POSTGRES_BIN") {
        return folder.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.filter_map(|entry| Some((version(&entry.path())?, entry.path()))).max();
    let folder = newest.map(|(_, path)| path.join("bin"));
    folder.filter(|folder| folder.join("initdb").exists()).expect(MISSING)
}

/// A command that runs as an ordinary user.
fn as_ordinary_user(program: &Path) -> Command {
    let id = Command::new("id").arg("-u").output().expect("`id` runs");
    if id.stdout.trim_ascii() != b"0" {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program);
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect(MISSING);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {told}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Server {
    /// Starts a server in a fresh folder.
    pub(crate) fn start() -> Self {
        let made = as_ordinary_user(Path::new("mktemp"))
            .args(["-d", "-t", "strandline-postgres-XXXXXX"])
            .output()
            .expect("`mktemp` runs");
        let folder = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        assert!(folder.is_absolute(), "{}", String::from_utf8_lossy(&made.stderr));
        let password = tempfile::NamedTempFile::new().expect("a file can be made");
        std::fs::write(password.path(), PASSWORD).expect("it is written");
        run(Command::new("chmod").arg("a+r").arg(password.path()));
        run(as_ordinary_user(&programs().join("initdb"))
            .current_dir(&folder)
            .args(["-U", "strandline", "--auth-local=trust", "--auth-host=scram-sha-256"])
            .args(["--no-sync", "--locale=C"])
            .args(["-E", "UTF8"])
            .arg("--pwfile")
            .arg(password.path())
            .arg("-D")
            .arg(folder.join("data")));
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let (keeper, line) = Self::keep(&folder, port);
        let server = Self { folder, port, keeper, line: Some(line) };
        server.wait_until_ready();
        server
    }

    fn keep(folder: &Path, port: u16) -> (Child, ChildStdin) {
        let mut keeper = as_ordinary_user(Path::new("sh"))
            .current_dir(folder)
            .args(["-c", KEEPER, "keeper"])
            .arg(programs())
            .arg(folder)
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell runs");
        let line = keeper.stdin.take().expect("it is piped");
        (keeper, line)
    }

    fn wait_until_ready(&self) {
        let begun = Instant::now();
        let is_ready = || {
            let mut command = Command::new(programs().join("pg_isready"));
            let command = command.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            command.status().expect("pg_isready runs").success()
        };
        while !is_ready() {
            let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < START_MAX, "the server does not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Carries out SQL; what it answers, without decoration.
    pub(crate) fn sql(&self, sql: &str) -> String {
        run(Command::new(programs().join("psql"))
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "strandline", "-d", "postgres"])
            .args(["-p", &self.port.to_string(), "-c", sql])
            .arg("-h")
            .arg(&self.folder))
    }

    /// Its folder, in which its user may write.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a program as the server's user, in its folder.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) {
        run(as_ordinary_user(Path::new(program)).current_dir(&self.folder).args(arguments));
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The same by way of the network, where the server asks for a password.
    pub(crate) fn config_over_tcp(&self) -> PostgresConfig {
        let (host, password) = ("127.0.0.1".to_owned(), Some(Password::new(PASSWORD)));
        PostgresConfig { host, password, ..self.config() }
    }

    /// A small engine's configuration, for a schema of its own.
    pub(crate) fn config(&self) -> PostgresConfig {
        static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        PostgresConfig {
            host: self.folder.to_str().expect("it was made so").to_owned(),
            port: self.port,
            database: "postgres".to_owned(),
            schema: format!("test_{number}"),
            lanes: 2,
            readers: 1,
            row_writers: 2,
            pending_appends_max: 256,
            // So small that most of what a test reads comes from the database.
            tail_bytes: ByteCount::kib(4),
            past_bytes: ByteCount::kib(16),
            outcome_wait: Duration::from_secs(20),
            ..PostgresConfig::new()
        }
    }

    /// Stops the server as a power failure would, but for the disk, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.begin();
    }

    /// Stops the server, as above; its folder stays.
    pub(crate) fn stop(&mut self) {
        self.end("keep");
    }

    /// Starts a server that was stopped.
    pub(crate) fn begin(&mut self) {
        let (keeper, line) = Self::keep(&self.folder, self.port);
        (self.keeper, self.line) = (keeper, Some(line));
        self.wait_until_ready();
    }

    fn end(&mut self, word: &str) {
        if let Some(mut line) = self.line.take() {
            // The keeper may have ended by itself, and its server with it.
            let _told = writeln!(line, "{word}");
        }
        let _ended = self.keeper.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end("remove");
    }
}
