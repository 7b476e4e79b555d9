//! Memory of replies that peers have not taken yet.
//!
//! A connection owes at most one large reply: the next request starts when it has left. What all
//! connections owe together is counted here. While there is room a peer may take its reply slowly;
//! when there is none, a few requests at a time go on, and their peers must take the replies fast.
//! So slow readers fill a bounded part of the memory, and can slow fast ones down, but never stop
//! them.
//!
//! File ranges do not count: they are in no memory of ours.

use std::time::Duration;

use strandline_model::ByteCount;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Replies with so little in memory take nothing.
const FREE: usize = 16 * 1024;
/// Bytes of one permit.
const UNIT: usize = 1024;
/// Requests at a time that go on when too much is owed.
const PRESSED_MAX: usize = 64;
/// How long a request waits for its turn, and keeps it while it runs. Fetches that wait for records
/// must not keep the turns of others, and late is better than never.
pub(crate) const TURN_TIME: Duration = Duration::from_secs(2);
/// How long a peer has for a reply that there was no room for.
const PRESSED_TIME: Duration = Duration::from_secs(10);

/// What all connections may owe.
#[derive(Debug)]
pub(crate) struct Owed {
    room: Semaphore,
    pressed: Semaphore,
}

/// The room that one reply takes while it leaves.
#[derive(Debug)]
pub(crate) struct Debt<'a> {
    /// Nothing for a reply that there was no room for.
    _room: Option<SemaphorePermit<'a>>,
    /// The longest that the reply may take.
    pub(crate) within: Option<Duration>,
}

impl Owed {
    pub(crate) fn new(bytes: ByteCount) -> Self {
        let bytes = usize::try_from(bytes.get()).unwrap_or(usize::MAX);
        Self {
            room: Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS)),
            pressed: Semaphore::new(PRESSED_MAX),
        }
    }

    /// Whether requests need a turn now.
    pub(crate) fn is_pressed(&self) -> bool {
        self.room.available_permits() <= FREE / UNIT
    }

    /// Waits for a turn when there is no room; not for ever, since peers that hold all turns could
    /// stop everybody. None when none is needed, or none came.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        if !self.is_pressed() {
            return None;
        }
        let turn = tokio::time::timeout(TURN_TIME, self.pressed.acquire()).await.ok()?;
        Some(turn.expect("the semaphore is never closed"))
    }

    /// Counts a reply with `bytes` in memory; none when they are few.
    pub(crate) fn take(&self, bytes: usize) -> Option<Debt<'_>> {
        if bytes <= FREE {
            return None;
        }
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        Some(match self.room.try_acquire_many(units) {
            Ok(room) => Debt { _room: Some(room), within: None },
            Err(_) => Debt { _room: None, within: Some(PRESSED_TIME) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_without_room_must_leave_fast() {
        let owed = Owed::new(ByteCount::mib(1));
        assert!(owed.take(FREE).is_none(), "few bytes take nothing");
        let slow = owed.take(1 << 20).expect("many bytes count");
        assert_eq!(slow.within, None);
        let fast = owed.take(1 << 20).expect("many bytes count");
        assert_eq!(fast.within, Some(PRESSED_TIME));
        drop(slow);
        assert_eq!(owed.take(1 << 20).expect("many bytes count").within, None);
    }

    #[tokio::test(start_paused = true)]
    async fn when_too_much_is_owed_few_requests_start_at_a_time() {
        let owed = Owed::new(ByteCount::mib(1));
        assert!(owed.turn().await.is_none(), "there is room");
        let _slow = owed.take(1 << 20);
        let mut turns = Vec::new();
        for _ in 0..PRESSED_MAX {
            turns.push(owed.turn().await.expect("a turn"));
        }
        let begin = tokio::time::Instant::now();
        assert!(owed.turn().await.is_none(), "all turns are taken");
        assert_eq!(begin.elapsed(), TURN_TIME, "it was slowed down");
        drop(turns);
        assert!(owed.turn().await.is_some());
    }
}
