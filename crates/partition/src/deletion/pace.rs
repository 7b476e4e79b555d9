//! How fast bytes go: no faster than a rate, and with room for others after each step.

use std::time::Duration;

use strandline_model::ByteCount;

/// Bytes that one step removes at most: larger ones stall other writers of the same disk.
pub const STEP: ByteCount = ByteCount::mib(16);

/// Logs that one step removes something of. An engine that makes removals durable together does so for
/// that many at once.
pub const STEP_LOGS_MAX: usize = 64;

/// The least that a step asks of a log: the fewer bytes it may remove, the fewer logs.
const LOG_BYTES_MIN: u64 = 256 * 1024;
/// The least that a step removes, however low the rate is: freeing less than a block frees nothing.
const STEP_BYTES_MIN: u64 = 4_096;
/// Steps of a second, when a rate makes them small.
const STEPS_PER_SECOND: u64 = 4;
/// After a step that freed something the disk is left to others for as long as the step took, but
/// not longer than this.
const REST_MAX: Duration = Duration::from_millis(100);

/// When the next step may begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Bytes a second; `None`: as fast as it goes.
    rate: Option<u64>,
    free_at: Duration,
}

/// What a step may remove, and the time that was set aside for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Bytes at most.
    pub budget: ByteCount,
    time: Duration,
}

/// Of how many logs a step may remove something that has this budget.
pub fn logs_of_step(budget: ByteCount) -> usize {
    let logs = usize::try_from(budget.get() / LOG_BYTES_MIN).unwrap_or(STEP_LOGS_MAX);
    logs.clamp(1, STEP_LOGS_MAX)
}

impl Pace {
    /// When the next step may begin.
    pub const fn free_at(&self) -> Duration {
        self.free_at
    }

    /// From now on no more than `rate` bytes a second. Another rate than before begins afresh.
    pub fn set_rate(&mut self, rate: Option<u64>) {
        if self.rate != rate {
            *self = Self { rate, free_at: Duration::ZERO };
        }
    }

    /// Takes what a step needs that begins now.
    pub fn reserve(&mut self, now: Duration) -> Reserved {
        let budget = match self.rate {
            None => STEP.get(),
            Some(rate) => (rate / STEPS_PER_SECOND).clamp(STEP_BYTES_MIN, STEP.get()),
        };
        let time = self.time_of(budget);
        self.free_at = self.free_at.max(now) + time;
        Reserved { budget: ByteCount::new(budget), time }
    }

    /// A step has ended: what it did not need is given back, what it freed beyond is owed.
    pub fn settle(&mut self, now: Duration, reserved: Reserved, freed: ByteCount, took: Duration) {
        let owed = self.free_at + self.time_of(freed.get());
        self.free_at = owed.saturating_sub(reserved.time);
        if freed > ByteCount::ZERO {
            self.free_at = self.free_at.max(now + took.min(REST_MAX));
        }
    }

    fn time_of(&self, bytes: u64) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
