//! Reading whole batches, and looking them up by time.

use std::sync::Arc;

use strandline_model::{Offset, Timestamp};
use strandline_storage::{BatchBytes, BatchInfo, BatchPiece, Minimum, ReadLimit, StorageError};

use super::live::Segment;
use super::log::SegmentLog;
use super::name::FileKind;

/// Segments that one read may span. Reached: the read ends early, and the next one goes on.
const READ_SEGMENTS_MAX: usize = 64;

impl SegmentLog {
    /// Whole batches from the one that holds `from` on, none of which begins at or after `upto`. Blocks.
    ///
    /// Empty when there is no such batch, or when the first exceeds the limit and
    /// [`Minimum::Nothing`] lets it. `upto` must not lie past the written end. The caller checks
    /// `from` against the log start, before the read and again when it fails: `Missing` says that
    /// segments were removed meanwhile. A segment that can't be read fails the read that begins there;
    /// one that begins before ends there.
    pub(crate) fn read(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> Result<BatchBytes, StorageError> {
        let mut batches = BatchBytes::empty();
        let mut left = limit.bytes.get();
        let mut minimum = limit.minimum;
        for segment in self.segments_between(from, upto, READ_SEGMENTS_MAX) {
            let range = self.range_in(&segment, from, upto, left, minimum);
            let found = range.and_then(|(start, end)| {
                let piece = (end > start).then(|| self.piece(&segment, start, end)).transpose();
                Ok((piece?, end))
            });
            let (piece, end) = match found {
                Err(_) if !batches.is_empty() => break,
                found => found?,
            };
            let Some(piece) = piece else { break };
            minimum = Minimum::Nothing;
            left = left.saturating_sub(piece.size().get());
            batches.push(piece);
            if end < segment.facts().bytes {
                break;
            }
        }
        Ok(batches)
    }

    fn piece(&self, segment: &Segment, start: u64, end: u64) -> Result<BatchPiece, StorageError> {
        let file = self.store.open_file(segment.key(FileKind::Log));
        let region = file.and_then(|file| file.region(start, end - start));
        region.map_err(|error| segment.read_failed(error))
    }

    /// What [`read`](Self::read) returns, up to the end of one segment, when memory alone can tell:
    /// for readers that follow the log or go on where they stopped. Never waits for the disk.
    ///
    /// `None`: ask [`read`](Self::read), where blocking is allowed.
    pub(crate) fn read_at_once(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> Option<BatchBytes> {
        let Some(segment) = self.segments_between(from, upto, 1).pop() else {
            return Some(BatchBytes::empty());
        };
        let (start, end) = segment.look(|live| {
            let start = live.known_position(from)?;
            let limited = start.saturating_add(limit.bytes.get());
            let (end, _) = live.known_extent(start, limited, upto)?;
            if end > start || limit.minimum == Minimum::Nothing {
                return Some((start, end));
            }
            let (end, _) = live.known_extent(start, u64::MAX, from.next())?;
            Some((start, end))
        })?;
        let file = self.store.files.opened(segment.key(FileKind::Log))?;
        if file.is_doubtful() {
            return None;
        }
        let region = file.region(start, end - start).ok()?;
        let mut batches = BatchBytes::empty();
        batches.push(region);
        Some(batches)
    }

    /// The bytes of a segment that a read returns.
    fn range_in(
        &self,
        segment: &Segment,
        from: Offset,
        upto: Offset,
        left: u64,
        minimum: Minimum,
    ) -> Result<(u64, u64), StorageError> {
        let search = self.search();
        let start = segment.locate(search, from)?;
        let (mut end, mut next) = segment.extent(search, start, left, upto)?;
        if end == start && minimum == Minimum::OneBatch {
            let first = segment.header_at(search, start)?;
            if let Some(first) = first.filter(|first| first.base_offset < upto) {
                end = start + first.size;
                next = Some(first.next_offset);
            }
        }
        if let Some(next) = next.filter(|_| end > start) {
            segment.remember(next, end);
        }
        Ok((start, end))
    }

    /// The first batch with an offset in `from..upto` whose newest timestamp is at least `at`. Blocks.
    pub(crate) fn find_timestamp(
        &self,
        at: Timestamp,
        from: Offset,
        upto: Offset,
    ) -> Result<Option<BatchInfo>, StorageError> {
        for segment in self.segments_between(from, upto, usize::MAX) {
            if segment.facts().max_timestamp < Some(at) {
                continue;
            }
            if let Some(batch) = segment.find_timestamp(self.search(), at, from, upto)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// The first `max` segments that hold offsets of `from..upto`, in order.
    pub(super) fn segments_between(
        &self,
        from: Offset,
        upto: Offset,
        max: usize,
    ) -> Vec<Arc<Segment>> {
        if from >= upto {
            return Vec::new();
        }
        let state = self.state.lock();
        let first = state.segments.partition_point(|segment| segment.facts().next_offset <= from);
        let held = state
            .segments
            .range(first..)
            .take_while(|segment| segment.base_offset < upto && segment.facts().bytes > 0);
        held.take(max).map(Arc::clone).collect()
    }
}
