//! What a read returns: whole batches, in memory or as ranges of files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use strandline_model::ByteCount;

/// How much to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Stop before the batch that would exceed this.
    pub bytes: ByteCount,
    /// What to do when the very first batch exceeds it.
    pub minimum: Minimum,
}

/// Whether a read may come back empty because the first batch is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimum {
    /// It may.
    Nothing,
    /// The first batch is returned whatever its size, so that a reader always gets on (KIP-74).
    OneBatch,
}

/// Whole batches, one after another.
#[derive(Clone, Debug, Default)]
pub struct BatchBytes {
    pieces: Vec<BatchPiece>,
}

/// A part of [`BatchBytes`]; it need not begin or end at a batch's border.
#[derive(Clone, Debug)]
pub enum BatchPiece {
    /// Bytes in memory.
    Memory(Bytes),
    /// A range of a file, to be handed to the socket without a copy.
    File(FileRegion),
}

/// A range of a file that stays as it is while the region lives.
///
/// The engine sees by the reference count of `file` that somebody still reads and neither truncates
/// nor removes the file's bytes until the count falls.
#[derive(Clone, Debug)]
pub struct FileRegion {
    /// The file, shared with the engine.
    pub file: Arc<File>,
    /// Where the range begins, in bytes.
    pub position: u64,
    /// How many bytes it has.
    pub length: u64,
    /// Set by whoever could not read the range: the engine reads what it gives out of this file itself
    /// from then on, and so meets the error in the place of the reader.
    pub is_doubtful: Arc<AtomicBool>,
}

impl BatchBytes {
    /// Nothing.
    pub const fn empty() -> Self {
        Self { pieces: Vec::new() }
    }

    /// Bytes in memory.
    pub fn from_memory(bytes: Bytes) -> Self {
        let mut batches = Self::empty();
        batches.push(BatchPiece::Memory(bytes));
        batches
    }

    /// A range of a file.
    pub fn from_file(region: FileRegion) -> Self {
        let mut batches = Self::empty();
        batches.push(BatchPiece::File(region));
        batches
    }

    /// Adds a piece behind the others; an empty one is left out.
    pub fn push(&mut self, piece: BatchPiece) {
        if piece.size() > ByteCount::ZERO {
            self.pieces.push(piece);
        }
    }

    /// The pieces in order.
    pub fn pieces(&self) -> &[BatchPiece] {
        &self.pieces
    }

    /// The pieces in order, by value.
    pub fn into_pieces(self) -> Vec<BatchPiece> {
        self.pieces
    }

    /// Bytes of all pieces.
    pub fn size(&self) -> ByteCount {
        self.pieces.iter().map(BatchPiece::size).sum()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// All bytes in memory; file ranges are read, which blocks the calling thread.
    pub fn read_to_memory(self) -> io::Result<Bytes> {
        let mut pieces = self.pieces;
        if let [BatchPiece::Memory(_)] = pieces.as_slice()
            && let Some(BatchPiece::Memory(bytes)) = pieces.pop()
        {
            return Ok(bytes);
        }
        let size = pieces.iter().map(BatchPiece::size).sum::<ByteCount>().get();
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut all = BytesMut::with_capacity(size);
        for piece in pieces {
            match piece {
                BatchPiece::Memory(bytes) => all.extend_from_slice(&bytes),
                BatchPiece::File(region) => region.read_into(&mut all)?,
            }
        }
        Ok(all.freeze())
    }
}

impl BatchPiece {
    /// Bytes of this piece.
    pub const fn size(&self) -> ByteCount {
        match self {
            Self::Memory(bytes) => ByteCount::new(bytes.len() as u64),
            Self::File(region) => ByteCount::new(region.length),
        }
    }
}

impl FileRegion {
    /// The range, or a part of it, could not be read.
    pub fn note_failure(&self) {
        self.is_doubtful.store(true, Ordering::Relaxed);
    }

    /// Appends the range to `buf`; blocks the calling thread.
    pub fn read_into(&self, buf: &mut BytesMut) -> io::Result<()> {
        let length = usize::try_from(self.length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let begin = buf.len();
        buf.resize(begin + length, 0);
        self.file.read_exact_at(&mut buf[begin..], self.position)
    }
}
