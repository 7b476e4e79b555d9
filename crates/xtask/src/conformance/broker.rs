//! The broker of a lane: started through `launch`, watched, stopped.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::storage::Store;

/// Where it listens: kafka-go and rust-rdkafka have this port written into their tests.
pub(super) const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9092);

const START_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A broker that runs. Dropped without [`Broker::stop`], it is killed.
#[derive(Debug)]
pub(super) struct Broker {
    child: Child,
    log: PathBuf,
}

impl Broker {
    /// Starts one in the empty folder `dir` with Kafka's properties and waits until it listens.
    pub(super) fn start(
        launch: &Path,
        dir: &Path,
        properties: &[String],
        store: &Store,
    ) -> anyhow::Result<Self> {
        ensure!(!listens(), "something already listens on port {}; end it first", ADDRESS.1);
        let log = dir.with_extension("log");
        std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
        let out = File::create(&log).with_context(|| format!("make {}", log.display()))?;
        let error = out.try_clone().context("share the log's handle")?;
        let child = Command::new(launch)
            .arg(dir)
            .arg(ADDRESS.1.to_string())
            .args(properties)
            .envs(store.variables())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(error)
            .spawn()
            .with_context(|| format!("start {}", launch.display()))?;
        let mut broker = Self { child, log };
        let began = Instant::now();
        while !listens() {
            if let Some(status) = broker.child.try_wait().context("look after the broker")? {
                bail!("the broker ended with {status} at its start, see {}", broker.log.display());
            }
            ensure!(began.elapsed() < START_LIMIT, "the broker did not listen in time");
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(broker)
    }

    /// Stops it as an operator would. What was wrong with its life, if anything was: it had ended by
    /// itself, a part of it had panicked, or it did not stop.
    pub(super) fn stop(mut self) -> anyhow::Result<Option<String>> {
        let shown = self.log.display().to_string();
        if let Some(status) = self.child.try_wait().context("look after the broker")? {
            return Ok(Some(format!("the broker ended by itself with {status}, see {shown}")));
        }
        let kill = Command::new("kill").arg(self.child.id().to_string()).status();
        ensure!(kill.context("start `kill`")?.success(), "the broker could not be asked to stop");
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().context("wait for the broker's end")? {
                break status;
            }
            if began.elapsed() > STOP_LIMIT {
                return Ok(Some(format!("the broker did not stop within {STOP_LIMIT:?}")));
            }
            std::thread::sleep(LOOK_AGAIN);
        };
        let log = std::fs::read(&self.log).with_context(|| format!("read {shown}"))?;
        Ok(if let Some(line) = panic_in(&String::from_utf8_lossy(&log)) {
            Some(format!("the broker panicked, see {shown}: {line}"))
        } else if !status.success() {
            Some(format!("the broker stopped with {status}, see {shown}"))
        } else {
            None
        })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Already gone is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listens() -> bool {
    TcpStream::connect_timeout(&SocketAddr::from(ADDRESS), Duration::from_secs(1)).is_ok()
}

fn panic_in(log: &str) -> Option<&str> {
    log.lines().find(|line| line.contains("panicked at"))
}

/// The settings of a `broker.properties`.
pub(super) fn properties(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_wherever_it_stands() {
        let log = "started\n{\"msg\":\"thread 'x' panicked at src/a.rs:1\"}\nstopped\n";
        assert!(panic_in(log).is_some_and(|line| line.contains("a.rs")));
        assert_eq!(panic_in("started\nstopped\n"), None);
    }

    #[test]
    fn properties_are_lines_without_comments() {
        assert_eq!(properties("# who\n\na=1\nb=x y;\n"), ["a=1", "b=x y;"]);
    }
}
