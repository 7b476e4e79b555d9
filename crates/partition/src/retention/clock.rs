//! A clock that does not believe a jump ahead at once.

use std::time::Duration;

use strandline_model::Timestamp;

/// A wall clock that got ahead of a monotonic one by more than this, between two looks, has jumped.
pub const JUMP_MS_MIN: i64 = 60_000;

/// How long a jump ahead is not believed: one that was a mistake is set right by then, and one that
/// was not (a machine that slept, a clock that was wrong before) only makes records go later.
pub const JUMP_HELD_BACK: Duration = Duration::from_hours(1);

/// The wall clock, except for a while after it has jumped ahead: then it goes on as before.
///
/// Believing such a jump would remove fresh records; not believing a jump back never does.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrustedClock(Option<Trusted>);

#[derive(Clone, Copy, Debug)]
struct Trusted {
    /// What the wall clock says when the monotonic one says zero.
    zero_ms: i64,
    /// Since when the wall clock has been ahead.
    ahead: Option<Ahead>,
}

#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// When that was first seen, by the monotonic clock.
    since: Duration,
    /// The least that [`Trusted::zero_ms`] would have been since: only that much was told for an hour.
    least_ms: i64,
}

impl TrustedClock {
    /// The time, when the wall clock says `wall` and a clock that never jumps says `monotonic`.
    pub fn now(&mut self, wall: Timestamp, monotonic: Duration) -> Timestamp {
        let elapsed_ms = i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX);
        let zero_ms = wall.as_millis().saturating_sub(elapsed_ms);
        if let Some(trusted) = &mut self.0
            && zero_ms.saturating_sub(trusted.zero_ms) > JUMP_MS_MIN
        {
            let begins = Ahead { since: monotonic, least_ms: zero_ms };
            let ahead = trusted.ahead.get_or_insert(begins);
            ahead.least_ms = ahead.least_ms.min(zero_ms);
            let was_held_back = monotonic.saturating_sub(ahead.since) >= JUMP_HELD_BACK;
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
