//! A frame with gaps for records.

use bytes::Bytes;
use smallvec::SmallVec;

/// The bytes of a Fetch response around its records.
///
/// # Invariants
/// - `cuts` rise and lie inside `bytes`.
/// - The frame's length field counts the records too.
#[derive(Clone, Debug)]
pub struct Segments {
    bytes: Bytes,
    cuts: SmallVec<[usize; 4]>,
    records_bytes: usize,
}

/// A part of a frame, in the order of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<R> {
    /// Bytes of the response.
    Bytes(Bytes),
    /// The records of a partition, wherever they lie.
    Records(R),
}

impl Segments {
    pub(crate) fn new(bytes: Bytes, cuts: SmallVec<[usize; 4]>, records_bytes: usize) -> Self {
        debug_assert!(cuts.is_sorted() && cuts.last().is_none_or(|&cut| cut <= bytes.len()));
        Self { bytes, cuts, records_bytes }
    }

    /// How many bytes the whole frame has, its length field and the records counted.
    pub fn frame_bytes(&self) -> usize {
        self.bytes.len().saturating_add(self.records_bytes)
    }

    /// How many gaps there are: one for each partition with `records_bytes > 0`.
    pub fn gaps(&self) -> usize {
        self.cuts.len()
    }

    /// The frame with `records` in its gaps: one item for each partition with `records_bytes > 0`,
    /// in the order of the response, each of exactly that many bytes.
    ///
    /// # Panics
    /// When there are more or fewer records than gaps: the peer would lose its place in the stream.
    pub fn fill<R>(self, records: impl IntoIterator<Item = R>) -> Vec<Piece<R>> {
        let mut pieces = Vec::with_capacity(2 * self.cuts.len() + 1);
        let mut from = 0;
        let mut records = records.into_iter();
        for cut in self.cuts {
            pieces.push(Piece::Bytes(self.bytes.slice(from..cut)));
            pieces.push(Piece::Records(records.next().expect("every gap has its records")));
            from = cut;
        }
        assert!(records.next().is_none(), "all records have a gap");
        pieces.push(Piece::Bytes(self.bytes.slice(from..)));
        pieces
    }
}
