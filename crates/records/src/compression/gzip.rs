//! RFC 1952.

use std::io::Write;

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{Decompressed, read_up_to};

/// Members may follow one another, as the RFC says and Java reads them.
pub(super) fn decompress(block: &[u8], limit: usize) -> Decompressed {
    let mut out = Vec::new();
    read_up_to(limit, MultiGzDecoder::new(block), &mut out)?;
    Ok(out)
}

pub(super) fn compress(block: &[u8], level: i32, out: &mut Vec<u8>) {
    let level = match u32::try_from(level) {
        Err(_) => Compression::default(),
        Ok(level) => Compression::new(level.clamp(1, 9)),
    };
    let mut encoder = GzEncoder::new(out, level);
    encoder.write_all(block).and_then(|()| encoder.finish()).expect("memory takes every write");
}
