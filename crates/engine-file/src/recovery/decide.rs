//! What the rows, read to the end of the journal, say of its append entries.

use std::collections::{BTreeMap, BTreeSet};

use strandline_model::{LeaderEpoch, Offset, PartitionId};

use super::table::{EntryFacts, EntryPlace, EntryVerdict};
use crate::journal::group::{AppendHead, Entry};
use crate::rows::Rows;
use crate::tables::{self, EpochRow};

/// Decides on entry after entry, in the order of the journal.
#[derive(Debug)]
pub(super) struct Decisions {
    pub(super) rows: Rows,
    /// Where a log that the journal touches ended in the snapshot.
    pub(super) ends: BTreeMap<PartitionId, Offset>,
    /// Epochs that begin in the journal, in its order.
    pub(super) epochs: BTreeMap<PartitionId, Vec<EpochRow>>,
    /// Segments that a trim dropped.
    pub(super) dropped: BTreeSet<(PartitionId, Offset)>,
    logs: BTreeMap<PartitionId, Progress>,
}

/// How far the entries of a log have brought it.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The end reached so far.
    end: Offset,
    cut: bool,
}

impl Decisions {
    pub(super) const fn new(
        rows: Rows,
        ends: BTreeMap<PartitionId, Offset>,
        epochs: BTreeMap<PartitionId, Vec<EpochRow>>,
        dropped: BTreeSet<(PartitionId, Offset)>,
    ) -> Self {
        Self { rows, ends, epochs, dropped, logs: BTreeMap::new() }
    }

    /// Lets the journal be read again from its start.
    pub(super) fn begin_again(&mut self) {
        self.logs.clear();
    }

    /// Where the entries that were decided on have brought a log; `None`: there was none of it.
    pub(super) fn end_of(&self, id: PartitionId) -> Option<Offset> {
        self.logs.get(&id).map(|progress| progress.end)
    }

    /// `damaged`: no segment takes batches of the log any more.
    pub(super) fn decide(&mut self, head: &AppendHead, damaged: bool) -> EntryVerdict {
        let id = head.partition;
        let Progress { end, cut } = self.progress(id);
        let facts = EntryFacts {
            removed: self.rows.is_removed(id),
            dropped: self.dropped.contains(&(id, head.segment)),
            overruled: self.is_overruled(head.leader_epoch, id, head.base_offset),
            damaged,
            cut,
            place: place_of(head, end),
        };
        let verdict = facts.verdict();
        let progress = match verdict {
            EntryVerdict::Accept | EntryVerdict::Rescue => Progress { end: head.next_offset, cut },
            // What was dropped was there: the log goes on behind it.
            EntryVerdict::Skip => Progress { end: end.max(head.next_offset), cut },
            EntryVerdict::Cut => Progress { end, cut: true },
            EntryVerdict::Drop | EntryVerdict::Damage => Progress { end, cut },
        };
        self.logs.insert(id, progress);
        verdict
    }

    /// Takes note of what is no append entry: the row of a segment says where its log went on, which a
    /// repair may have moved.
    pub(super) fn pass(&mut self, entry: &Entry) {
        let Entry::Put(tables::SEGMENTS, key, value) = entry else { return };
        let facts = tables::parse_segment(key, value);
        if let Some((id, facts)) = tables::key_partition(key).zip(facts) {
            let progress = self.progress(id);
            let end = progress.end.max(facts.next_offset);
            self.logs.insert(id, Progress { end, ..progress });
        }
    }

    fn progress(&self, id: PartitionId) -> Progress {
        let begin = || self.ends.get(&id).copied().unwrap_or(Offset::ZERO);
        self.logs.get(&id).copied().unwrap_or_else(|| Progress { end: begin(), cut: false })
    }

    /// Whether a newer epoch begins at or below `base_offset`.
    fn is_overruled(&self, epoch: LeaderEpoch, id: PartitionId, base_offset: Offset) -> bool {
        let epochs = self.epochs.get(&id).map_or(&[][..], Vec::as_slice);
        epochs.iter().any(|row| row.epoch > epoch && row.start_offset <= base_offset)
    }
}

fn place_of(head: &AppendHead, end: Offset) -> EntryPlace {
    if head.base_offset == end {
        EntryPlace::At
    } else if head.base_offset > end {
        EntryPlace::Behind
    } else if head.next_offset <= end {
        EntryPlace::Before
    } else {
        EntryPlace::Across
    }
}
