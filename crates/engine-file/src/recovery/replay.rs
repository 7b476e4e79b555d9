//! The two passes over the journal: first the rows, then the batches.
//!
//! What becomes of a batch depends on rows that may stand behind it: a removal, a trim, a newer
//! epoch. So all rows are read before the first batch is written.

use std::collections::btree_map::Entry as MapEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strandline_model::{ByteCount, Offset, PartitionId};
use strandline_records::SealedBatches;
use strandline_storage::{Durability, ErrorKind, LogSettings, StorageError, is_lost};

use super::decide::Decisions;
use super::report::{OpenError, RecoveryReport};
use super::table::EntryVerdict;
use crate::journal::GroupSequence;
use crate::journal::group::{AppendHead, Entry, Group, WrittenBytes};
use crate::progress::{OpenProgress, OpenWork};
use crate::rows::{RowMap, Rows};
use crate::segment::{Append, Placement, SegmentLog, SegmentStore, SyncFailure};
use crate::tables::{self, EpochRow};

/// The settings of a log while its batches go where they were: nothing is decided by them.
const SETTINGS: LogSettings = LogSettings {
    segment_bytes: ByteCount::new(u64::MAX),
    segment_records: u64::MAX,
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

    pub(super) fn into_decisions(self) -> Decisions {
        let Self { rows, ends, epochs, dropped, .. } = self;
        Decisions::new(rows, ends, epochs, dropped)
    }

    pub(super) fn into_rows(self) -> RowMap {
        self.rows.into_map()
    }
}

/// The second pass: batches go to their segments.
#[derive(Debug)]
pub(super) struct Batches {
    decisions: Decisions,
    store: Arc<SegmentStore>,
    /// Logs with batches that were accepted.
    logs: BTreeMap<PartitionId, Replayed>,
    /// Logs that can't be brought back, and why: nothing goes to their segments any more.
    damaged: BTreeMap<PartitionId, String>,
    cut: u64,
    progress: Arc<OpenProgress>,
}

/// A log that has accepted entries in the journal.
#[derive(Debug)]
struct Replayed {
    log: SegmentLog,
    batches: u64,
    bytes: u64,
}

impl Batches {
    pub(super) fn new(
        facts: Facts,
        store: &Arc<SegmentStore>,
        progress: &Arc<OpenProgress>,
    ) -> Self {
        Self {
            decisions: facts.into_decisions(),
            store: Arc::clone(store),
            logs: BTreeMap::new(),
            damaged: BTreeMap::new(),
            cut: 0,
            progress: Arc::clone(progress),
        }
    }

    pub(super) fn read(&mut self, group: &Group) -> Result<(), OpenError> {
        let mut accepted = Vec::new();
        for entry in &group.entries {
            let (head, found) = match entry {
                Entry::Append(head, bytes) => (head, Found::InJournal(bytes)),
                Entry::Written(head, bytes) => (head, Found::InSegment(*bytes)),
                Entry::Put(..) | Entry::Delete(..) | Entry::Checkpoint(_) => {
                    self.decisions.pass(entry);
                    continue;
                }
            };
            if self.damaged.contains_key(&head.partition) {
                continue;
            }
            let batches = match self.decisions.decide(head, false) {
                EntryVerdict::Skip | EntryVerdict::Rescue => continue,
                EntryVerdict::Drop | EntryVerdict::Cut => {
                    self.cut += 1;
                    continue;
                }
                EntryVerdict::Damage => Err(contradiction(head, "overlaps what is there")),
                EntryVerdict::Accept => self.batches_of(head, found)?,
            };
            match batches {
                Ok(batches) => accepted.push(batches),
                Err(reason) => self.give_up(head.partition, reason),
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

    /// From now on nothing of the log is touched. What it had been given is beyond what its rows name.
    fn give_up(&mut self, id: PartitionId, reason: String) {
        self.logs.remove(&id);
        self.damaged.insert(id, reason);
    }

    /// The batches of an entry, from where they are; or why the log is damaged.
    fn batches_of(
        &self,
        head: &AppendHead,
        found: Found<'_>,
    ) -> Result<Result<Accepted, String>, OpenError> {
        let place = Placement { segment: head.segment, position: head.position };
        let (bytes, is_written) = match found {
            Found::InJournal(bytes) => (bytes.clone(), false),
            Found::InSegment(written) => {
                let there = match self.store.bytes_at(head.partition, place, written.length) {
                    Ok(there) => there,
                    Err(error) => return Ok(Err(damage_of(error)?)),
                };
                // They were synced before the entry was written: if they are not there, something
                // durable is gone.
                match there.filter(|bytes| written.are(bytes)) {
                    Some(bytes) => (bytes, true),
                    None => return Ok(Err(contradiction(head, "is not in its segment"))),
                }
            }
        };
        let sealed = SealedBatches::from_sealed(bytes, head.appended_at);
        let batches = sealed.ok().flatten().ok_or_else(unreadable)?;
        Ok(Ok(Accepted { id: head.partition, place, batches, is_written }))
    }

    /// Writes batches of one log to their segments.
    fn write(&mut self, run: &[Accepted]) -> Result<(), OpenError> {
        let Some(&Accepted { id, .. }) = run.first() else { return Ok(()) };
        if self.damaged.contains_key(&id) {
            return Ok(());
        }
        if let Err(error) = self.try_write(id, run) {
            self.give_up(id, damage_of(error)?);
        }
        // A file with unsynced bytes stays open: with many logs they would be more than there may be.
        if self.store.has_many_unsynced() {
            self.sync()?;
        }
        Ok(())
    }

    /// Makes what was written until now durable.
    fn sync(&mut self) -> Result<(), OpenError> {
        let unsynced = self.store.take_unsynced();
        let progress = Arc::clone(&self.progress);
        let failures = progress.aside(OpenWork::Sync, unsynced.len() as u64, || {
            unsynced.run_at_once(|| progress.advance(1))
        });
        for SyncFailure { segment, error, .. } in failures {
            match segment {
                Some((id, _)) => self.give_up(id, damage_of(error)?),
                None => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn try_write(&mut self, id: PartitionId, run: &[Accepted]) -> Result<(), StorageError> {
        let appends: Vec<_> = run
            .iter()
            .map(|Accepted { place, batches, .. }| Append { place: *place, batches })
            .collect();
        let replayed = match self.logs.entry(id) {
            MapEntry::Occupied(there) => there.into_mut(),
            MapEntry::Vacant(place) => {
                let facts = self.decisions.rows.segments(id);
                let begin = run[0].batches.base_offset();
                let log = self.store.open_to_replay(id, facts, begin, SETTINGS)?;
                place.insert(Replayed { log, batches: 0, bytes: 0 })
            }
        };
        if run[0].is_written {
            replayed.log.adopt(&appends)?;
        } else {
            replayed.log.write(&appends)?;
        }
        replayed.batches += appends.len() as u64;
        replayed.bytes += run.iter().map(|one| one.batches.size().get()).sum::<u64>();
        Ok(())
    }

    /// Cuts what no entry named, and brings what the segments hold now into the rows. Returns them, with
    /// the logs that are damaged.
    pub(super) fn finish(
        mut self,
        report: &mut RecoveryReport,
    ) -> Result<(Decisions, BTreeMap<PartitionId, String>), OpenError> {
        let mut ended = Vec::new();
        for (id, Replayed { log, batches, bytes }) in std::mem::take(&mut self.logs) {
            match log.end_replay() {
                Ok(segments) => ended.push((id, segments, batches, bytes)),
                Err(error) => self.give_up(id, damage_of(error)?),
            }
        }
        // Before the rows change: those of a damaged log stay.
        self.sync()?;
        ended.retain(|(id, ..)| !self.damaged.contains_key(id));
        for (id, segments, batches, bytes) in ended {
            for facts in segments {
                self.decisions.rows.put_segment(id, &facts);
            }
            report.batches_replayed += batches;
            report.bytes_replayed += bytes;
        }
        report.batches_cut = self.cut;
        Ok((self.decisions, self.damaged))
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

fn contradiction(head: &AppendHead, what: &str) -> String {
    let (base, next) = (head.base_offset, head.next_offset);
    format!("journal and log contradict each other: batch `{base}..{next}` {what}")
}

/// What the disk said, when it is that something is lost.
pub(super) fn loss_of(error: &StorageError) -> Option<&io::Error> {
    error.source()?.downcast_ref().filter(|cause| is_lost(cause))
}

/// Why the log is damaged, if that is what the error says. Others are of the process or of the whole
/// disk: a later start may find everything, so this one changes nothing.
fn damage_of(error: StorageError) -> Result<String, StorageError> {
    if let Some(loss) = loss_of(&error) {
        return Ok(format!("{error}: {loss}"));
    }
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Missing | ErrorKind::Invalid => Ok(error.to_string()),
        ErrorKind::Unavailable | ErrorKind::Closed | ErrorKind::Fenced | ErrorKind::Full => {
            Err(error)
        }
    }
}

/// The checksums are right and the bytes mean nothing: they are of no version that we know.
fn unreadable() -> OpenError {
    OpenError::damaged("the journal holds an entry that this version can't read")
}
