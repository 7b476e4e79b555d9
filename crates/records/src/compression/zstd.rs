//! RFC 8878.

use zstd::stream::read::Decoder;

use super::{Decompressed, Failure, read_up_to};

/// Read as a stream: Java's frames do not say how large their content is.
///
/// The window that a frame may ask for is left at the library's bound of 128 MiB, which level 22
/// uses. It is address space: only what is decompressed, at most `limit`, is touched.
pub(super) fn decompress(block: &[u8], limit: usize) -> Decompressed {
    let decoder = Decoder::with_buffer(block).map_err(Failure::malformed)?;
    let mut out = Vec::new();
    read_up_to(limit, decoder, &mut out)?;
    Ok(out)
}

pub(super) fn compress(block: &[u8], level: i32, out: &mut Vec<u8>) {
    // To zstd, level 0 means the default; Kafka's range has it with the same meaning.
    let level = level.clamp(-131_072, 22);
    let made = zstd::bulk::compress(block, level).expect("the level is in range, memory suffices");
    out.extend_from_slice(&made);
}
