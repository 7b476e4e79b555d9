//! The two passes over the journal: first the rows, then the batches.
//!
//! What becomes of a batch depends on rows that may stand behind it: a removal, a trim, a newer
//! epoch. So all rows are read before the first batch is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId};
use strandline_records::SealedBatches;
use strandline_storage::{Durability, LogSettings};

use super::report::{OpenError, RecoveryReport};
use super::table::{EntryFacts, EntryPlace, EntryVerdict};
use crate::journal::GroupSequence;
use crate::journal::group::{AppendHead, Entry, Group, WrittenBytes};
use crate::rows::{RowMap, Rows};
use crate::segment::{Append, Placement, SegmentFacts, SegmentLog, SegmentStore};
use crate::tables::{self, EpochRow};

/// The settings of a log while its batches go where they were: nothing is decided by them.
const SETTINGS: LogSettings = LogSettings {
    segment_bytes: ByteCount::new(u64::MAX),
    segment_age: Duration::MAX,
    index_interval_bytes: ByteCount::kib(4),
    durability: Durability::Commit,
};

/// The first pass: all rows as of the end of the journal, and what they take back.
#[derive(Debug)]
pub(super) struct Facts {
    rows: Rows,
    /// Where a log that the journal touches ended in the snapshot.
    ends: BTreeMap<PartitionId, Offset>,
    snapshot: GroupSequence,
    /// Epochs that begin in the journal, in its order.
    epochs: BTreeMap<PartitionId, Vec<EpochRow>>,
    /// Segments that a trim dropped.
    dropped: BTreeSet<(PartitionId, Offset)>,
}

impl Facts {
    pub(super) fn new(rows: RowMap, snapshot: GroupSequence) -> Self {
        Self {
            rows: Rows::from_map(rows),
            ends: BTreeMap::new(),
            snapshot,
            epochs: BTreeMap::new(),
            dropped: BTreeSet::new(),
        }
    }

    pub(super) fn read(&mut self, group: &Group) -> Result<(), OpenError> {
        for entry in &group.entries {
            match entry {
                Entry::Append(head, _) | Entry::Written(head, _) => {
                    self.note_end(head.partition);
                }
                Entry::Put(table, key, value) => {
                    if *table == tables::EPOCHS {
                        self.note_epoch(key, value)?;
                    }
                    if *table == tables::LOG_STARTS {
                        self.note_end(tables::key_partition(key).ok_or_else(unreadable)?);
                    }
                    // Copied: the group is much larger.
                    let key = (*table, Bytes::copy_from_slice(key));
                    self.rows.change(key, Some(Bytes::copy_from_slice(value)));
                }
                Entry::Delete(table, key) => {
                    if *table == tables::SEGMENTS {
                        let segment = tables::parse_segment_key(key).ok_or_else(unreadable)?;
                        self.note_end(segment.0);
                        self.dropped.insert(segment);
                    }
                    self.rows.change((*table, key.clone()), None);
                }
                Entry::Checkpoint(sequence) if *sequence > self.snapshot => {
                    let (named, found) = (sequence.0, self.snapshot.0);
                    return Err(OpenError::damaged(format!(
                        "the snapshot is an old one (of group {found}, the last was of {named})"
                    )));
                }
                Entry::Checkpoint(_) => {}
            }
        }
        Ok(())
    }

    fn note_epoch(&mut self, key: &[u8], value: &[u8]) -> Result<(), OpenError> {
        let id = tables::key_partition(key).ok_or_else(unreadable)?;
        let row = EpochRow::parse(value).ok_or_else(unreadable)?;
        self.epochs.entry(id).or_default().push(row);
        Ok(())
    }

    /// Before the first change of a log: where the snapshot says that it ends.
    fn note_end(&mut self, id: PartitionId) {
        let rows = &self.rows;
        self.ends.entry(id).or_insert_with(|| rows.end(id));
    }

    pub(super) fn into_rows(self) -> RowMap {
        self.rows.into_map()
    }
}

/// The second pass: batches go to their segments.
#[derive(Debug)]
pub(super) struct Batches {
    rows: Rows,
    ends: BTreeMap<PartitionId, Offset>,
    epochs: BTreeMap<PartitionId, Vec<EpochRow>>,
    dropped: BTreeSet<(PartitionId, Offset)>,
    store: Arc<SegmentStore>,
    logs: BTreeMap<PartitionId, Replayed>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    replayed: u64,
    bytes: u64,
    cut: u64,
}

/// A log that has entries in the journal.
#[derive(Debug)]
struct Replayed {
    removed: bool,
    /// What the rows say of its segments.
    facts: Vec<SegmentFacts>,
    /// The end reached so far.
    end: Offset,
    cut: bool,
    /// Opened for the first batch that is accepted.
    log: Option<SegmentLog>,
}

impl Batches {
    pub(super) fn new(facts: Facts, store: &Arc<SegmentStore>) -> Self {
        Self {
            rows: facts.rows,
            ends: facts.ends,
            epochs: facts.epochs,
            dropped: facts.dropped,
            store: Arc::clone(store),
            logs: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    pub(super) fn read(&mut self, group: &Group) -> Result<(), OpenError> {
        let mut accepted = Vec::new();
        for entry in &group.entries {
            let (head, found) = match entry {
                Entry::Append(head, bytes) => (head, Found::InJournal(bytes)),
                Entry::Written(head, bytes) => (head, Found::InSegment(*bytes)),
                Entry::Put(..) | Entry::Delete(..) | Entry::Checkpoint(_) => continue,
            };
            match self.decide(head) {
                EntryVerdict::Skip => {}
                EntryVerdict::Drop | EntryVerdict::Cut => self.counts.cut += 1,
                EntryVerdict::Damage => return Err(contradiction(head)),
                EntryVerdict::Accept => accepted.push(self.accept(head, found)?),
            }
        }
        // Stable: the batches of a log stay in order, and go in as few writes as they can.
        accepted.sort_by_key(|accepted| accepted.id);
        let together = |a: &Accepted, b: &Accepted| a.id == b.id && a.is_written == b.is_written;
        for run in accepted.chunk_by(together) {
            self.write(run)?;
        }
        Ok(())
    }

    /// The batches of an entry, from where they are.
    fn accept(&self, head: &AppendHead, found: Found<'_>) -> Result<Accepted, OpenError> {
        let place = Placement { segment: head.segment, position: head.position };
        let (bytes, is_written) = match found {
            Found::InJournal(bytes) => (bytes.clone(), false),
            Found::InSegment(written) => {
                let there = self.store.bytes_at(head.partition, place, written.length)?;
                // They were synced before the entry was written: if they are not there, something
                // durable is gone.
                let there = there.filter(|bytes| written.are(bytes));
                (there.ok_or_else(|| contradiction(head))?, true)
            }
        };
        let sealed = SealedBatches::from_sealed(bytes, head.appended_at);
        let batches = sealed.ok().flatten().ok_or_else(unreadable)?;
        Ok(Accepted { id: head.partition, place, batches, is_written })
    }

    fn decide(&mut self, head: &AppendHead) -> EntryVerdict {
        let id = head.partition;
        let overruled = self.is_overruled(head.leader_epoch, id, head.base_offset);
        let dropped = self.dropped.contains(&(id, head.segment));
        let (rows, ends) = (&self.rows, &self.ends);
        let log = self.logs.entry(id).or_insert_with(|| Replayed {
            removed: rows.is_removed(id),
            facts: rows.segments(id),
            end: ends.get(&id).copied().unwrap_or(Offset::ZERO),
            cut: false,
            log: None,
        });
        let facts = EntryFacts {
            removed: log.removed,
            dropped,
            overruled,
            cut: log.cut,
            place: place_of(head, log.end),
        };
        let verdict = facts.verdict();
        match verdict {
            EntryVerdict::Accept => log.end = head.next_offset,
            // What was dropped was there: the log goes on behind it.
            EntryVerdict::Skip => log.end = log.end.max(head.next_offset),
            EntryVerdict::Cut => log.cut = true,
            EntryVerdict::Drop | EntryVerdict::Damage => {}
        }
        verdict
    }

    /// Whether a newer epoch begins at or below `base_offset`.
    fn is_overruled(&self, epoch: LeaderEpoch, id: PartitionId, base_offset: Offset) -> bool {
        let epochs = self.epochs.get(&id).map_or(&[][..], Vec::as_slice);
        epochs.iter().any(|row| row.epoch > epoch && row.start_offset <= base_offset)
    }

    fn write(&mut self, run: &[Accepted]) -> Result<(), OpenError> {
        let Some(Accepted { id, batches: first, is_written, .. }) = run.first() else {
            return Ok(());
        };
        let replayed = self.logs.get_mut(id).expect("its entries were decided on");
        let appends: Vec<_> = run
            .iter()
            .map(|Accepted { place, batches, .. }| Append { place: *place, batches })
            .collect();
        self.counts.replayed += appends.len() as u64;
        self.counts.bytes += run.iter().map(|one| one.batches.size().get()).sum::<u64>();
        let log = match &mut replayed.log {
            Some(log) => log,
            closed => {
                let facts = std::mem::take(&mut replayed.facts);
                let begin = first.base_offset();
                closed.insert(self.store.open_to_replay(*id, facts, begin, SETTINGS)?)
            }
        };
        if *is_written {
            log.adopt(&appends)?;
        } else {
            log.write(&appends)?;
        }
        // A file with unsynced bytes stays open: with many logs they would be more than there may be.
        if self.store.has_many_unsynced()
            && let Some(failure) = self.store.take_unsynced().run().into_iter().next()
        {
            return Err(failure.error.into());
        }
        Ok(())
    }

    /// The rows with what the segments hold now.
    pub(super) fn finish(mut self, report: &mut RecoveryReport) -> Result<RowMap, OpenError> {
        for (id, replayed) in self.logs {
            let Some(log) = replayed.log else { continue };
            for facts in log.end_replay()? {
                self.rows.put_segment(id, &facts);
            }
        }
        report.batches_replayed = self.counts.replayed;
        report.bytes_replayed = self.counts.bytes;
        report.batches_cut = self.counts.cut;
        Ok(self.rows.into_map())
    }
}

/// Where the batches of an entry are.
#[derive(Clone, Copy, Debug)]
enum Found<'a> {
    InJournal(&'a Bytes),
    InSegment(WrittenBytes),
}

/// Batches that go to their segment, or are there.
#[derive(Debug)]
struct Accepted {
    id: PartitionId,
    place: Placement,
    batches: SealedBatches,
    is_written: bool,
}

fn contradiction(head: &AppendHead) -> OpenError {
    let (id, base, next) = (head.partition, head.base_offset, head.next_offset);
    OpenError::damaged(format!(
        "journal and log contradict each other. log=`{id}`, batch=`{base}..{next}`"
    ))
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

/// The checksums are right and the bytes mean nothing: they are of no version that we know.
fn unreadable() -> OpenError {
    OpenError::damaged("the journal holds an entry that this version can't read")
}
