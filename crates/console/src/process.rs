//! What the kernel says of our process, under Prometheus' usual names.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// The process at one moment; what the kernel does not say is missing.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Process {
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) virtual_bytes: Option<u64>,
    pub(crate) threads: Option<u64>,
    pub(crate) open_fds: Option<u64>,
    pub(crate) max_fds: Option<u64>,
}

impl Process {
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        Self {
            // The folder holds one entry of our own: the descriptor that reads it.
            open_fds: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| (entries.count() as u64).saturating_sub(1)),
            max_fds: getrlimit(Resource::Nofile).current,
            ..Self::parsed(&stat, &statm, clock_ticks_per_second(), page_size() as u64)
        }
    }

    fn parsed(stat: &str, statm: &str, ticks_per_second: u64, page_bytes: u64) -> Self {
        // The name of the program may hold anything; the fields begin behind its last parenthesis.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let number = |line: &str, at| line.split_whitespace().nth(at)?.parse::<u64>().ok();
        // proc(5) counts from 1 and has two fields before these.
        let cpu_ticks = || Some(number(fields, 14 - 3)? + number(fields, 15 - 3)?);
        Self {
            #[expect(clippy::cast_precision_loss, reason = "centuries of ticks fit an f64")]
            cpu_seconds: cpu_ticks().map(|ticks| ticks as f64 / ticks_per_second as f64),
            resident_bytes: number(statm, 1).map(|pages| pages * page_bytes),
            virtual_bytes: number(statm, 0).map(|pages| pages * page_bytes),
            threads: number(fields, 20 - 3),
            open_fds: None,
            max_fds: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_understood() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 7 0 99 1000 5 0";
        let got = Process::parsed(stat, "1000 200 30 1 0 500 0", 100, 4096);
        let expected = Process {
            cpu_seconds: Some(4.0),
            resident_bytes: Some(200 * 4096),
            virtual_bytes: Some(1000 * 4096),
            threads: Some(7),
            open_fds: None,
            max_fds: None,
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn lines_that_are_missing_make_no_numbers() {
        assert_eq!(Process::parsed("", "", 100, 4096), Process::default());
        assert_eq!(Process::parsed("42 (x", "a b", 100, 4096), Process::default());
    }

    #[test]
    fn this_process_is_described() {
        let process = Process::now();
        assert!(process.resident_bytes.unwrap() > 100 * 1024);
        assert!(process.threads.unwrap() >= 1);
        assert!(process.open_fds.unwrap() >= 3);
    }
}
