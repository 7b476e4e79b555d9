//! A clock that does not believe a jump ahead at once.

use std::time::Duration;

use strandline_model::Timestamp;

/// A wall clock that got ahead of a monotonic one by more than this, between two looks, has jumped.
pub const JUMP_MS_MIN: i64 = 60_000;

/// How long a jump ahead is not believed: one that was a mistake is set right by then, and one that
/// was not (a machine that slept, a clock that was wrong before) only makes records go later.
pub const JUMP_HELD_BACK: Duration = Duration::from_hours(1);

/// A wall clock that a start finds further ahead of the newest append than this may be wrong.
pub const AHEAD_AT_START_MS_MIN: i64 = 3_600_000;

/// The wall clock, except for a while after it has jumped ahead: then it goes on as before.
///
/// Believing such a jump would remove fresh records; not believing a jump back never does.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrustedClock(Option<Trusted>);

/// What must outlive a restart while the wall clock is not believed: without it the next start would
/// take the clock for right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disbelief {
    /// The time that is believed instead.
    pub believed: Timestamp,
    /// The least that the wall clock has said since, moved along with time: believed in the end.
    pub least: Timestamp,
    /// How long it has been ahead, while brokers ran.
    pub held: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Trusted {
    /// What the wall clock says when the monotonic one says zero.
    zero_ms: i64,
    /// Since when the wall clock has been ahead.
    ahead: Option<Ahead>,
}

#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// When that was first seen, in milliseconds by the monotonic clock; below zero when a broker
    /// before this one saw it.
    since_ms: i64,
    /// The least that [`Trusted::zero_ms`] would have been since: only that much was told for an hour.
    least_ms: i64,
}

impl TrustedClock {
    /// The clock of a broker that starts now: with what the one before kept of its disbelief, or
    /// else with the newest append that the logs know of.
    ///
    /// Nobody can tell a clock that is wrong from a machine that was off for long. So what is far
    /// ahead of the newest append is held back as a jump is.
    pub fn start(
        kept: Option<Disbelief>,
        newest_append: Option<Timestamp>,
        wall: Timestamp,
        monotonic: Duration,
    ) -> Self {
        let elapsed_ms = millis(monotonic);
        let at_zero = |time: Timestamp| time.as_millis().saturating_sub(elapsed_ms);
        let trusted = match (kept, newest_append) {
            (Some(kept), _) => {
                let since_ms = elapsed_ms.saturating_sub(millis(kept.held));
                let ahead = Ahead { since_ms, least_ms: at_zero(kept.least) };
                Some(Trusted { zero_ms: at_zero(kept.believed), ahead: Some(ahead) })
            }
            (None, Some(newest)) if wall.millis_since(newest) > AHEAD_AT_START_MS_MIN => {
                Some(Trusted { zero_ms: at_zero(newest), ahead: None })
            }
            (None, _) => None,
        };
        Self(trusted)
    }

    /// What to keep over a restart; `None` while the wall clock is believed.
    pub fn disbelief(&self, monotonic: Duration) -> Option<Disbelief> {
        let trusted = self.0?;
        let ahead = trusted.ahead?;
        let elapsed_ms = millis(monotonic);
        let time = |zero_ms: i64| Timestamp::from_millis(zero_ms.saturating_add(elapsed_ms).max(0));
        let held_ms = elapsed_ms.saturating_sub(ahead.since_ms).max(0);
        Some(Disbelief {
            believed: time(trusted.zero_ms),
            least: time(ahead.least_ms),
            held: Duration::from_millis(held_ms.unsigned_abs()),
        })
    }

    /// The time, when the wall clock says `wall` and a clock that never jumps says `monotonic`.
    pub fn now(&mut self, wall: Timestamp, monotonic: Duration) -> Timestamp {
        let elapsed_ms = millis(monotonic);
        let zero_ms = wall.as_millis().saturating_sub(elapsed_ms);
        if let Some(trusted) = &mut self.0
            && zero_ms.saturating_sub(trusted.zero_ms) > JUMP_MS_MIN
        {
            let begins = Ahead { since_ms: elapsed_ms, least_ms: zero_ms };
            let ahead = trusted.ahead.get_or_insert(begins);
            ahead.least_ms = ahead.least_ms.min(zero_ms);
            let was_held_back = elapsed_ms.saturating_sub(ahead.since_ms) >= millis(JUMP_HELD_BACK);
            if was_held_back {
                trusted.zero_ms = ahead.least_ms;
                // A later jump, further ahead, has an hour of its own.
                trusted.ahead = Some(begins);
            }
            if !was_held_back || zero_ms.saturating_sub(trusted.zero_ms) > JUMP_MS_MIN {
                let millis = trusted.zero_ms.saturating_add(elapsed_ms).max(0);
                return Timestamp::from_millis(millis);
            }
        }
        self.0 = Some(Trusted { zero_ms, ahead: None });
        wall
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;

    #[test]
    fn a_jump_ahead_is_believed_after_an_hour_and_any_other_change_at_once() {
        let mut clock = TrustedClock::default();
        // (monotonic, wall, believed)
        let looks = [
            (0, 100 * DAY_MS, 100 * DAY_MS),
            (HOUR_MS, 100 * DAY_MS + HOUR_MS, 100 * DAY_MS + HOUR_MS),
            // A little fast: an adjustment.
            (HOUR_MS + 1, 100 * DAY_MS + HOUR_MS + 60_001, 100 * DAY_MS + HOUR_MS + 60_001),
            // Ahead for a moment, and right again.
            (HOUR_MS + 2, 101 * DAY_MS, 100 * DAY_MS + HOUR_MS + 60_002),
            (HOUR_MS + 3, 100 * DAY_MS + HOUR_MS + 3, 100 * DAY_MS + HOUR_MS + 3),
            // Back.
            (HOUR_MS + 4, 5, 5),
            (HOUR_MS + 10, 11, 11),
            // Right again, which looks like a jump ahead: it stays, and is believed.
            (HOUR_MS + 20, 200 * DAY_MS, 21),
            (2 * HOUR_MS + 19, 200 * DAY_MS + HOUR_MS, HOUR_MS + 20),
            (2 * HOUR_MS + 20, 200 * DAY_MS + HOUR_MS, 200 * DAY_MS + HOUR_MS),
            (2 * HOUR_MS + 21, 200 * DAY_MS + HOUR_MS + 1, 200 * DAY_MS + HOUR_MS + 1),
        ];
        for (monotonic, wall, believed) in looks {
            let monotonic = Duration::from_millis(monotonic.unsigned_abs());
            let now = clock.now(Timestamp::from_millis(wall), monotonic);
            assert_eq!(now, Timestamp::from_millis(believed), "at {monotonic:?}");
        }
    }

    const MINUTE_MS: i64 = 60_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn after(millis: i64) -> Duration {
        Duration::from_millis(millis.unsigned_abs())
    }

    #[test]
    fn a_start_believes_a_clock_that_fits_the_newest_append() {
        let newest = 100 * DAY_MS;
        // (what the wall clock says at the start, what is believed then, and an hour later)
        let rows = [
            (newest, newest, newest + HOUR_MS),
            (newest + HOUR_MS, newest + HOUR_MS, newest + 2 * HOUR_MS),
            // Off for long, or wrong: nobody knows.
            (newest + HOUR_MS + 1, newest, newest + 2 * HOUR_MS + 1),
            (newest + 365 * DAY_MS, newest, newest + 365 * DAY_MS + HOUR_MS),
            // Behind: it removes less.
            (5, 5, 5 + HOUR_MS),
        ];
        for (wall, first, later) in rows {
            let mut clock = TrustedClock::start(None, Some(at(newest)), at(wall), after(77));
            assert_eq!(clock.now(at(wall), after(77)), at(first), "{wall}");
            let hour = clock.now(at(wall + HOUR_MS), after(77 + HOUR_MS));
            assert_eq!(hour, at(later), "{wall}, an hour later");
        }
        let mut new = TrustedClock::start(None, None, at(newest), after(77));
        assert_eq!(new.now(at(newest), after(77)), at(newest), "nothing is known");
    }

    #[test]
    fn a_restart_goes_on_disbelieving_and_counts_the_time_that_was_held_back() {
        let start = 100 * DAY_MS;
        let mut clock = TrustedClock::default();
        clock.now(at(start), after(0));
        assert_eq!(clock.disbelief(after(0)), None);
        let ahead = start + DAY_MS;
        assert_eq!(clock.now(at(ahead + MINUTE_MS), after(MINUTE_MS)), at(start + MINUTE_MS));
        assert_eq!(
            clock.now(at(ahead + 41 * MINUTE_MS), after(41 * MINUTE_MS)),
            at(start + 41 * MINUTE_MS)
        );
        let kept = clock.disbelief(after(41 * MINUTE_MS)).unwrap();
        let held = after(40 * MINUTE_MS);
        assert_eq!(
            kept,
            Disbelief {
                believed: at(start + 41 * MINUTE_MS),
                least: at(ahead + 41 * MINUTE_MS),
                held
            }
        );

        // Ten minutes later another broker starts, whose monotonic clock begins elsewhere. Appends of
        // the wrong clock prove nothing.
        let wall = ahead + 51 * MINUTE_MS;
        let restart =
            |wall: i64| TrustedClock::start(Some(kept), Some(at(ahead)), at(wall), after(3));
        let mut clock = restart(wall);
        assert_eq!(clock.now(at(wall), after(3)), at(kept.believed.as_millis()));
        let passed = 20 * MINUTE_MS;
        let believed = clock.now(at(wall + passed), after(3 + passed));
        assert_eq!(
            believed,
            at(ahead + 61 * MINUTE_MS),
            "the hour is over; the ten minutes have one of their own"
        );
        assert!(clock.disbelief(after(3 + passed)).is_some());
        // Or it was set right meanwhile.
        let mut clock = restart(kept.believed.as_millis() + 50_000);
        let right = at(kept.believed.as_millis() + 50_000);
        assert_eq!(clock.now(right, after(3)), right);
        assert_eq!(clock.disbelief(after(3)), None);
    }

    #[test]
    fn a_second_jump_has_an_hour_of_its_own() {
        const MINUTE: i64 = 60_000;
        let mut clock = TrustedClock::default();
        let start = 100 * DAY_MS;
        // (minutes by the monotonic clock, how far ahead the wall clock is, how much is believed)
        let looks = [
            (0, 0, 0),
            // A machine that slept for two minutes.
            (1, 2 * MINUTE, 0),
            (30, 2 * MINUTE, 0),
            // A year ahead for a moment, just when the hour is over.
            (60, 365 * DAY_MS, 0),
            (61, 365 * DAY_MS, 2 * MINUTE),
            (62, 2 * MINUTE, 2 * MINUTE),
            // And for good: an hour after it was seen last.
            (63, 365 * DAY_MS, 2 * MINUTE),
            (122, 365 * DAY_MS, 2 * MINUTE),
            (123, 365 * DAY_MS, 365 * DAY_MS),
        ];
        for (minutes, ahead, believed) in looks {
            let passed = minutes * MINUTE;
            let wall = Timestamp::from_millis(start + passed + ahead);
            let now = clock.now(wall, Duration::from_millis(passed.unsigned_abs()));
            assert_eq!(now.as_millis() - start - passed, believed, "after {minutes} minutes");
        }
    }
}
