//! How fast compaction reads and writes, all passes together.

use std::time::Duration;

use parking_lot::Mutex;

use crate::environment::Environment;

/// The longest wait at a time: whoever waits looks around in between.
const STEP: Duration = Duration::from_millis(500);

/// When what was read and written so far is paid for, by the clock that never jumps.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Duration>);

impl Pace {
    /// Takes note of bytes that were read or written at a rate of so many a second at most: when they
    /// are paid for.
    pub(super) fn spend(&self, bytes: u64, rate: f64, now: Duration) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "a rate is no count")]
        let seconds = bytes as f64 / rate;
        let cost = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_hours(1));
        let mut paid = self.0.lock();
        *paid = (*paid).max(now).saturating_add(cost);
        *paid
    }
}

/// Waits until `paid`, or until `is_over` says that nobody needs it any more.
pub(super) async fn wait(
    environment: &dyn Environment,
    paid: Duration,
    is_over: impl Fn() -> bool,
) {
    loop {
        let left = paid.saturating_sub(environment.monotonic());
        if left.is_zero() || is_over() {
            return;
        }
        environment.sleep(left.min(STEP)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_takes_its_time_and_a_pause_saves_nothing_up() {
        let pace = Pace::default();
        let seconds = Duration::from_secs;
        assert_eq!(pace.spend(1000, 500.0, seconds(10)), seconds(12));
        assert_eq!(pace.spend(500, 500.0, seconds(10)), seconds(13));
        assert_eq!(pace.spend(500, 500.0, seconds(20)), seconds(21));
        assert_eq!(pace.spend(u64::MAX, f64::MAX, seconds(21)), seconds(21));
        assert_eq!(pace.spend(1, 0.0, seconds(21)), seconds(21) + Duration::from_hours(1));
    }
}
