//! The two brokers: given by address, or started here with the same properties.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::postgres::Postgres;

/// What both brokers run with.
const PROPERTIES: [&str; 11] = [
    "node.id=1",
    "num.partitions=1",
    "default.replication.factor=1",
    "auto.create.topics.enable=true",
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=6000",
    // Loaded once, whichever groups the script uses.
    "offsets.topic.num.partitions=1",
    "fetch.max.bytes=57671680",
    "message.max.bytes=1048588",
    "log.message.timestamp.after.max.ms=3600000",
    // The records of the script are old.
    "log.retention.ms=-1",
];

const START: Duration = Duration::from_mins(1);

/// A broker that is there, for as long as this lives when it was started here.
#[derive(Debug)]
pub(crate) struct Peer {
    address: String,
    process: Option<(Child, TempDir)>,
    /// What it keeps its topics in, which ends after it.
    database: Option<Postgres>,
}

impl Peer {
    /// One that runs elsewhere.
    pub(crate) fn at(address: String) -> Self {
        Self { address, process: None, database: None }
    }

    /// The same, with what it needs for as long as it lives.
    pub(crate) fn with(mut self, database: Postgres) -> Self {
        self.database = Some(database);
        self
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Starts Apache Kafka in a folder of its own.
    pub(crate) fn start_kafka() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        // Kafka's controller listens on the next port.
        let port = free_port_pair()?;
        let mut command = Command::new(root().join("tests/peers/kafka/kafka"));
        command.arg("start").arg(folder.path()).arg(port.to_string()).args(PROPERTIES);
        Self::start(command, folder, Some(format!("127.0.0.1:{port}")))
    }

    /// Starts Strandline in a folder of its own: the release build, or what `STRANDLINE_BINARY` names. It
    /// has these properties besides those of both.
    pub(crate) fn start_strandline(properties: &[String]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let release = || root().join("target/release/strandline").into_os_string();
        let mut command =
            Command::new(std::env::var_os("STRANDLINE_BINARY").unwrap_or_else(release));
        command.args(["serve", "--exit-with-parent", "--port", "0", "--http", "0", "--data"]);
        command.arg(folder.path().join("data"));
        // What is meant for this program would be settings of the broker.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STRANDLINE_") {
                command.env_remove(name);
            }
        }
        command.arg("--ports-file");
        command.arg(folder.path().join("ports"));
        for property in PROPERTIES.into_iter().chain(properties.iter().map(String::as_str)) {
            command.args(["-c", property]);
        }
        Self::start(command, folder, None)
    }

    fn start(mut command: Command, folder: TempDir, known: Option<String>) -> anyhow::Result<Self> {
        let log = fs::File::create(folder.path().join("log"))?;
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("start {name}"))?;
        let process = Some((child, folder));
        let mut peer = Self { address: String::new(), process, database: None };
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            let address = known.clone().or_else(|| peer.ports_file());
            if let Some(address) = address.filter(|address| TcpStream::connect(address).is_ok()) {
                peer.address = address;
                return Ok(peer);
            }
            let (child, folder) = peer.process.as_mut().expect("it was started here");
            if let Some(status) = child.try_wait()? {
                bail!("{name} ended with {status}:\n{}", tail(folder.path()));
            }
            // Nothing tells when a port is open but trying it.
            thread::sleep(Duration::from_millis(50));
        }
        bail!("{name} is not ready after {} s", START.as_secs());
    }

    /// The Kafka port from the file that `--ports-file` names: `{"http":PORT,"kafka":PORT}`.
    fn ports_file(&self) -> Option<String> {
        let (_, folder) = self.process.as_ref()?;
        let text = fs::read_to_string(folder.path().join("ports")).ok()?;
        let (_, after) = text.split_once("\"kafka\":")?;
        let port: String = after.trim_start().chars().take_while(char::is_ascii_digit).collect();
        Some(format!("127.0.0.1:{port}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.process {
            // It may have ended by itself; either way nothing is left running.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn tail(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

fn free_port_pair() -> anyhow::Result<u16> {
    for _ in 0..100 {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no two neighbouring ports are free")
}

/// The workspace's folder: two above this crate's.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("this crate lies two below the root").to_path_buf()
}
