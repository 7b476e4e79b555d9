//! Which partition a record goes to: as Java's producer chooses, so that records of a key meet
//! whoever else produces them.

/// The partition of a key among `count` partitions.
pub(crate) fn of_key(key: &[u8], count: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % count.max(1)
}

/// Murmur2 with Kafka's seed.
fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const FACTOR: u32 = 0x5bd1_e995;
    // Kafka's hash counts with 32 bits, and no key is longer than that.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut hash = SEED ^ length;
    let mut words = bytes.chunks_exact(4);
    for word in words.by_ref() {
        let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
        let word = word.wrapping_mul(FACTOR);
        let word = (word ^ (word >> 24)).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ word;
    }
    let tail = words.remainder();
    for (index, byte) in tail.iter().enumerate().rev() {
        hash ^= u32::from(*byte) << (8 * index);
    }
    if !tail.is_empty() {
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of Kafka's own UtilsTest.
    #[test]
    fn hashes_are_those_of_java() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn every_partition_is_one_of_them() {
        assert_eq!(of_key(b"abc", 1), 0);
        assert_eq!(of_key(b"abc", 7), 479_470_107 % 7);
        assert!((0..100_u8).all(|byte| of_key(&[byte], 3) < 3));
    }
}
