//! Starting and stopping the brokers that are compared, each as a child process.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use tempfile::TempDir;

use crate::drive::setup;
use crate::measure::account::Account;
use crate::ports;

/// A broker that is not up by then never will be. A JVM needs seconds, and with 10 000 logs to recover
/// on a busy disk more than four minutes.
const START_TIMEOUT: Duration = Duration::from_mins(10);
const START_POLL: Duration = Duration::from_micros(200);
/// How much of a dead broker's log an error shows.
const LOG_TAIL_BYTES: usize = 2000;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Contender {
    /// The null broker.
    Null,
    /// The ideal shared journal.
    Journal,
    /// Strandline.
    Strandline,
    /// Apache Kafka.
    Kafka,
    /// PostgreSQL by itself, which is no broker.
    Postgres,
}

/// When an acknowledgement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When the records are on disk.
    Disk,
    /// When they are in the page cache.
    PageCache,
}

/// Where the programs are, and where they put their data.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The reference brokers.
    pub null: PathBuf,
    /// The release build of Strandline.
    pub strandline: PathBuf,
    /// The script that starts Apache Kafka, when it takes part.
    pub kafka: Option<PathBuf>,
    /// The folder below which each run has its own.
    pub scratch: PathBuf,
    /// What Strandline is told beside what every run tells it, each as `key=value`.
    pub properties: Vec<String>,
}

/// A running broker; killed, and its data removed, with the value.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its processor time and memory.
    pub account: Option<Account>,
    /// Whose processor time counts as the broker's, too: the database's that it keeps its records in.
    pub database: Option<Arc<Account>>,
    /// Where it listens.
    pub broker: SocketAddr,
    /// From the start of the process to the first answer.
    pub ready: Duration,
    /// The port that it was told to listen on, if it was.
    fixed_port: Option<u16>,
    /// Gone once another process has it.
    folder: Option<TempDir>,
}

impl Programs {
    /// Starts a broker in a fresh folder and waits until it answers.
    pub fn start(&self, contender: Contender, durability: Durability) -> anyhow::Result<Running> {
        let folder = tempfile::Builder::new()
            .prefix("strandline-bench-")
            .tempdir_in(&self.scratch)
            .context("make a folder for the run")?;
        fs::create_dir(folder.path().join("data"))?;
        let fixed_port = match contender {
            Contender::Kafka => Some(free_port()?),
            Contender::Null | Contender::Journal | Contender::Strandline => None,
            Contender::Postgres => bail!("PostgreSQL is no broker"),
        };
        self.launch(contender, durability, folder, fixed_port)
    }

    /// Starts a broker in a folder, empty or left by another, and waits until it answers.
    fn launch(
        &self,
        contender: Contender,
        durability: Durability,
        folder: TempDir,
        fixed_port: Option<u16>,
    ) -> anyhow::Result<Running> {
        let data = folder.path().join("data");
        let ports_file = folder.path().join("ports");
        let mut command = self.command(contender, durability, &data, &ports_file, fixed_port)?;
        let log = File::create(folder.path().join("log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let begin = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("start {contender:?}. command=`{command:?}`"))?;
        let account = Some(Account::open(child.id()));
        let broker = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (ready, folder) = (Duration::ZERO, Some(folder));
        let database = None;
        let mut running = Running { child, account, database, broker, ready, fixed_port, folder };
        running.wait_until_ready(begin, &ports_file)?;
        Ok(running)
    }

    fn command(
        &self,
        contender: Contender,
        durability: Durability,
        data: &Path,
        ports_file: &Path,
        fixed_port: Option<u16>,
    ) -> anyhow::Result<Command> {
        let on_disk = durability == Durability::Disk;
        let mut command;
        match contender {
            Contender::Null | Contender::Journal => {
                command = Command::new(&self.null);
                command.arg("--data").arg(data).arg("--ports-file").arg(ports_file);
                command.args(on_disk.then_some("--sync"));
                command.args((contender == Contender::Journal).then_some("--journal"));
            }
            Contender::Strandline => {
                command = Command::new(&self.strandline);
                // It would be taken for a setting.
                command.env_remove("STRANDLINE_POSTGRES_BIN");
                command.arg("serve").arg("--data").arg(data).args(["--port", "0", "--http", "0"]);
                command.arg("--ports-file").arg(ports_file).arg("--exit-with-parent");
                let fsync = if on_disk { "commit" } else { "never" };
                command.arg("-c").arg(format!("storage.file.fsync={fsync}"));
                // What is deleted is to go while somebody looks.
                command.args(["-c", "deletion.grace.ms=0"]);
                command.args(self.properties.iter().flat_map(|property| ["-c", property]));
            }
            Contender::Kafka => {
                let script = self.kafka.as_ref().context("no script to start Kafka with")?;
                command = Command::new(script);
                command.arg("start").arg(data);
                command.arg(fixed_port.context("Kafka needs a port")?.to_string());
                command.args(["num.io.threads=8", "auto.create.topics.enable=false"]);
                // It can't be changed at run time.
                command.arg("log.retention.check.interval.ms=500");
            }
            Contender::Postgres => bail!("PostgreSQL is no broker"),
        }
        Ok(command)
    }
}

/// Configs of a topic, so that each contender keeps it as durable as asked.
pub fn topic_configs(
    contender: Contender,
    durability: Durability,
) -> &'static [(&'static str, &'static str)] {
    match (contender, durability) {
        (Contender::Kafka, Durability::Disk) => &[("flush.messages", "1")],
        _ => &[],
    }
}

/// Configs of a topic that is to be deleted, so that each contender begins at once.
pub const fn removed_configs(contender: Contender) -> &'static [(&'static str, &'static str)] {
    match contender {
        Contender::Kafka => &[("file.delete.delay.ms", "0")],
        Contender::Null | Contender::Journal | Contender::Strandline | Contender::Postgres => &[],
    }
}

impl Running {
    fn wait_until_ready(&mut self, begin: Instant, ports_file: &Path) -> anyhow::Result<()> {
        loop {
            let port =
                self.fixed_port.or_else(|| ports::parse(&fs::read_to_string(ports_file).ok()?));
            if let Some(port) = port {
                self.broker.set_port(port);
                if setup::api_versions(self.broker).is_ok() {
                    self.ready = begin.elapsed();
                    return Ok(());
                }
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the broker ended. status=`{status}`, log=`{}`", self.log_tail());
            }
            if begin.elapsed() > START_TIMEOUT {
                bail!("the broker does not answer. log=`{}`", self.log_tail());
            }
            std::thread::sleep(START_POLL);
        }
    }

    /// Kills the broker and starts another one in its folder.
    pub fn restart(
        &mut self,
        programs: &Programs,
        contender: Contender,
        durability: Durability,
    ) -> anyhow::Result<()> {
        self.kill();
        let folder = self.folder.take().context("the folder is another's")?;
        if self.fixed_port.is_none() {
            fs::remove_file(folder.path().join("ports"))?;
        }
        let database = self.database.take();
        *self = programs.launch(contender, durability, folder, self.fixed_port)?;
        self.database = database;
        Ok(())
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
        self.account.take();
    }

    /// The folder of the run, on the disk that the broker writes to.
    pub fn folder(&self) -> &Path {
        self.folder.as_ref().expect("a broker has its folder until another takes it").path()
    }

    /// The end of what the broker has logged; nothing when its folder went with a start that failed.
    pub fn log_tail(&self) -> String {
        let Some(folder) = &self.folder else { return String::new() };
        let log = fs::read(folder.path().join("log")).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
        String::from_utf8_lossy(tail).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its folder goes after it.
        self.kill();
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
