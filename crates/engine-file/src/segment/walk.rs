//! Steps from batch to batch through a segment, reading headers only.

use std::io;

use strandline_records::{BatchError, BatchHeader, HEADER_BYTES};

use crate::disk::{DiskFile, read_exact_at};

/// The headers of the batches in `[position, end)` of a file.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    file: &'a dyn DiskFile,
    position: u64,
    end: u64,
    /// Read ahead: small batches come many to a read.
    chunk: Vec<u8>,
    chunk_position: u64,
    chunk_bytes: usize,
}

/// Why a walk stopped before its end.
#[derive(Debug)]
pub(super) enum WalkError {
    /// The file could not be read.
    Io(io::Error),
    /// There is no whole batch at a position.
    Broken { position: u64, error: BatchError },
}

impl<'a> Walk<'a> {
    /// `position` must be a batch's; batches that reach beyond `end` are broken. Reads
    /// `chunk_bytes` at a time.
    pub(super) fn new(file: &'a dyn DiskFile, position: u64, end: u64, chunk_bytes: usize) -> Self {
        let chunk_bytes = chunk_bytes.max(HEADER_BYTES);
        Self { file, position, end, chunk: Vec::new(), chunk_position: position, chunk_bytes }
    }

    /// The next batch's position and header; `None` at the end.
    pub(super) fn step(&mut self) -> Result<Option<(u64, BatchHeader)>, WalkError> {
        let position = self.position;
        if position >= self.end {
            return Ok(None);
        }
        let left = self.end - position;
        let broken = |error| WalkError::Broken { position, error };
        let header = BatchHeader::parse(self.header(left)?).map_err(broken)?;
        if header.size > left {
            let have = usize::try_from(left).unwrap_or(usize::MAX);
            let need = usize::try_from(header.size).unwrap_or(usize::MAX);
            return Err(broken(BatchError::CutShort { have, need }));
        }
        self.position += header.size;
        Ok(Some((position, header)))
    }

    /// The bytes of the header at the current position, fewer at the end.
    fn header(&mut self, left: u64) -> Result<&[u8], WalkError> {
        let wanted = left.min(HEADER_BYTES as u64);
        let held_end = self.chunk_position + self.chunk.len() as u64;
        if self.position < self.chunk_position || self.position + wanted > held_end {
            let length = left.min(self.chunk_bytes as u64);
            self.chunk.resize(usize::try_from(length).expect("a chunk fits memory"), 0);
            read_exact_at(self.file, self.position, &mut self.chunk).map_err(WalkError::Io)?;
            self.chunk_position = self.position;
        }
        let at = usize::try_from(self.position - self.chunk_position).expect("within the chunk");
        Ok(&self.chunk[at..])
    }
}
