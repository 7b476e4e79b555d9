//! A PostgreSQL server on a free port and in a fresh folder, with its defaults: `fsync` is on.
//!
//! It refuses to run as root: then it runs as the user `postgres`, whom Debian's package makes. A shell
//! holds it, reads from a pipe until this process is gone, however it ends, and then stops it and
//! removes its folder.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::measure::account::Account;

const MISSING: &str = "these rows start a PostgreSQL server, and none is installed: apt-get install \
                       postgresql (15 or later), or name the folder of its programs in \
                       STRANDLINE_POSTGRES_BIN";
const USER: &str = "strandline";
const START_MAX: Duration = Duration::from_mins(1);
const READY_POLL: Duration = Duration::from_millis(20);

/// Waits for a line before it starts the server, so that the account has all of its processes; stops it
/// when its input ends, which comes with the end of this process.
const KEEPER: &str = r#"
    bin=$1 folder=$2 port=$3
    read -r begins
    "$bin/postgres" -D "$folder/data" -p "$port" -k "$folder" -c listen_addresses=127.0.0.1 \
        >>"$folder/log" 2>&1 &
    read -r ends
    kill -INT $! 2>/dev/null
    wait
    rm -rf "$folder"
"#;

/// A running server; stopped, and its data removed, with the value.
#[derive(Debug)]
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    keeper: Child,
    line: Option<ChildStdin>,
    /// Processor time of all its processes.
    pub account: Arc<Account>,
    databases: usize,
}

/// A database of the server, for one run.
#[derive(Clone, Debug)]
pub struct Database {
    programs: PathBuf,
    port: u16,
    /// Its name.
    pub name: String,
}

impl Server {
    /// Starts a server in a folder of its own below `scratch`.
    pub fn start(scratch: &Path) -> Result<Self> {
        let programs = programs()?;
        let made = as_ordinary_user(Path::new("mktemp"))
            .arg("-d")
            .arg(scratch.join("strandline-bench-postgres-XXXXXX"))
            .output()
            .context("run `mktemp`")?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr).trim());
        let folder = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        let mut initdb = as_ordinary_user(&programs.join("initdb"));
        initdb.current_dir(&folder).args(["-U", USER, "-A", "trust", "--locale=C", "-E", "UTF8"]);
        run(initdb.arg("-D").arg(folder.join("data")))?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut keeper = as_ordinary_user(Path::new("sh"))
            .current_dir(&folder)
            .args(["-c", KEEPER, "keeper"])
            .args([programs.as_os_str(), folder.as_os_str(), OsStr::new(&port.to_string())])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("run a shell")?;
        let line = keeper.stdin.take();
        let account = Arc::new(Account::open(keeper.id()));
        let mut server = Self { programs, folder, port, keeper, line, account, databases: 0 };
        server.tell("begin")?;
        server.wait_until_ready()?;
        Ok(server)
    }

    fn tell(&mut self, word: &str) -> Result<()> {
        let line = self.line.as_mut().context("the server was told to stop")?;
        writeln!(line, "{word}").context("tell the server's keeper")
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let mut ask = Command::new(self.programs.join("pg_isready"));
            ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if ask.status().context("run `pg_isready`")?.success() {
                return Ok(());
            }
            if begun.elapsed() > START_MAX {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                bail!("the server does not start. log=`{log}`");
            }
            std::thread::sleep(READY_POLL);
        }
    }

    /// Its folder, on the disk that it writes to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A fresh database, when everything before is written.
    pub fn database(&mut self) -> Result<Database> {
        self.databases += 1;
        let name = format!("run_{}", self.databases);
        let all = self.named("postgres");
        all.sql(&format!("CREATE DATABASE {name}"))?;
        let database = self.named(&name);
        // What the run before has left to write, and its autovacuum, are not this run's.
        all.sql("CHECKPOINT")?;
        Ok(database)
    }

    /// Ends a run's database, whoever still uses it.
    pub fn drop_database(&self, database: &Database) -> Result<()> {
        let name = &database.name;
        self.named("postgres").sql(&format!("DROP DATABASE {name} WITH (FORCE)"))?;
        Ok(())
    }

    fn named(&self, name: &str) -> Database {
        Database { programs: self.programs.clone(), port: self.port, name: name.to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input stops it.
        self.line.take();
        let _ended = self.keeper.wait();
    }
}

impl Database {
    /// What a broker is told, so that everything it keeps is here.
    pub fn properties(&self) -> Vec<String> {
        vec![
            "storage.default=postgres".to_owned(),
            "meta.store=postgres".to_owned(),
            "postgres.host=127.0.0.1".to_owned(),
            format!("postgres.port={}", self.port),
            format!("postgres.user={USER}"),
            format!("postgres.database={}", self.name),
        ]
    }

    /// One of the server's programs, told where the database is.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.args(["-h", "127.0.0.1", "-U", USER, "-p", &self.port.to_string()]);
        command
    }

    /// `psql` for one statement.
    pub fn psql(&self, sql: &str) -> Command {
        let mut command = self.program("psql");
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &self.name, "-c", sql]);
        command
    }

    /// Carries out a statement, or several: what they answer.
    pub fn sql(&self, sql: &str) -> Result<String> {
        run(&mut self.psql(sql))
    }

    /// Hands what `write` writes to a statement that reads it.
    pub fn copy_in(
        &self,
        sql: &str,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        let mut psql = self.psql(sql).stdin(Stdio::piped()).spawn().context("run `psql`")?;
        let mut input = psql.stdin.take().context("its input is piped")?;
        let written = write(&mut input);
        drop(input);
        let status = psql.wait()?;
        written.context("write to `psql`")?;
        ensure!(status.success(), "psql failed. sql=`{sql}`");
        Ok(())
    }

    /// Reads all that a statement writes: how many bytes.
    pub fn copy_out(&self, sql: &str) -> Result<u64> {
        let mut psql = self.psql(sql).stdout(Stdio::piped()).spawn().context("run `psql`")?;
        let mut output = psql.stdout.take().context("its output is piped")?;
        let mut buf = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match output.read(&mut buf)? {
                0 => break,
                read => bytes += read as u64,
            }
        }
        let status = psql.wait()?;
        ensure!(status.success(), "psql failed. sql=`{sql}`");
        Ok(bytes)
    }
}

/// The folder of the newest server's programs.
fn programs() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("STRANDLINE_POSTGRES_BIN") {
        return Ok(folder.into());
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.filter_map(|entry| Some((version(&entry.path())?, entry.path()))).max();
    let folder = newest.map(|(_, path)| path.join("bin"));
    folder.filter(|folder| folder.join("initdb").exists()).context(MISSING)
}

/// A command that runs as an ordinary user.
fn as_ordinary_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program);
    command
}

/// What a command writes, when it succeeds.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("run `{program}`"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{program}` failed: {}", told.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
