//! CRC-32C (Castagnoli), the checksum of record batches and of everything that we write to disk.

use crc_fast::{CrcAlgorithm, checksum};

/// The CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    u32::try_from(checksum(CrcAlgorithm::Crc32Iscsi, bytes))
        .expect("a 32-bit checksum fits 32 bits")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One bit at a time, from the polynomial: slow, and right by inspection.
    fn reference(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 }
            })
        })
    }

    #[test]
    fn the_check_value_of_the_algorithm() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition_at_every_length_and_alignment(
            bytes in prop::collection::vec(any::<u8>(), 0..1100), skip in 0_usize..64,
        ) {
            let part = bytes.get(skip..).unwrap_or_default();
            prop_assert_eq!(crc32c(part), reference(part));
        }
    }
}
