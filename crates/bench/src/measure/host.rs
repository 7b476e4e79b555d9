//! The whole machine: how busy it was, and a moment of quiet before a run.

use std::fs;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the machine is watched before it counts as quiet.
const WATCH: Duration = Duration::from_millis(400);

/// The share of processor time that others may use in a quiet machine.
const QUIET_BUSY_SHARE: f64 = 0.15;

/// Processor time of all cores since boot.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostTime {
    /// Not idle; time stolen by other tenants counts as busy.
    pub busy: Duration,
    /// Everything.
    pub total: Duration,
}

impl HostTime {
    /// The counters of now; zero where there is no `/proc/stat`.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks: Vec<u64> = stat
            .lines()
            .next()
            .into_iter()
            .flat_map(|line| line.split_whitespace().skip(1).take(8))
            .filter_map(|field| field.parse().ok())
            .collect();
        let total: u64 = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        let time =
            |ticks| Duration::from_secs(ticks) / rustix::param::clock_ticks_per_second() as u32;
        Self { busy: time(total - idle), total: time(total) }
    }
}

/// Waits until the machine is quiet, at most `patience`. Whether it was.
pub fn wait_for_quiet(patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        let before = HostTime::now();
        std::thread::sleep(WATCH);
        let after = HostTime::now();
        let total = after.total.saturating_sub(before.total).as_secs_f64();
        let busy = after.busy.saturating_sub(before.busy).as_secs_f64();
        if busy <= total * QUIET_BUSY_SHARE {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
    }
}

/// Memory that has just been used, given to whoever allocates during a run.
///
/// A virtual machine gives free memory back to its host within two seconds, and the first touch of a
/// new page costs several microseconds: without this the first contender of a round pays for the
/// second. Freed all at once most of it would go back before the run needs it; so it goes in steps.
#[derive(Debug)]
pub struct WarmMemory {
    steps: Vec<Vec<u8>>,
}

impl WarmMemory {
    const STEP_BYTES: usize = 16 << 20;
    /// 1.6 GB/s: somewhat faster than any contender can fill it.
    const STEP_TIME: Duration = Duration::from_millis(10);

    /// Touches `bytes` of memory and keeps it.
    pub fn take(bytes: usize) -> Self {
        const PAGE: usize = 4096;
        let step = || {
            let mut memory = vec![0_u8; Self::STEP_BYTES];
            for page in memory.chunks_mut(PAGE) {
                page[0] = 1;
            }
            memory
        };
        Self { steps: (0..bytes.div_ceil(Self::STEP_BYTES)).map(|_| step()).collect() }
    }

    /// Gives it back bit by bit, while a run goes on.
    pub fn release(self) -> JoinHandle<()> {
        std::thread::spawn(move || {
            for step in self.steps {
                drop(std::hint::black_box(step));
                std::thread::sleep(Self::STEP_TIME);
            }
        })
    }
}
