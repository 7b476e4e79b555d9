//! Compresses the records of a batch, and decompresses them up to a bound.
//!
//! A kilobyte from a peer may decompress to gigabytes. Whoever decompresses says how much it will
//! take; the output never grows past that.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use std::borrow::Cow;
use std::io::Read;

use strandline_model::ByteCount;

use crate::{BatchView, Compression};

/// What to compress with. Levels are those of Kafka's `compression.*.level`; one outside the range
/// of its codec counts as the nearest inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// −1 (the library's default) or 1 to 9.
    Gzip {
        /// `compression.gzip.level`
        level: i32,
    },
    /// Has no levels.
    Snappy,
    /// 1 to 17.
    Lz4 {
        /// `compression.lz4.level`
        level: i32,
    },
    /// −131072 to 22.
    Zstd {
        /// `compression.zstd.level`
        level: i32,
    },
}

impl Codec {
    /// The codec at the level that Kafka uses when none is configured.
    pub const fn at_default_level(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::None,
            Compression::Gzip => Self::Gzip { level: -1 },
            Compression::Snappy => Self::Snappy,
            Compression::Lz4 => Self::Lz4 { level: 9 },
            Compression::Zstd => Self::Zstd { level: 3 },
        }
    }

    /// The codec without its level, as a batch's attributes name it.
    pub const fn compression(self) -> Compression {
        match self {
            Self::None => Compression::None,
            Self::Gzip { .. } => Compression::Gzip,
            Self::Snappy => Compression::Snappy,
            Self::Lz4 { .. } => Compression::Lz4,
            Self::Zstd { .. } => Compression::Zstd,
        }
    }
}

/// Why the records of a batch can't be decompressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    /// The attributes name a codec that does not exist.
    #[error("compression codec is unknown")]
    UnknownCodec,
    /// There is more than the caller takes.
    #[error("decompressed records exceed the limit. limit=`{limit}`")]
    TooLarge {
        /// What the caller takes.
        limit: ByteCount,
    },
    /// The bytes are not what the codec makes, or are cut short.
    #[error("compressed records are malformed. codec=`{codec:?}`, reason=`{reason}`")]
    Malformed {
        /// The codec that the attributes name.
        codec: Compression,
        /// What the codec says.
        reason: String,
    },
}

impl<'a> BatchView<'a> {
    /// The records, uncompressed: borrowed when they are so already, else at most `limit` bytes.
    pub fn decompressed(&self, limit: ByteCount) -> Result<Cow<'a, [u8]>, DecompressError> {
        match self.attributes().compression() {
            None => Err(DecompressError::UnknownCodec),
            Some(Compression::None) => Ok(Cow::Borrowed(self.records_bytes())),
            Some(codec) => decompress(codec, self.records_bytes(), limit).map(Cow::Owned),
        }
    }
}

/// The bytes that `block` was made of: at most `limit`, else an error.
pub fn decompress(
    codec: Compression,
    block: &[u8],
    limit: ByteCount,
) -> Result<Vec<u8>, DecompressError> {
    let limit_bytes = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let outcome = match codec {
        Compression::None if block.len() > limit_bytes => Err(Failure::TooLarge),
        Compression::None => Ok(block.to_vec()),
        // Every codec makes some bytes of nothing, and some decoders take none for an end.
        _ if block.is_empty() => Err(Failure::malformed("no bytes")),
        Compression::Gzip => gzip::decompress(block, limit_bytes),
        Compression::Snappy => snappy::decompress(block, limit_bytes),
        Compression::Lz4 => lz4::decompress(block, limit_bytes),
        Compression::Zstd => zstd::decompress(block, limit_bytes),
    };
    outcome.map_err(|failure| match failure {
        Failure::TooLarge => DecompressError::TooLarge { limit },
        Failure::Malformed(reason) => DecompressError::Malformed { codec, reason },
    })
}

/// Appends what `codec` makes of `block` to `out`.
pub fn compress(codec: Codec, block: &[u8], out: &mut Vec<u8>) {
    match codec {
        Codec::None => out.extend_from_slice(block),
        Codec::Gzip { level } => gzip::compress(block, level, out),
        Codec::Snappy => snappy::compress(block, out),
        Codec::Lz4 { level } => lz4::compress(block, level, out),
        Codec::Zstd { level } => zstd::compress(block, level, out),
    }
}

/// What a codec answers.
type Decompressed = Result<Vec<u8>, Failure>;

#[derive(Debug)]
enum Failure {
    TooLarge,
    Malformed(String),
}

impl Failure {
    fn malformed(reason: impl ToString) -> Self {
        Self::Malformed(reason.to_string())
    }
}

/// Appends all that `from` yields to `out`, which never gets longer than `limit`.
fn read_up_to(limit: usize, from: impl Read, out: &mut Vec<u8>) -> Result<(), Failure> {
    let room = limit.saturating_sub(out.len());
    // One byte more than there is room for tells "too large" from "just fits".
    let mut bounded = from.take((room as u64).saturating_add(1));
    bounded.read_to_end(out).map_err(Failure::malformed)?;
    if out.len() > limit { Err(Failure::TooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
