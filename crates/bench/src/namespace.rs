//! A network of our own: loopback only, one congestion control for all contenders.
//!
//! The default congestion control of many machines (bbr) costs three to five times on loopback, and
//! makes `sendfile` slower than a copy: figures of two machines would differ by that alone.

use std::fs;
use std::io;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

/// Set in the process that already runs inside.
const MARK: &str = "BENCH_NAMESPACE";
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
        ip(&["link", "set", "lo", "up"])?;
        // librdkafka resolves with AI_ADDRCONFIG, which finds nothing, not even 127.0.0.1, on a machine
        // that has only loopback addresses. This one is reserved for documentation (RFC 5737).
        ip(&["address", "add", "192.0.2.1/32", "dev", "lo"])?;
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

fn ip(args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("ip").args(args).status().context("run `ip`")?;
    ensure!(status.success(), "set up loopback. command=`ip {}`", args.join(" "));
    Ok(())
}
