//! A response on its way to the socket.

use bytes::Bytes;
use strandline_model::ByteCount;
use strandline_storage::BatchPiece;

/// A whole response frame in pieces: bytes, and file ranges that go to the socket without a copy.
#[derive(Debug, Default)]
pub struct Reply {
    pieces: Vec<BatchPiece>,
}

impl Reply {
    /// A frame that is all in memory.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self { pieces: vec![BatchPiece::Memory(bytes)] }
    }

    pub(crate) fn push(&mut self, piece: BatchPiece) {
        if piece.size() > ByteCount::ZERO {
            self.pieces.push(piece);
        }
    }

    /// The pieces in the order of sending.
    pub fn into_pieces(self) -> Vec<BatchPiece> {
        self.pieces
    }

    /// Bytes of the whole frame.
    pub fn size(&self) -> ByteCount {
        self.pieces.iter().map(BatchPiece::size).sum()
    }
}
