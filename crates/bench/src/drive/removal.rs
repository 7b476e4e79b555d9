//! A large topic that goes while others work: made, deleted, and watched until the disk has it back.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::setup;

/// How often the folder is looked at.
const POLL: Duration = Duration::from_millis(20);
/// A removal that takes longer is stuck.
const PATIENCE: Duration = Duration::from_mins(2);

/// A deletion that begins beside a load.
#[derive(Debug)]
pub struct Removal(JoinHandle<anyhow::Result<Duration>>);

impl Removal {
    /// Deletes `topic`, of about `bytes` on the disk below `folder`, after `delay`.
    pub fn start(
        broker: SocketAddr,
        topic: String,
        folder: PathBuf,
        bytes: u64,
        delay: Duration,
    ) -> Self {
        Self(std::thread::spawn(move || {
            let before = occupied(&folder)?;
            ensure!(before >= bytes, "the topic is not there. occupied=`{before}`");
            std::thread::sleep(delay);
            let begun = Instant::now();
            setup::delete_topic(broker, &topic)?;
            while occupied(&folder)? + bytes / 10 * 9 > before {
                if begun.elapsed() > PATIENCE {
                    bail!("the topic's bytes stay. log of the folder=`{}`", folder.display());
                }
                std::thread::sleep(POLL);
            }
            Ok(begun.elapsed())
        }))
    }

    /// From the request until nine tenths of the bytes were gone.
    pub fn finish(self) -> anyhow::Result<Duration> {
        self.0.join().expect("the deletion does not panic")
    }
}

/// Writes back what the making of a topic has left in memory, so that it disturbs nobody later.
pub fn settle(folder: &Path) -> anyhow::Result<()> {
    let status = Command::new("sync").arg("-f").arg(folder).status().context("run sync")?;
    ensure!(status.success(), "sync failed. status=`{status}`");
    Ok(())
}

/// Bytes that the files below a folder occupy; some may go meanwhile.
fn occupied(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => sum += occupied(&entry.path())?,
            Ok(metadata) => sum += metadata.blocks() * 512,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum)
}
