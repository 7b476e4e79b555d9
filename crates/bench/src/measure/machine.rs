//! Where and when figures were taken; they mean nothing without it.

use std::fs;
use std::process::Command;

use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The line that stands above every report.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// UTC, RFC 3339.
    pub date: String,
    /// The project's commit, with `-dirty` when files differ.
    pub commit: String,
    /// The kernel's release.
    pub kernel: String,
    /// Processors.
    pub cores: usize,
    /// The processor's name.
    pub cpu: String,
    /// The TCP congestion control of the runs.
    pub congestion_control: String,
    /// Whether the runs had a network namespace of their own.
    pub own_network: bool,
    /// How the state of memory was made equal.
    pub memory: String,
}

impl Machine {
    /// Asks the system; what it does not say is `unknown`.
    pub fn ask(own_network: bool) -> Self {
        let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
        let cpu = read("/proc/cpuinfo").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            line.split_once(':').map(|(_, name)| name.trim().to_owned())
        });
        let unknown = || "unknown".to_owned();
        Self {
            date: OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_else(|_| unknown()),
            commit: commit().unwrap_or_else(unknown),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            cpu: cpu.unwrap_or_else(unknown),
            congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control")
                .unwrap_or_else(unknown),
            own_network,
            memory: "warm: twice what a run writes, at least 1 GiB, is touched before and freed during it"
                .to_owned(),
        }
    }
}

fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
