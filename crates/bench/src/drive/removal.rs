//! A large topic that goes while others work: made, deleted, and watched until the disk has it back.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::setup;

/// How often the folder is looked at.
const POLL: Duration = Duration::from_millis(20);
/// A removal that takes longer is stuck.
const PATIENCE: Duration = Duration::from_mins(5);

/// Deletes `topic`, of about `bytes` on the disk below `folder`. How long it takes from the request
/// until nine tenths of the bytes are gone.
pub fn remove(
    broker: SocketAddr,
    topic: &str,
    folder: &Path,
    bytes: u64,
) -> anyhow::Result<Duration> {
    let before = occupied(folder)?;
    ensure!(before >= bytes, "the topic is not there. occupied=`{before}`");
    let begun = Instant::now();
    setup::delete_topic(broker, topic)?;
    while occupied(folder)? + bytes / 10 * 9 > before {
        if begun.elapsed() > PATIENCE {
            bail!("the topic's bytes stay. log of the folder=`{}`", folder.display());
        }
        std::thread::sleep(POLL);
    }
    Ok(begun.elapsed())
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
