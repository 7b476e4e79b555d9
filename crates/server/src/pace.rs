//! How fast a peer must at least be while others wait for what it holds.
//!
//! Time goes in windows. The peer must be done within the first, or move so many bytes that its
//! rate is good enough for another. A single byte now and then buys nothing.

use std::time::Duration;

use tokio::time::Instant;

/// Length of a window: a peer that is silent for so long is gone or hostile.
pub(crate) const WINDOW: Duration = Duration::from_secs(30);
/// The longest that anything may take, at whatever rate: memory, a file, or the turn of a large
/// frame are held for it.
pub(crate) const WHOLE_MAX: Duration = Duration::from_mins(15);

/// One frame that arrives, or one batch of replies that leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    began_at: Instant,
    window_at: Instant,
    moved: u64,
    quota: u64,
}

impl Pace {
    /// Begins now, at a rate of at least `rate_min` bytes per second.
    pub(crate) const fn begin(now: Instant, rate_min: u64) -> Self {
        let quota = rate_min * WINDOW.as_secs();
        Self { began_at: now, window_at: now, moved: 0, quota }
    }

    /// `bytes` were moved.
    pub(crate) fn moved(&mut self, bytes: usize, now: impl FnOnce() -> Instant) {
        self.moved += bytes as u64;
        if self.moved >= self.quota {
            self.moved = 0;
            self.window_at = now();
        }
    }

    /// When the peer's time is up, unless more is moved before.
    pub(crate) fn deadline(&self) -> Instant {
        (self.window_at + WINDOW).min(self.began_at + WHOLE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1000;

    #[test]
    fn a_trickle_buys_no_time() {
        let begin = Instant::now();
        let mut pace = Pace::begin(begin, RATE);
        for second in 0..30 {
            pace.moved(1, || begin + Duration::from_secs(second));
        }
        assert_eq!(pace.deadline(), begin + WINDOW);
    }

    #[test]
    fn a_good_rate_buys_another_window() {
        let begin = Instant::now();
        let mut pace = Pace::begin(begin, RATE);
        let later = begin + Duration::from_secs(20);
        pace.moved(29_999, || later);
        assert_eq!(pace.deadline(), begin + WINDOW);
        pace.moved(1, || later);
        assert_eq!(pace.deadline(), later + WINDOW);
    }

    #[test]
    fn no_rate_is_good_for_ever() {
        let begin = Instant::now();
        let mut pace = Pace::begin(begin, RATE);
        for second in 0..2000 {
            pace.moved(30_000, || begin + Duration::from_secs(second));
        }
        assert_eq!(pace.deadline(), begin + WHOLE_MAX);
    }
}
