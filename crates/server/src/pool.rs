//! Large receive buffers, used again by the connections of one worker.
//!
//! What a frame was received into lives on in its requests, and its last part is dropped on some
//! other thread once it is durable. Fresh memory instead of it costs the kernel as much as the
//! receiving itself: each page is zeroed when it is touched first. So an emptied handle of the same
//! memory stays here, and its memory is taken again as soon as nobody else has a part of it.
//!
//! # Invariants
//! - At most `bytes_max` bytes are kept, in use or not; the oldest go first.
//! - What was not taken for [`IDLE_MAX`] is given back: a worker without traffic keeps nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Smaller buffers are the allocator's: it has those at hand.
pub(crate) const BYTES_MIN: usize = 64 * 1024;
/// How long an unused buffer is kept at least. It is given back within twice that.
const IDLE_MAX: Duration = Duration::from_millis(500);

/// Buffers of one worker.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The one that was put here last is the last.
    kept: VecDeque<Kept>,
    bytes: usize,
    /// A task gives back what is idle.
    is_watched: bool,
}

#[derive(Debug)]
struct Kept {
    handle: BytesMut,
    /// Bytes of the whole memory.
    capacity: usize,
    since: Instant,
}

/// A buffer and how large it is: a handle alone does not tell.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) bytes: BytesMut,
    /// Bytes of the whole memory if it is large enough to be kept, else 0.
    pub(crate) capacity: usize,
}

/// How large a buffer for `bytes` should be: at most a quarter larger, and few sizes are there, so
/// that buffers for like frames are alike.
pub(crate) const fn rounded(bytes: usize) -> usize {
    if bytes < BYTES_MIN {
        return bytes;
    }
    bytes.next_multiple_of(bytes.next_power_of_two() / 8)
}

impl Buffer {
    /// A fresh one of `capacity` bytes.
    pub(crate) fn fresh(capacity: usize) -> Self {
        let kept = if capacity < BYTES_MIN { 0 } else { capacity };
        Self { bytes: BytesMut::with_capacity(capacity), capacity: kept }
    }
}

impl Pool {
    /// Keeps at most `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, state: Mutex::default() })
    }

    /// An unused buffer of at least `capacity` bytes and at most twice as many. The last one that
    /// came back is the first that goes out: it may still be in the processor's cache, and those
    /// that are too many stay unused and are given back.
    pub(crate) fn take(&self, capacity: usize) -> Option<Buffer> {
        let mut state = self.state.lock();
        let fits = capacity..=capacity.saturating_mul(2);
        let index = state.kept.iter_mut().rposition(|kept| {
            fits.contains(&kept.capacity) && kept.handle.try_reclaim(kept.capacity)
        })?;
        let Kept { handle, capacity, .. } = state.kept.remove(index)?;
        state.bytes -= capacity;
        Some(Buffer { bytes: handle, capacity })
    }

    /// Keeps a buffer, whose content is done with, for others. Parts of it may be in use.
    pub(crate) fn keep(self: &Arc<Self>, buffer: Buffer) {
        let Buffer { bytes: mut handle, capacity } = buffer;
        if capacity == 0 || capacity > self.bytes_max {
            return;
        }
        handle.clear();
        let mut state = self.state.lock();
        state.bytes += capacity;
        state.kept.push_back(Kept { handle, capacity, since: Instant::now() });
        while state.bytes > self.bytes_max
            && let Some(oldest) = state.kept.pop_front()
        {
            state.bytes -= oldest.capacity;
        }
        if !std::mem::replace(&mut state.is_watched, true) {
            tokio::spawn(watch(Arc::clone(self)));
        }
    }

    /// Gives back what was not taken since `instant`. Whether anything is left.
    fn give_back_older(&self, instant: Instant) -> bool {
        let mut state = self.state.lock();
        while let Some(oldest) = state.kept.pop_front_if(|kept| kept.since <= instant) {
            state.bytes -= oldest.capacity;
        }
        state.is_watched = !state.kept.is_empty();
        state.is_watched
    }
}

/// Runs while there is something to give back.
async fn watch(pool: Arc<Pool>) {
    loop {
        tokio::time::sleep(IDLE_MAX).await;
        let Some(idle_since) = Instant::now().checked_sub(IDLE_MAX) else { continue };
        if !pool.give_back_older(idle_since) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Fills a buffer and takes a frame off it; the frame, and where the memory is.
    fn receive(buffer: &mut Buffer) -> (BytesMut, *const u8) {
        buffer.bytes.resize(buffer.capacity, 7);
        let frame = buffer.bytes.split_to(buffer.capacity / 2);
        let address = frame.as_ptr();
        (frame, address)
    }

    #[tokio::test]
    async fn memory_is_used_again_once_its_last_part_is_dropped() {
        let pool = Pool::new(8 * MIB);
        let mut buffer = Buffer::fresh(MIB);
        let (frame, address) = receive(&mut buffer);
        pool.keep(buffer);
        let frame = frame.freeze();
        assert!(pool.take(MIB).is_none(), "a part is in use");
        std::thread::spawn(move || drop(frame)).join().expect("no panic");
        let again = pool.take(MIB).expect("all of it is free");
        assert_eq!((again.bytes.as_ptr(), again.bytes.len()), (address, 0));
        assert_eq!((again.capacity, again.bytes.capacity()), (MIB, MIB));
        assert!(pool.take(MIB).is_none(), "it is taken");
    }

    #[tokio::test]
    async fn a_buffer_serves_what_it_is_at_most_twice_as_large_as() {
        let pool = Pool::new(8 * MIB);
        pool.keep(Buffer::fresh(MIB));
        assert!(pool.take(MIB + 1).is_none());
        assert!(pool.take(MIB / 2 - 1).is_none());
        let taken = pool.take(MIB / 2).expect("it is there");
        assert_eq!(taken.capacity, MIB);
    }

    #[tokio::test]
    async fn no_more_is_kept_than_the_bound_and_the_oldest_goes() {
        let pool = Pool::new(4 * MIB);
        // In use: it counts all the same, since it may become free at any time.
        let mut frames = Vec::new();
        for _ in 0..20 {
            let mut buffer = Buffer::fresh(MIB);
            frames.push(receive(&mut buffer).0);
            pool.keep(buffer);
        }
        let state = pool.state.lock();
        assert_eq!((state.bytes, state.kept.len()), (4 * MIB, 4));
        drop(state);
        for size in [MIB, MIB, 2 * MIB] {
            pool.keep(Buffer::fresh(size));
        }
        assert_eq!(pool.take(2 * MIB).expect("the newest is there").capacity, 2 * MIB);
        pool.keep(Buffer::fresh(5 * MIB));
        pool.keep(Buffer::fresh(BYTES_MIN - 1));
        assert_eq!(pool.state.lock().bytes, 2 * MIB, "neither is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_idle_is_given_back_and_then_nothing_runs() {
        let pool = Pool::new(8 * MIB);
        pool.keep(Buffer::fresh(MIB));
        pool.keep(Buffer::fresh(MIB));
        for _ in 0..10 {
            tokio::time::sleep(IDLE_MAX / 2).await;
            let busy = pool.take(MIB).expect("what is used stays");
            pool.keep(busy);
        }
        assert_eq!(pool.state.lock().bytes, MIB, "the second was never needed");
        tokio::time::sleep(IDLE_MAX * 2).await;
        assert_eq!(pool.state.lock().bytes, 0);
        assert_eq!(Arc::strong_count(&pool), 1, "nobody watches it");
        pool.keep(Buffer::fresh(MIB));
        tokio::time::sleep(IDLE_MAX * 2).await;
        assert_eq!(pool.state.lock().bytes, 0, "it is watched again");
    }

    #[test]
    fn sizes_are_few_and_little_larger() {
        assert_eq!(rounded(BYTES_MIN - 1), BYTES_MIN - 1);
        assert_eq!(rounded(BYTES_MIN), BYTES_MIN);
        assert_eq!(rounded(MIB), MIB);
        assert_eq!(rounded(1_001_024), MIB);
        assert_eq!(rounded(MIB + 1), MIB + MIB / 4);
        let mut sizes = std::collections::BTreeSet::new();
        for bytes in (BYTES_MIN..2 * MIB).step_by(97) {
            let size = rounded(bytes);
            assert!((bytes..=bytes + bytes / 4).contains(&size), "{bytes} {size}");
            sizes.insert(size);
        }
        assert!(sizes.len() <= 24, "{}", sizes.len());
    }
}
