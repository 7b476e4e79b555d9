//! The newest offset of each key, in memory that is bounded.

use strandline_model::{ByteCount, Offset};

use super::hash::{KeyHash, KeyHasher};

/// What one key costs in memory.
pub const KEY_BYTES: ByteCount = ByteCount::new(size_of::<Slot>() as u64);

/// Keys that are fetched at a time: about as many reads as a processor has under way.
const EXPECTED_TOGETHER: usize = 16;

/// The newest offset of each key of the dirty part of a log.
///
/// Keys are known by a hash under a secret: two that are taken for one would lose a record, which
/// nobody can bring about who does not know it.
///
/// # Invariants
/// - A slot that is free ends the search for a key: there is always one.
/// - An offset of a key only rises.
#[derive(Clone)]
pub struct OffsetMap {
    slots: Vec<Slot>,
    /// Keys that it takes.
    keys_max: usize,
    keys: usize,
    hasher: KeyHasher,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Slot {
    hash: KeyHash,
    /// One more than the offset; 0: free.
    next_offset: i64,
}

/// The map holds as many keys as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapFull;

impl std::fmt::Debug for OffsetMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OffsetMap")
            .field("keys", &self.keys)
            .field("keys_max", &self.keys_max)
            .finish_non_exhaustive()
    }
}

impl OffsetMap {
    /// A map for up to `keys` keys in at most `memory`, of which no more than `load` (0 to 1) is
    /// filled; at least one key fits whatever the numbers say. `secret` is random.
    pub fn new(keys: u64, memory: ByteCount, load: f64, secret: u128) -> Self {
        let load = if load > 0.0 { load.min(0.95) } else { 0.95 };
        let slots_max =
            usize::try_from(memory.get() / KEY_BYTES.get()).unwrap_or(usize::MAX).max(2);
        // Half empty where there is room: a search ends sooner.
        let wanted = usize::try_from(keys.saturating_mul(2)).unwrap_or(usize::MAX).max(2);
        let slots = wanted.min(slots_max);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a length, held within it"
        )]
        let share = (slots as f64 * load) as usize;
        let keys_max = share.clamp(1, slots - 1);
        let hasher = KeyHasher::new(secret);
        Self { slots: vec![Slot::default(); slots], keys_max, keys: 0, hasher }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> ByteCount {
        ByteCount::new(self.slots.len() as u64 * KEY_BYTES.get())
    }

    /// How many keys it holds.
    pub const fn len(&self) -> usize {
        self.keys
    }

    /// Whether it holds none.
    pub const fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Notes that a record with `key` stands at `offset`.
    pub fn put(&mut self, key: &[u8], offset: Offset) -> Result<(), MapFull> {
        let hash = self.hasher.hash(key);
        let place = self.place_of(hash);
        let is_full = self.keys >= self.keys_max;
        let Some(slot) = self.slots.get_mut(place) else { return Err(MapFull) };
        if slot.next_offset == 0 {
            if is_full {
                return Err(MapFull);
            }
            slot.hash = hash;
            self.keys += 1;
        }
        slot.next_offset = slot.next_offset.max(offset.get().saturating_add(1));
        Ok(())
    }

    /// The newest offset of `key`, if it was noted.
    pub fn get(&self, key: &[u8]) -> Option<Offset> {
        let slot = self.slots.get(self.place_of(self.hasher.hash(key)))?;
        (slot.next_offset > 0).then(|| Offset::new(slot.next_offset - 1))
    }

    /// Fetches what is known of keys that are about to be put or asked for, so that they wait for
    /// memory together and not one after another. Changes nothing.
    pub fn expect<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        let mut keys = keys.into_iter().peekable();
        while keys.peek().is_some() {
            let mut starts = [0; EXPECTED_TOGETHER];
            for (start, key) in starts.iter_mut().zip(&mut keys) {
                *start = self.start_of(self.hasher.hash(key));
            }
            let touched = starts.iter().filter_map(|&start| self.slots.get(start));
            std::hint::black_box(touched.fold(0, |all, slot| all ^ slot.next_offset));
        }
    }

    /// Where the search for a key begins.
    fn start_of(&self, hash: KeyHash) -> usize {
        // The high half of the product: as even as the remainder, and much cheaper.
        let start = (u128::from(hash[0]) * self.slots.len() as u128) >> 64;
        usize::try_from(start).unwrap_or(0)
    }

    /// Where a key is, or the free slot that ends the search for it.
    fn place_of(&self, hash: KeyHash) -> usize {
        let count = self.slots.len();
        let start = self.start_of(hash);
        let (before, from) = self.slots.split_at(start.min(count));
        let is_end = |slot: &Slot| slot.next_offset == 0 || slot.hash == hash;
        match from.iter().position(is_end) {
            Some(steps) => start + steps,
            None => before.iter().position(is_end).unwrap_or(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_knows_the_newest_offset_of_each_key_until_it_is_full(
            puts in prop::collection::vec((0..40_u8, 0..1000_i64), 0..200),
            memory in 0..2000_u64,
            secret in any::<u128>(),
        ) {
            let mut map = OffsetMap::new(100, ByteCount::new(memory), 0.9, secret);
            prop_assert!(map.memory() <= ByteCount::new(memory.max(2 * KEY_BYTES.get())));
            let mut model: BTreeMap<u8, i64> = BTreeMap::new();
            for (key, offset) in puts {
                let is_known = model.contains_key(&key);
                // As many as there are, none of them too: it changes nothing.
                let ahead: Vec<[u8; 1]> = (0..key).map(|key| [key]).collect();
                map.expect(ahead.iter().map(<[u8; 1]>::as_slice));
                match map.put(&[key], Offset::new(offset)) {
                    Ok(()) => {
                        let newest = model.entry(key).or_insert(offset);
                        *newest = offset.max(*newest);
                    }
                    Err(MapFull) => prop_assert!(!is_known, "a known key needs no room"),
                }
                prop_assert_eq!(map.len(), model.len());
            }
            prop_assert!(!map.is_empty() || model.is_empty());
            for key in 0..40 {
                let newest = model.get(&key).copied().map(Offset::new);
                prop_assert_eq!(map.get(&[key]), newest);
            }
        }
    }

    #[test]
    fn one_key_always_fits_and_the_memory_is_no_more_than_needed() {
        let mut map = OffsetMap::new(0, ByteCount::ZERO, 0.0, 1);
        assert!(map.is_empty());
        map.put(b"a", Offset::new(5)).unwrap();
        assert_eq!(map.put(b"b", Offset::new(6)), Err(MapFull));
        assert_eq!((map.get(b"a"), map.get(b"b")), (Some(Offset::new(5)), None));
        let small = OffsetMap::new(1000, ByteCount::mib(128), 0.9, 1);
        assert_eq!(small.memory(), ByteCount::new(2000 * KEY_BYTES.get()));
    }
}
