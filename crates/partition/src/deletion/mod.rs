//! Deleted topics: whose turn it is to lose bytes, when, and why another one waits.
//!
//! One [`Turn`] for each topic whose bytes are still there. The purger asks [`next`] what to do, does
//! it, and tells the turn how it ended. Times are of a clock that never jumps: the grace of a topic
//! does not end early because somebody set the wall clock.
//!
//! # States
//!
//! ```text
//!         grace over        a step begins        nothing is left
//!  Grace ───────────▶ Queued ───────────▶ Running ───────────▶ (gone)
//!                                         │   ▲
//!                             step failed ▼   │ the pause is over, or somebody says so
//!                                       BackingOff
//!  any ── somebody says so, for one or for all ──▶ Paused
//! ```
//!
//! # Invariants
//! - A turn that fails or hangs holds up no other: pauses are its own, and a step that takes longer
//!   than [`PATIENCE`] counts no more against [`STEPS_MAX`].
//! - A turn that is not paused is never given up.

mod pace;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use pace::{Pace, Reserved, STEP, STEP_LOGS_MAX, logs_of_step};

/// Steps that are under way at a time.
pub const STEPS_MAX: usize = 8;
/// How long a step counts against [`STEPS_MAX`].
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after the first failure; doubled with each further one.
pub const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
pub const BACKOFF_MAX: Duration = Duration::from_mins(1);

/// Whether something may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It may.
    Free,
    /// Not before somebody says so.
    Paused,
}

impl Hold {
    /// `Paused` when it is so.
    pub const fn paused_if(is_paused: bool) -> Self {
        if is_paused { Self::Paused } else { Self::Free }
    }
}

/// How a pending deletion stands, as people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing has been removed: the topic can be brought back.
    Grace,
    /// The grace is over and the first step has not begun.
    Queued,
    /// Bytes go.
    Running,
    /// The last step failed: the next comes after a pause.
    BackingOff,
    /// Somebody stopped it, or all of them.
    Paused,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Grace, Self::Queued, Self::Running, Self::BackingOff, Self::Paused];

    /// The code, as it is served and explained.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Grace => "grace",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::BackingOff => "backing_off",
            Self::Paused => "paused",
        }
    }

    /// What it means, in a sentence or two for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Grace => {
                "Nothing has been removed yet: strandline topic undelete ID brings the topic back. \
                 The grace is deletion.grace.ms, as it was when the topic was deleted."
            }
            Self::Queued => "The grace is over, and the first step comes as soon as others let it.",
            Self::Running => {
                "Bytes go, 16 MiB at a time and no faster than deletion.max.bytes.per.sec."
            }
            Self::BackingOff => {
                "The last step failed. It is tried again after a pause, for ever; strandline \
                 deletions retry ID tries it now."
            }
            Self::Paused => {
                "Somebody stopped this deletion (strandline deletions resume ID), or all of them \
                 (strandline deletions resume --all, deletion.paused)."
            }
        }
    }
}

/// When a pending deletion is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// No step before this.
    pub due: Duration,
    /// Whether removal has begun, so that there is no way back.
    pub has_begun: bool,
    /// Whether this one is stopped.
    pub hold: Hold,
    /// Steps that failed since one did not.
    pub failures: u32,
    /// When the step that is under way began.
    pub step_began: Option<Duration>,
}

impl Turn {
    /// A turn that waits until `due`; until now for one that has begun.
    pub const fn new(due: Duration, has_begun: bool, hold: Hold) -> Self {
        Self { due, has_begun, hold, failures: 0, step_began: None }
    }

    /// How it stands, `all` being what counts for every turn.
    pub fn state(&self, now: Duration, all: Hold) -> State {
        if self.step_began.is_some() {
            return State::Running;
        }
        match (self.hold, all) {
            (Hold::Paused, _) | (_, Hold::Paused) => State::Paused,
            (Hold::Free, Hold::Free) if self.failures > 0 => State::BackingOff,
            (Hold::Free, Hold::Free) if self.has_begun => State::Running,
            (Hold::Free, Hold::Free) if self.due > now => State::Grace,
            (Hold::Free, Hold::Free) => State::Queued,
        }
    }

    /// A step begins.
    pub fn begin_step(&mut self, now: Duration) {
        assert!(self.step_began.is_none(), "a deletion takes one step at a time");
        self.step_began = Some(now);
    }

    /// The step came to its end, and more is left: behind the others that are due.
    pub fn end_step(&mut self, now: Duration) {
        self.step_began = None;
        self.failures = 0;
        self.due = now;
    }

    /// The step failed: the next comes after a pause, which grows.
    pub fn fail_step(&mut self, now: Duration) {
        self.step_began = None;
        self.due = now + backoff(self.failures);
        self.failures = self.failures.saturating_add(1);
    }

    /// Ends the pause after a failure. Says whether there was one.
    pub fn retry(&mut self, now: Duration) -> bool {
        let waits = self.failures > 0 && self.step_began.is_none();
        if waits {
            self.due = self.due.min(now);
        }
        waits
    }

    fn counts(&self, now: Duration) -> bool {
        self.step_began.is_some_and(|began| now.saturating_sub(began) < PATIENCE)
    }
}

/// The pause before the next step when the last one failed, after `failures` others in a row.
pub fn backoff(failures: u32) -> Duration {
    let doubled = BACKOFF_MIN.saturating_mul(1_u32 << failures.min(16));
    doubled.min(BACKOFF_MAX)
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// Take a step of this one.
    Step(K),
    /// Ask again no later than after this.
    Wait(Duration),
    /// Ask again when something changes.
    Idle,
}

/// Whose step is next: of the turns that are due, the one that has waited longest.
pub fn next<K: Ord + Clone>(
    now: Duration,
    turns: impl Iterator<Item = (K, Turn)> + Clone,
    all: Hold,
    pace: &Pace,
) -> Next<K> {
    let under_way = turns.clone().filter(|(_, turn)| turn.counts(now)).count();
    let waiting = turns.clone().filter(|(_, turn)| {
        turn.step_began.is_none() && turn.hold == Hold::Free && all == Hold::Free
    });
    let Some((key, turn)) =
        waiting.min_by(|(a, one), (b, other)| (one.due, a).cmp(&(other.due, b)))
    else {
        return Next::Idle;
    };
    let mut from = turn.due.max(pace.free_at());
    if under_way >= STEPS_MAX {
        let patience_ends = turns.filter(|(_, turn)| turn.counts(now));
        let patience_ends = patience_ends.filter_map(|(_, turn)| turn.step_began).min();
        from = from.max(patience_ends.map_or(now, |began| began + PATIENCE));
    }
    match from.checked_sub(now) {
        Some(wait) if wait > Duration::ZERO => Next::Wait(wait),
        _ => Next::Step(key),
    }
}
