//! Entries in memory: those that were appended last, and those of the past that were read last.
//!
//! # Invariants
//! - What is held and its [overhead](OVERHEAD_BYTES) stay within the capacity.
//! - An entry is never changed and a chunk's number never used again: nothing here is ever wrong, only
//!   of no use any more.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset};

/// What an entry costs beside its bytes: two places in the collections, a header of its allocation.
const OVERHEAD_BYTES: u64 = 160;

/// Log, chunk and end of an entry.
type Key = (i64, i64, Offset);

/// A row of `entries`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// From this offset on the entry is what a reader gets: its first, or one in a hole before it.
    pub(crate) from: Offset,
    /// The offset after its last record.
    pub(crate) next: Offset,
    /// Whole batches.
    pub(crate) data: Bytes,
}

/// See the [module](self). The oldest goes first.
#[derive(Debug)]
pub(crate) struct Cache {
    held: Mutex<Held>,
    capacity: u64,
}

#[derive(Debug, Default)]
struct Held {
    entries: BTreeMap<Key, Entry>,
    order: VecDeque<Key>,
    bytes: u64,
}

impl Cache {
    pub(crate) fn new(capacity: ByteCount) -> Self {
        Self { held: Mutex::default(), capacity: capacity.get() }
    }

    /// Nothing is held any more.
    pub(crate) fn clear(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        drop(held);
    }

    /// Bytes that are held, with what they cost beside.
    pub(crate) fn bytes(&self) -> u64 {
        self.held.lock().bytes
    }

    /// Keeps an entry of a chunk, if it fits at all.
    pub(crate) fn insert(&self, log_id: i64, chunk: i64, entry: Entry) {
        let cost = cost(&entry);
        if cost > self.capacity {
            return;
        }
        let key = (log_id, chunk, entry.next);
        let mut held = self.held.lock();
        let mut old = Vec::new();
        if let Some(known) = held.entries.get_mut(&key) {
            // A reader who came from further below knows that nothing lies between.
            known.from = known.from.min(entry.from);
            return;
        }
        while held.bytes + cost > self.capacity
            && let Some(oldest) = held.order.pop_front()
        {
            let gone = held.entries.remove(&oldest);
            held.bytes -= gone.as_ref().map_or(0, self::cost);
            old.push(gone);
        }
        held.bytes += cost;
        held.order.push_back(key);
        held.entries.insert(key, entry);
        drop(held);
        // Memory is freed after the lock.
        drop(old);
    }

    /// The entry of a chunk that holds `offset`, or comes next when it lies in a hole.
    pub(crate) fn get(&self, log_id: i64, chunk: i64, offset: Offset) -> Option<Entry> {
        let held = self.held.lock();
        let after = Bound::Excluded((log_id, chunk, offset));
        let (key, entry) = held.entries.range((after, Bound::Unbounded)).next()?;
        let is_of_chunk = (key.0, key.1) == (log_id, chunk);
        (is_of_chunk && entry.from <= offset).then(|| entry.clone())
    }
}

const fn cost(entry: &Entry) -> u64 {
    entry.data.len() as u64 + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(from: i64, next: i64, size: usize) -> Entry {
        Entry { from: Offset::new(from), next: Offset::new(next), data: vec![1; size].into() }
    }

    fn found(cache: &Cache, log_id: i64, chunk: i64, offset: i64) -> Option<i64> {
        cache.get(log_id, chunk, Offset::new(offset)).map(|entry| entry.next.get())
    }

    #[test]
    fn an_entry_is_found_by_every_offset_that_leads_to_it_and_no_other() {
        let cache = Cache::new(ByteCount::mib(1));
        cache.insert(1, 7, entry(10, 15, 3));
        cache.insert(1, 7, entry(18, 20, 3));
        cache.insert(1, 8, entry(20, 25, 3));
        // (log, chunk, offset, end of what is found)
        for (log, chunk, offset, end) in [
            (1, 7, 9, None),
            (1, 7, 10, Some(15)),
            (1, 7, 14, Some(15)),
            (1, 7, 15, None),
            (1, 7, 18, Some(20)),
            (1, 7, 20, None),
            (1, 8, 20, Some(25)),
            (1, 6, 10, None),
            (2, 7, 10, None),
        ] {
            assert_eq!(found(&cache, log, chunk, offset), end, "{log} {chunk} {offset}");
        }
        // Whoever read on from 15 saw that nothing lies before 18.
        cache.insert(1, 7, entry(15, 20, 3));
        assert_eq!(found(&cache, 1, 7, 16), Some(20));
    }

    #[test]
    fn the_oldest_goes_first_and_the_bound_holds() {
        let cache = Cache::new(ByteCount::new(3 * (100 + OVERHEAD_BYTES)));
        for number in 0..10 {
            cache.insert(1, 1, entry(number, number + 1, 100));
            let held = cache.held.lock();
            assert!(held.bytes <= cache.capacity);
            assert_eq!(held.bytes, held.entries.values().map(cost).sum::<u64>());
            assert_eq!(held.order.len(), held.entries.len());
        }
        let left: Vec<_> = (0..10).filter(|at| found(&cache, 1, 1, *at).is_some()).collect();
        assert_eq!(left, [7, 8, 9]);
        cache.insert(1, 1, entry(10, 11, 100_000));
        assert_eq!(found(&cache, 1, 1, 10), None, "what does not fit is not kept");
        assert_eq!(found(&cache, 1, 1, 9), Some(10), "and drives nothing out");
    }
}
