//! Whether a lane waits a moment for appends that are about to come.
//!
//! Producers that wait for their acknowledgement come again as soon as they have it, one shortly after
//! the other. A lane that begins with the first of them commits that one alone, and all others wait for
//! two commits instead of one. So after a commit it waits for as many as it knows of: those that it has
//! just answered, and those that came meanwhile. When they are not there after half of the time that
//! the commit took, it goes without them; and then it does not wait after the next commits, the more of
//! them the more often it waited in vain.

use std::time::Duration;

use tokio::time::Instant;

/// The longest wait.
const PATIENCE_MAX: Duration = Duration::from_millis(5);
/// Timers know no less.
const PATIENCE_MIN: Duration = Duration::from_millis(1);
/// How many doublings of the commits without a wait.
const MISSES_MAX: u32 = 6;

/// See the [module](self). Its default waits for nothing.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    expected: Option<Expected>,
    misses: u32,
    /// Commits after which nothing is waited for.
    rests: u32,
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    appends: usize,
    until: Instant,
}

impl Gather {
    /// A commit that took so long has answered so many appends, while others came that wait.
    pub(super) fn committed(
        &mut self,
        answered: usize,
        waiting: usize,
        took: Duration,
        now: Instant,
    ) {
        let patience = (took / 2).min(PATIENCE_MAX);
        let appends = answered + waiting;
        let is_worth_it = appends > waiting.max(1) && patience >= PATIENCE_MIN;
        self.expected = None;
        if !is_worth_it {
            return;
        }
        if self.rests > 0 {
            self.rests -= 1;
        } else {
            self.expected = Some(Expected { appends, until: now + patience });
        }
    }

    /// Until when more than these appends are worth a wait; `None`: they go now.
    pub(crate) fn waits(&mut self, there: usize, now: Instant) -> Option<Instant> {
        let Expected { appends, until } = self.expected?;
        if there < appends && now < until {
            return Some(until);
        }
        self.expected = None;
        if there >= appends {
            self.misses = 0;
        } else {
            self.misses = (self.misses + 1).min(MISSES_MAX);
            self.rests = 1 << self.misses;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: Duration = Duration::from_millis(4);

    #[test]
    fn as_many_are_waited_for_as_are_known() {
        let now = Instant::now();
        let mut gather = Gather::default();
        assert_eq!(gather.waits(1, now), None, "nothing is known yet");
        gather.committed(3, 1, COMMIT, now);
        assert!(gather.waits(1, now).is_some());
        assert!(gather.waits(3, now).is_some());
        assert_eq!(gather.waits(4, now), None);
        assert_eq!(gather.waits(1, now), None, "once");
        gather.committed(1, 0, COMMIT, now);
        assert_eq!(gather.waits(1, now), None, "the only one is there");
    }

    #[test]
    fn a_wait_is_half_a_commit_and_short() {
        let now = Instant::now();
        for (took_ms, patience_ms) in [(4, 2), (10, 5), (10_000, 5)] {
            let patience = Duration::from_millis(patience_ms);
            let mut gather = Gather::default();
            gather.committed(3, 0, Duration::from_millis(took_ms), now);
            assert_eq!(gather.waits(1, now), Some(now + patience), "{took_ms} ms");
            assert_eq!(gather.waits(1, now + patience), None, "{took_ms} ms");
        }
        let mut gather = Gather::default();
        gather.committed(3, 0, Duration::from_micros(1900), now);
        assert_eq!(gather.waits(1, now), None, "a fast commit is not worth a timer");
    }

    #[test]
    fn who_waited_in_vain_waits_less_often() {
        let mut now = Instant::now();
        let mut gather = Gather::default();
        let mut waited = Vec::new();
        for commit in 0..40 {
            gather.committed(2, 0, COMMIT, now);
            if gather.waits(1, now).is_some() {
                waited.push(commit);
                now += COMMIT;
                assert_eq!(gather.waits(1, now), None);
            }
        }
        assert_eq!(waited, [0, 3, 8, 17, 34]);
        while gather.rests > 0 {
            gather.committed(2, 0, COMMIT, now);
        }
        gather.committed(2, 0, COMMIT, now);
        assert!(gather.waits(1, now).is_some());
        assert_eq!((gather.waits(2, now), gather.misses), (None, 0), "they came");
    }
}
