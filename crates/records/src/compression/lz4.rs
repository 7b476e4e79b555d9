//! The LZ4 frame format.

use lz4::liblz4::BlockChecksum;
use lz4::{BlockMode, BlockSize, ContentChecksum, Decoder, EncoderBuilder};
use std::io::Write;

use super::{Decompressed, Failure, read_up_to};

/// Frames may follow one another.
pub(super) fn decompress(mut block: &[u8], limit: usize) -> Decompressed {
    let mut out = Vec::new();
    while !block.is_empty() {
        let mut decoder = Decoder::new(block).map_err(Failure::malformed)?;
        read_up_to(limit, &mut decoder, &mut out)?;
        let (rest, whole) = decoder.finish();
        whole.map_err(|_| Failure::malformed("frame is cut short"))?;
        block = rest;
    }
    Ok(out)
}

/// As Kafka writes it: independent blocks of 64 KiB (Java reads no others) and no checksums, since
/// the batch has one.
pub(super) fn compress(block: &[u8], level: i32, out: &mut Vec<u8>) {
    let mut encoder = EncoderBuilder::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent)
        .block_checksum(BlockChecksum::NoBlockChecksum)
        .checksum(ContentChecksum::NoChecksum)
        .level(u32::try_from(level.clamp(1, 17)).unwrap_or(1))
        .build(out)
        .expect("memory suffices");
    encoder.write_all(block).expect("memory takes every write");
    let (_, finished) = encoder.finish();
    finished.expect("memory takes every write");
}
