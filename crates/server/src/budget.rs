//! Bytes that all connections together hold of requests that were not started yet.
//!
//! A small room is free, so that peers that are silent or send little are never held up by others.
//! More is taken from a common pool as it arrives, never ahead of that, so a claimed size costs
//! nothing. What a frame has taken travels with it until its request has started.
//!
//! Beside the pool there is one *lane*: the frame that has it may grow to the largest size, and
//! gives back what it had of the pool. A frame needs the lane beyond its fair share of the pool, or
//! when the pool is used up. So there is always one frame that can grow to its end: frames that
//! each hold a part never wait for each other.

use std::sync::Arc;

use strandline_model::ByteCount;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for which nothing is taken. Ten thousand connections with half a frame each hold 40 MiB.
pub(crate) const FREE: usize = 4 * 1024;
/// Bytes of one permit.
const UNIT: u64 = 1024;
/// The pool is at least this part of the budget, however large frames may be.
const POOL_PART_MIN: u64 = 8;
/// A frame that is larger than this part of the pool needs the lane.
const FAIR_PART: u64 = 8;

/// The shared budget.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pool: Arc<Semaphore>,
    lane: Arc<Semaphore>,
    /// Bytes up to which a frame may take from the pool.
    fair: usize,
}

/// What a frame has taken; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pool: Option<OwnedSemaphorePermit>,
    lane: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Budget {
    /// `bytes` for everything, of which one frame of `frame_max` may take the lane's part.
    pub(crate) fn new(bytes: ByteCount, frame_max: ByteCount) -> Self {
        let bytes = bytes.get();
        let pool = bytes.saturating_sub(frame_max.get()).max(bytes / POOL_PART_MIN);
        let units = usize::try_from(pool / UNIT).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            pool: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
            lane: Arc::new(Semaphore::new(1)),
            fair: usize::try_from(pool / FAIR_PART).unwrap_or(usize::MAX),
        }
    }

    /// Lets `share` grow to `bytes` when the pool has them now.
    pub(crate) fn try_grow(&self, share: &mut Share, bytes: usize) -> bool {
        if bytes <= FREE || bytes <= share.bytes || share.lane.is_some() {
            share.bytes = share.bytes.max(bytes);
            return true;
        }
        if bytes > self.fair {
            return false;
        }
        match Arc::clone(&self.pool).try_acquire_many_owned(share.missing_units(bytes)) {
            Ok(taken) => share.add(taken, bytes),
            Err(_) => return false,
        }
        true
    }

    /// Lets `share` grow to `bytes`, waiting until they are there.
    pub(crate) async fn grow(&self, share: &mut Share, bytes: usize) {
        if self.try_grow(share, bytes) {
            return;
        }
        let lane = Arc::clone(&self.lane).acquire_owned();
        if bytes > self.fair {
            share.enter(lane.await.expect("the lane is never closed"), bytes);
            return;
        }
        let more = Arc::clone(&self.pool).acquire_many_owned(share.missing_units(bytes));
        tokio::select! {
            biased;
            taken = more => share.add(taken.expect("the pool is never closed"), bytes),
            lane = lane => share.enter(lane.expect("the lane is never closed"), bytes),
        }
    }
}

impl Share {
    /// Bytes that it stands for.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is the one that may grow to the largest size.
    pub(crate) const fn has_lane(&self) -> bool {
        self.lane.is_some()
    }

    /// Gives back what is beyond `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if bytes <= FREE {
            *self = Self::default();
            return;
        }
        if let Some(pool) = &mut self.pool {
            let excess = pool.num_permits().saturating_sub(units(bytes) as usize);
            drop(pool.split(excess));
        }
        self.bytes = self.bytes.min(bytes);
    }

    fn missing_units(&self, bytes: usize) -> u32 {
        let held = self.pool.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        units(bytes).saturating_sub(u32::try_from(held).unwrap_or(u32::MAX))
    }

    fn add(&mut self, taken: OwnedSemaphorePermit, bytes: usize) {
        match &mut self.pool {
            Some(pool) => pool.merge(taken),
            None => self.pool = Some(taken),
        }
        self.bytes = bytes;
    }

    fn enter(&mut self, lane: OwnedSemaphorePermit, bytes: usize) {
        *self = Self { pool: None, lane: Some(lane), bytes };
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from((bytes as u64).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const MIB: usize = 1 << 20;

    fn budget() -> Budget {
        Budget::new(ByteCount::mib(128), ByteCount::mib(100))
    }

    /// Whether the growth is granted without waiting for somebody else.
    fn grows(budget: &Budget, share: &mut Share, bytes: usize) -> bool {
        let mut grow = pin!(budget.grow(share, bytes));
        grow.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn two_of_the_largest_frames_follow_each_other() {
        let budget = budget();
        let (mut first, mut second) = (Share::default(), Share::default());
        assert!(grows(&budget, &mut first, 3 * MIB));
        assert!(grows(&budget, &mut second, 3 * MIB));
        assert!(grows(&budget, &mut first, 50 * MIB));
        assert!(!grows(&budget, &mut second, 4 * MIB), "one at a time grows so large");
        assert!(grows(&budget, &mut first, 100 * MIB), "it never waits again");
        drop(first);
        assert!(grows(&budget, &mut second, 100 * MIB));
    }

    #[test]
    fn frames_that_share_the_whole_pool_can_still_end() {
        let budget = budget();
        let mut shares: Vec<Share> = (0..28).map(|_| Share::default()).collect();
        for share in &mut shares {
            assert!(grows(&budget, share, MIB));
        }
        assert!(grows(&budget, &mut shares[0], 2 * MIB), "the lane");
        assert!(grows(&budget, &mut shares[1], 2 * MIB), "what the first gave back");
        assert!(!grows(&budget, &mut shares[2], 2 * MIB), "nothing is left");
        shares.remove(0);
        assert!(grows(&budget, &mut shares[1], 2 * MIB), "the lane again");
    }

    #[test]
    fn small_room_is_there_when_nothing_else_is() {
        let budget = budget();
        let mut shares: Vec<Share> = (0..15).map(|_| Share::default()).collect();
        let granted = shares.iter_mut().map(|share| grows(&budget, share, 3 * MIB));
        let granted = granted.filter(|&granted| granted).count();
        assert_eq!(granted, 10, "nine from the pool and one in the lane");
        assert!(grows(&budget, &mut Share::default(), FREE));
    }

    #[test]
    fn what_is_shrunk_is_there_for_others() {
        let budget = budget();
        let whole = budget.pool.available_permits();
        let mut share = Share::default();
        assert!(grows(&budget, &mut share, 3 * MIB));
        share.shrink(MIB);
        assert_eq!(budget.pool.available_permits(), whole - MIB / 1024);
        assert!(grows(&budget, &mut share, 2 * MIB));
        assert_eq!(budget.pool.available_permits(), whole - 2 * MIB / 1024);
        share.shrink(0);
        assert_eq!(budget.pool.available_permits(), whole);
    }
}
