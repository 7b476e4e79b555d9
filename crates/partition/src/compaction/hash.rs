//! `SipHash-2-4` with 128 bits, of keys of records.
//!
//! Two keys with the same hash would count as one, and the older record be lost. The secret that
//! goes into it makes that a matter of luck (less than one in 10²⁰ for a billion keys), also for
//! somebody who chooses keys on purpose.

/// A hash of 128 bits.
pub(super) type KeyHash = [u64; 2];

/// Hashes keys under a secret.
#[derive(Clone, Copy)]
pub(super) struct KeyHasher {
    secret: [u64; 2],
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl KeyHasher {
    pub(super) fn new(secret: u128) -> Self {
        let bytes = secret.to_le_bytes();
        let (low, high) = bytes.split_at(8);
        Self { secret: [word(low), word(high)] }
    }

    pub(super) fn hash(self, key: &[u8]) -> KeyHash {
        let [k0, k1] = self.secret;
        let mut state = State {
            v0: k0 ^ 0x736f_6d65_7073_6575,
            v1: k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            v2: k0 ^ 0x6c79_6765_6e65_7261,
            v3: k1 ^ 0x7465_6462_7974_6573,
        };
        let words = key.chunks_exact(8);
        let rest = words.remainder();
        for chunk in words {
            state.take(word(chunk));
        }
        state.take(word(rest) | (key.len() as u64) << 56);
        state.v2 ^= 0xee;
        state.rounds(4);
        let first = state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
        state.v1 ^= 0xdd;
        state.rounds(4);
        [first, state.v0 ^ state.v1 ^ state.v2 ^ state.v3]
    }
}

impl State {
    const fn take(&mut self, word: u64) {
        self.v3 ^= word;
        self.rounds(2);
        self.v0 ^= word;
    }

    const fn rounds(&mut self, mut count: u32) {
        while count > 0 {
            count -= 1;
            self.v0 = self.v0.wrapping_add(self.v1);
            self.v1 = self.v1.rotate_left(13) ^ self.v0;
            self.v0 = self.v0.rotate_left(32);
            self.v2 = self.v2.wrapping_add(self.v3);
            self.v3 = self.v3.rotate_left(16) ^ self.v2;
            self.v0 = self.v0.wrapping_add(self.v3);
            self.v3 = self.v3.rotate_left(21) ^ self.v0;
            self.v2 = self.v2.wrapping_add(self.v1);
            self.v1 = self.v1.rotate_left(17) ^ self.v2;
            self.v2 = self.v2.rotate_left(32);
        }
    }
}

/// Up to eight bytes, the first the lowest.
fn word(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    u64::from_le_bytes(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_reference_implementation() {
        let secret = u128::from_le_bytes(std::array::from_fn(|index| index.try_into().unwrap()));
        let key: Vec<u8> = (0..64).collect();
        // (length, hash): `vectors_sip128` of the reference.
        let cases: [(usize, [u8; 16]); 2] = [
            (
                0,
                [
                    0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7,
                    0x55, 0x02, 0x93,
                ],
            ),
            (
                1,
                [
                    0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b,
                    0x22, 0xfc, 0x45,
                ],
            ),
        ];
        for (length, expected) in cases {
            let [first, second] = KeyHasher::new(secret).hash(&key[..length]);
            let got = [first.to_le_bytes(), second.to_le_bytes()].concat();
            assert_eq!(got, expected, "{length}");
        }
    }

    #[test]
    fn keys_of_all_lengths_differ_and_so_do_secrets() {
        let key = [7; 40];
        let mut seen = std::collections::BTreeSet::new();
        for secret in [1, 2, u128::MAX] {
            for length in 0..=key.len() {
                assert!(seen.insert(KeyHasher::new(secret).hash(&key[..length])));
            }
        }
    }
}
