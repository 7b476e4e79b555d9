//! The header of a journal file.

use strandline_records::crc32c;

use super::{BLOCK, Generation, GroupPosition, GroupSequence};
use crate::bytes::Fields;

const MAGIC: [u8; 8] = *b"SLJOURNL";
pub(crate) const VERSION: u32 = 1;
/// Bytes of the header that mean something; the rest of its block is zero.
const HEADER_BYTES: usize = 72;
const CHECKED_FROM: usize = 12;

/// What block 0 of a journal file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) generation: Generation,
    /// Of the group in block 1. Everything before it is synced.
    pub(crate) first_sequence: GroupSequence,
    /// Where the file ends for groups.
    pub(crate) file_bytes: u64,
    /// The file that this one replaces because it could not be synced, and where trust in it ends.
    pub(crate) abandoned: Option<GroupPosition>,
}

/// What a header block turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParsedHeader {
    Valid(FileHeader),
    /// Never written: the file was made and filled with zeros.
    Blank,
    /// Written by a newer version.
    Newer(u32),
    /// Torn or damaged.
    Invalid,
}

impl FileHeader {
    /// A whole block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let abandoned =
            self.abandoned.unwrap_or(GroupPosition { generation: Generation(0), position: 0 });
        let mut block = Vec::with_capacity(BLOCK);
        block.extend(MAGIC);
        block.extend([0; 4]);
        block.extend(VERSION.to_be_bytes());
        for field in [
            self.generation.0,
            self.first_sequence.0,
            0,
            self.file_bytes,
            abandoned.generation.0,
            abandoned.position,
        ] {
            block.extend(field.to_be_bytes());
        }
        block.resize(HEADER_BYTES, 0);
        let checksum = crc32c(&block[CHECKED_FROM..]);
        block[MAGIC.len()..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
        block.resize(BLOCK, 0);
        block
    }

    /// Reads a header from the beginning of a file; `block` may be cut short.
    pub(crate) fn parse(block: &[u8]) -> ParsedHeader {
        let Some(header) = block.get(..HEADER_BYTES) else { return ParsedHeader::Invalid };
        if header.iter().all(|&byte| byte == 0) {
            return ParsedHeader::Blank;
        }
        Self::fields(header).unwrap_or(ParsedHeader::Invalid)
    }

    fn fields(header: &[u8]) -> Option<ParsedHeader> {
        let mut fields = Fields::of(header);
        let (magic, checksum) = (fields.array::<8>()?, fields.u32()?);
        if magic != MAGIC || checksum != crc32c(fields.rest()) {
            return None;
        }
        let version = fields.u32()?;
        if version > VERSION {
            return Some(ParsedHeader::Newer(version));
        }
        let generation = Generation(fields.counter()?);
        let first_sequence = GroupSequence(fields.counter()?);
        fields.u64()?;
        let file_bytes = fields.u64()?;
        let abandoned =
            GroupPosition { generation: Generation(fields.u64()?), position: fields.u64()? };
        let abandoned = (abandoned.generation.0 != 0).then_some(abandoned);
        let header = Self { generation, first_sequence, file_bytes, abandoned };
        Some(ParsedHeader::Valid(header))
    }
}
