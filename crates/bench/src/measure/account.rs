//! Processor time and memory of one child process.
//!
//! Control groups (v1) give exact nanoseconds with all threads, and the page cache that the process
//! filled. Where they cannot be made, `/proc` gives ticks and no page cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CPU_ROOT: &str = "/sys/fs/cgroup/cpuacct";
const MEMORY_ROOT: &str = "/sys/fs/cgroup/memory";

/// The account of one process.
#[derive(Debug)]
pub struct Account {
    pid: u32,
    cpu: Option<Group>,
    memory: Option<Group>,
}

/// A control group; removed with the value, when the process is gone.
#[derive(Debug)]
struct Group(PathBuf);

impl Group {
    fn make(root: &str, pid: u32) -> Option<Self> {
        let path = Path::new(root).join(format!("strandline-bench-{pid}"));
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        fs::write(group.0.join("cgroup.procs"), pid.to_string()).ok()?;
        Some(group)
    }

    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.0.join(file)).ok()?.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nothing to do about a group that stays: it is empty and costs a directory.
        fs::remove_dir(&self.0).ok();
    }
}

impl Account {
    /// Opens the account of a process that has just started.
    pub fn open(pid: u32) -> Self {
        Self { pid, cpu: Group::make(CPU_ROOT, pid), memory: Group::make(MEMORY_ROOT, pid) }
    }

    /// Whether processor time is exact, not counted in ticks.
    pub const fn is_exact(&self) -> bool {
        self.cpu.is_some()
    }

    /// Processor time so far.
    pub fn cpu(&self) -> io::Result<Duration> {
        match self.cpu.as_ref().and_then(|group| group.number("cpuacct.usage")) {
            Some(nanos) => Ok(Duration::from_nanos(nanos)),
            None => cpu_of(&self.pid.to_string()),
        }
    }

    /// Page cache charged to the process, in bytes.
    pub fn page_cache(&self) -> Option<u64> {
        let stat = fs::read_to_string(self.memory.as_ref()?.0.join("memory.stat")).ok()?;
        stat.lines().find_map(|line| line.strip_prefix("cache "))?.parse().ok()
    }

    /// The most that memory and page cache were together, in bytes.
    pub fn peak(&self) -> Option<u64> {
        self.memory.as_ref()?.number("memory.max_usage_in_bytes")
    }

    /// Resident memory now, in bytes.
    pub fn resident(&self) -> Option<u64> {
        self.status("VmRSS:")
    }

    /// The most resident memory so far, in bytes.
    pub fn resident_peak(&self) -> Option<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, key: &str) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    }
}

/// Processor time of this process, and of its children that have ended.
pub fn own_cpu() -> io::Result<Duration> {
    cpu_of("self")
}

/// Processor time of a process, and of its children that it has waited for.
fn cpu_of(pid: &str) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The command's name may hold anything, a parenthesis too: the fields begin behind the last one.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs(ticks) / rustix::param::clock_ticks_per_second() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_processor_time_moves_with_work() {
        let before = own_cpu().unwrap();
        let mut sum = 0_u64;
        while own_cpu().unwrap() < before + Duration::from_millis(20) {
            sum = std::hint::black_box((0..10_000).fold(sum, u64::wrapping_add));
        }
        assert!(own_cpu().unwrap() > before);
    }
}
