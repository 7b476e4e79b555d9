//! Finds batches in a segment: by offset, by bytes, by timestamp.
//!
//! An index, in memory or in a file, proposes where to begin; the batch that stands there says
//! whether that is true; a walk of headers does the rest. When an index is wrong it is made anew, and
//! when that does not help the walk begins at the start of the segment.

use strandline_model::{Offset, OffsetDelta, Timestamp};
use strandline_records::BatchHeader;
use strandline_storage::{BatchInfo, StorageError};

use super::SegmentFacts;
use super::index::{OffsetEntry, TimeEntry};
use super::index_file::{named_offset, search};
use super::live::Segment;
use super::name::FileKind;
use super::store::SegmentStore;
use super::walk::{Walk, WalkError};

/// How much farther than an index promises a walk may go before the index counts as incomplete.
const SPARSE_FACTOR: u64 = 16;

/// What a search runs with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'a> {
    pub(super) store: &'a SegmentStore,
    /// Bytes between two entries of the offset index.
    pub(super) interval: u64,
}

/// Where a walk begins.
#[derive(Clone, Copy, Debug)]
struct Start {
    position: u64,
    /// What the batch there must be.
    entry: Option<OffsetEntry>,
    /// Whether a file said so, or could have.
    is_from_file: bool,
}

enum Outcome<T> {
    /// The visitor's answer, and whether the index should have come closer.
    Found { answer: Option<T>, is_sparse: bool },
    /// The batch at the start is not what the index says.
    Distrusted,
}

impl Segment {
    /// Where the batch stands that holds `offset`, or the next one when a hole does.
    ///
    /// `offset` must lie below the segment's end.
    pub(super) fn locate(&self, search: Search<'_>, offset: Offset) -> Result<u64, StorageError> {
        if let Some(position) = self.look(|live| live.known_position(offset)) {
            return Ok(position);
        }
        let ends_before =
            |entry: OffsetEntry| named_offset(self.base_offset, entry.relative) <= offset;
        let facts = self.facts();
        let found = self.visit_from(search, &facts, 0, ends_before, |position, batch| {
            (batch.next_offset > offset).then_some(position)
        })?;
        Ok(found.unwrap_or(facts.bytes))
    }

    /// The end of the last batch that begins at or after `start`, ends within `bytes` of it and
    /// begins below `upto`; with the offset of the batch that begins there, if one is known.
    ///
    /// `start` must be a batch's position. The result is `start` when its batch does not fit.
    pub(super) fn extent(
        &self,
        search: Search<'_>,
        start: u64,
        bytes: u64,
        upto: Offset,
    ) -> Result<(u64, Option<Offset>), StorageError> {
        let limit = start.saturating_add(bytes);
        // Looked at once: what is written meanwhile was not compared with the limits.
        let (known, facts) = self.look(|live| (live.known_extent(start, limit, upto), live.facts));
        if let Some(known) = known {
            return Ok(known);
        }
        let lies_before = |entry: OffsetEntry| {
            u64::from(entry.position) <= limit
                && named_offset(self.base_offset, entry.relative) < upto
        };
        let found = self.visit_from(search, &facts, start, lies_before, |position, batch| {
            let fits = position + batch.size <= limit && batch.base_offset < upto;
            (!fits).then_some((position, Some(batch.base_offset)))
        })?;
        Ok(found.unwrap_or((facts.bytes, None)))
    }

    /// The header of the batch at a position.
    pub(super) fn header_at(
        &self,
        search: Search<'_>,
        position: u64,
    ) -> Result<Option<BatchHeader>, StorageError> {
        self.visit_behind(search, &self.facts(), position, |_, batch| Some(*batch))
    }

    /// The first batch with an offset in `from..upto` whose newest timestamp is at least `at`.
    pub(super) fn find_timestamp(
        &self,
        search: Search<'_>,
        at: Timestamp,
        from: Offset,
        upto: Offset,
    ) -> Result<Option<BatchInfo>, StorageError> {
        let start = self.start_by_time(search, at)?.max(self.locate(search, from)?);
        let found = self.visit_behind(search, &self.facts(), start, |_, batch| {
            if batch.next_offset > upto {
                return Some(None);
            }
            let is_new = batch.max_timestamp.is_some_and(|newest| newest >= at);
            (is_new && batch.next_offset > from).then_some(Some(*batch))
        })?;
        Ok(found.flatten().and_then(|batch| {
            Some(BatchInfo {
                base_offset: batch.base_offset,
                next_offset: batch.next_offset,
                max_timestamp: batch.max_timestamp?,
                leader_epoch: batch.leader_epoch?,
            })
        }))
    }

    /// A position before which no batch is as new as `at`.
    fn start_by_time(&self, search: Search<'_>, at: Timestamp) -> Result<u64, StorageError> {
        let Some(entry) = self.time_entry_before(search, at) else { return Ok(0) };
        let offset = named_offset(self.base_offset, entry.relative);
        if offset >= self.facts().next_offset {
            return Ok(0);
        }
        let position = self.locate(search, offset)?;
        match self.header_at(search, position)? {
            Some(batch) if entry.names(self.base_offset, &batch) => Ok(position),
            _ => {
                self.rebuild_index(search.store, search.interval)?;
                Ok(0)
            }
        }
    }

    fn time_entry_before(&self, search: Search<'_>, at: Timestamp) -> Option<TimeEntry> {
        let loaded = self.look(|live| {
            live.index.as_ref().map(|index| {
                let behind = index.times.partition_point(|entry| entry.timestamp < at);
                behind.checked_sub(1).map(|last| index.times[last])
            })
        });
        if let Some(entry) = loaded {
            return entry;
        }
        let file = search.store.open_file(self.key(FileKind::TimeIndex)).ok()?;
        let limit = self.facts().next_offset;
        let is_before = |entry: TimeEntry| {
            entry.timestamp < at && named_offset(self.base_offset, entry.relative) < limit
        };
        // An index that can't be read is none.
        super::index_file::search(&*file, is_before).ok().flatten()
    }

    /// Walks from the last indexed batch for which `is_before` holds, or from `from` if that lies
    /// behind, to the end that `facts` know, and gives `visit` each batch until it answers.
    fn visit_from<T>(
        &self,
        search: Search<'_>,
        facts: &SegmentFacts,
        from: u64,
        is_before: impl Fn(OffsetEntry) -> bool,
        visit: impl Fn(u64, &BatchHeader) -> Option<T>,
    ) -> Result<Option<T>, StorageError> {
        let start = self.start_before(search, facts, from, &is_before);
        match self.visit_at(search, facts, start, &visit)? {
            Outcome::Found { answer, is_sparse } => {
                if is_sparse {
                    self.rebuild_index(search.store, search.interval)?;
                }
                return Ok(answer);
            }
            Outcome::Distrusted => self.rebuild_index(search.store, search.interval)?,
        }
        self.visit_behind(search, facts, from, visit)
    }

    /// Walks from the batch at `position` to the end that `facts` know, and gives `visit` each batch
    /// until it answers.
    fn visit_behind<T>(
        &self,
        search: Search<'_>,
        facts: &SegmentFacts,
        position: u64,
        visit: impl Fn(u64, &BatchHeader) -> Option<T>,
    ) -> Result<Option<T>, StorageError> {
        let start = Start { position, entry: None, is_from_file: false };
        match self.visit_at(search, facts, start, &visit)? {
            Outcome::Found { answer, .. } => Ok(answer),
            Outcome::Distrusted => unreachable!("a walk without an entry trusts its start"),
        }
    }

    fn start_before(
        &self,
        search: Search<'_>,
        facts: &SegmentFacts,
        from: u64,
        is_before: impl Fn(OffsetEntry) -> bool,
    ) -> Start {
        let limit = facts.next_offset - facts.base_offset;
        let is_usable = |entry: OffsetEntry| {
            u64::from(entry.position) < facts.bytes
                && OffsetDelta::new(i64::from(entry.relative)) < limit
                && is_before(entry)
        };
        let loaded = self.look(|live| {
            live.index.as_ref().map(|index| {
                let behind = index.offsets.partition_point(|entry| is_usable(*entry));
                behind.checked_sub(1).map(|last| index.offsets[last])
            })
        });
        let is_from_file = loaded.is_none() && facts.bytes - from > search.interval;
        let entry = match loaded {
            Some(entry) => entry,
            None if is_from_file => self.search_file(search.store, is_usable),
            None => None,
        };
        match entry {
            Some(entry) if u64::from(entry.position) > from => {
                Start { position: u64::from(entry.position), entry: Some(entry), is_from_file }
            }
            _ => Start { position: from, entry: None, is_from_file },
        }
    }

    fn search_file(
        &self,
        store: &SegmentStore,
        is_usable: impl Fn(OffsetEntry) -> bool,
    ) -> Option<OffsetEntry> {
        let file = store.open_file(self.key(FileKind::OffsetIndex)).ok()?;
        // An index that can't be read is none.
        search(&*file, is_usable).ok().flatten()
    }

    fn visit_at<T>(
        &self,
        search: Search<'_>,
        facts: &SegmentFacts,
        start: Start,
        visit: &impl Fn(u64, &BatchHeader) -> Option<T>,
    ) -> Result<Outcome<T>, StorageError> {
        let file = search
            .store
            .open_file(self.key(FileKind::Log))
            .map_err(|error| self.read_failed(error))?;
        let chunk_bytes = search.store.options.walk_bytes;
        let mut walk = Walk::new(&*file, start.position, facts.bytes, chunk_bytes);
        let mut entry = start.entry;
        let mut largest = 0;
        let mut is_sparse = false;
        loop {
            let step = match walk.step() {
                Err(WalkError::Broken { .. }) if entry.is_some() => return Ok(Outcome::Distrusted),
                step => step.map_err(|error| self.walk_failed(error))?,
            };
            let Some((position, batch)) = step else {
                return Ok(Outcome::Found { answer: None, is_sparse });
            };
            if entry.take().is_some_and(|entry| !entry.names(self.base_offset, &batch)) {
                return Ok(Outcome::Distrusted);
            }
            if let Some(answer) = visit(position, &batch) {
                return Ok(Outcome::Found { answer: Some(answer), is_sparse });
            }
            largest = batch.size.max(largest);
            let farthest = SPARSE_FACTOR * (search.interval + largest);
            is_sparse |= start.is_from_file && position - start.position > farthest;
        }
    }
}
