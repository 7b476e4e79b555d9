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
    /// When the wall clock was first found ahead, by the monotonic one.
    ahead_since: Option<Duration>,
}

impl TrustedClock {
    /// The time, when the wall clock says `wall` and a clock that never jumps says `monotonic`.
    pub fn now(&mut self, wall: Timestamp, monotonic: Duration) -> Timestamp {
        let elapsed_ms = i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX);
        let zero_ms = wall.as_millis().saturating_sub(elapsed_ms);
        if let Some(trusted) = &mut self.0
            && zero_ms.saturating_sub(trusted.zero_ms) > JUMP_MS_MIN
        {
            let since = *trusted.ahead_since.get_or_insert(monotonic);
            if monotonic.saturating_sub(since) < JUMP_HELD_BACK {
                let millis = trusted.zero_ms.saturating_add(elapsed_ms).max(0);
                return Timestamp::from_millis(millis);
            }
        }
        self.0 = Some(Trusted { zero_ms, ahead_since: None });
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
}
