//! Snappy, in the framing of the Java library or raw.
//!
//! The framing (called Xerial's): 8 bytes of magic, a version and the lowest compatible version (i32
//! each), then chunks: a length (i32) and that many bytes of raw snappy. librdkafka sends raw snappy,
//! Java and Python send frames; Java's consumer reads only frames, so that is what we write.

use snap::raw::{Decoder, Encoder, decompress_len};

use super::{Decompressed, Failure};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const VERSION: i32 = 1;
const VERSIONS_BYTES: usize = 8;

/// What Kafka's Java client puts into a chunk before compression.
const CHUNK_BYTES: usize = 32 * 1024;

/// The most bytes that one compressed byte can stand for: a copy of 64 takes three.
const EXPANSION_MAX: usize = 22;

pub(super) fn decompress(block: &[u8], limit: usize) -> Decompressed {
    let mut out = Vec::new();
    let Some(mut chunks) = after_header(block) else {
        append_raw(block, limit, &mut out)?;
        return Ok(out);
    };
    while !chunks.is_empty() {
        // Streams that were put one after another: the magic is no length of a chunk.
        if let Some(rest) = after_header(chunks) {
            chunks = rest;
            continue;
        }
        let cut_short = || Failure::malformed("chunk is cut short");
        let (length, rest) = chunks.split_first_chunk().ok_or_else(cut_short)?;
        let length = usize::try_from(i32::from_be_bytes(*length))
            .map_err(|_| Failure::malformed("length of a chunk is negative"))?;
        let (chunk, rest) = rest.split_at_checked(length).ok_or_else(cut_short)?;
        append_raw(chunk, limit, &mut out)?;
        chunks = rest;
    }
    Ok(out)
}

pub(super) fn compress(block: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&VERSION.to_be_bytes());
    let mut encoder = Encoder::new();
    for chunk in block.chunks(CHUNK_BYTES) {
        let made = encoder.compress_vec(chunk).expect("a chunk is far smaller than 4 GiB");
        let length = i32::try_from(made.len()).expect("a chunk is far smaller than 2 GiB");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&made);
    }
}

fn after_header(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(&MAGIC)?.get(VERSIONS_BYTES..)
}

fn append_raw(raw: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let claimed = decompress_len(raw).map_err(Failure::malformed)?;
    // The length is the peer's word: it is believed only as far as the bytes could make it true.
    if claimed > raw.len().saturating_mul(EXPANSION_MAX) {
        return Err(Failure::malformed("claimed length is impossible"));
    }
    let start = out.len();
    if claimed > limit.saturating_sub(start) {
        return Err(Failure::TooLarge);
    }
    out.resize(start + claimed, 0);
    let room = out.get_mut(start..).unwrap_or_default();
    let written = Decoder::new().decompress(raw, room).map_err(Failure::malformed)?;
    out.truncate(start + written);
    Ok(())
}
