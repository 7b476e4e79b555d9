//! A network of our own: loopback only, one congestion control for all contenders.
//!
//! The default congestion control of many machines (bbr) costs three to five times on loopback, and
//! makes `sendfile` slower than a copy: figures of two machines would differ by that alone.

use std::fs;
use std::io;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

/// Set in the process that already runs inside.
const MARK: &str = "STRANDLINE_BENCH_NAMESPACE";
const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Where the caller runs.
#[derive(Debug)]
pub enum Network {
    /// In its own namespace, made ready.
    Own,
    /// In the machine's, for this reason.
    Shared(&'static str),
    /// The whole command has been run inside by another process: end with its code.
    Done(ExitCode),
}

/// Runs this command again inside a new namespace, or says why not.
pub fn enter() -> anyhow::Result<Network> {
    if std::env::var_os(MARK).is_some() {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        ensure!(up.context("run `ip`")?.success(), "loopback does not come up");
        fs::write(CONGESTION_CONTROL, "reno").context("choose reno")?;
        return Ok(Network::Own);
    }
    if !rustix::process::geteuid().is_root() {
        return Ok(Network::Shared("only root may make a network namespace"));
    }
    let me = std::env::current_exe()?;
    let mut inside = Command::new("unshare");
    inside.arg("-n").arg(me).args(std::env::args_os().skip(1)).env(MARK, "1");
    match inside.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            Ok(Network::Done(ExitCode::from(code)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Network::Shared("`unshare` is not installed"))
        }
        Err(error) => Err(error).context("run `unshare`"),
    }
}
