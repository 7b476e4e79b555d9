//! A folder looked at without changing anything: what the next start would find, and whether it is
//! whole.
//!
//! The same passes read the journal as at a start, and the same decisions are asked; only that nothing
//! is written. What the journal would write again need not be in the segments yet, so a segment is
//! checked up to what its row believes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use strandline_model::PartitionId;
use strandline_storage::{
    BoxFuture, CommitError, ErrorKind, Finding, Key, LossCertainty, Lost, MetaBatch, MetaStore,
    Page, Quarantined, StorageError, Table, Value,
};

use super::decide::Decisions;
use super::replay::Facts;
use super::table::EntryVerdict;
use super::{OpenError, failed, has_others};
use crate::disk::{Disk, DiskLock};
use crate::folder_lock;
use crate::journal::group::{Entry, Group};
use crate::journal::reader::{Journal, WalkStart};
use crate::progress::OpenProgress;
use crate::rows::Rows;
use crate::segment::{Checked, Placement, SegmentName, SegmentOptions, SegmentStore, worst_of};
use crate::snapshot::{self, LoadedSnapshot};
use crate::tables::TableNumber;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something derived or superfluous: it is made anew, or goes, by itself.
    Note,
    /// Something durable is gone or wrong.
    Damage,
}

/// What a check of one log found.
#[derive(Clone, Debug, Default)]
pub struct LogCheck {
    /// What was found, with how much it matters.
    pub findings: Vec<(Severity, Finding)>,
    /// Segments that its rows name.
    pub segments: usize,
    /// Bytes of batches that were read and are good.
    pub bytes: u64,
}

/// What the journal holds behind the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSeen {
    /// Batches that the next start writes again.
    pub batches: u64,
    /// Groups at its end that were written in part; nobody was told that they are durable.
    pub torn_groups: u64,
}

/// A folder that nobody serves, as it is. See the [module](self).
pub struct Inspection {
    pub(crate) rows: Rows,
    pub(crate) segments: Arc<SegmentStore>,
    /// What journal and segments say against each other.
    contradictions: BTreeMap<PartitionId, Vec<Finding>>,
    /// Segments that the journal has batches of.
    expected: BTreeMap<PartitionId, BTreeSet<SegmentName>>,
    journal: JournalSeen,
    _lock: DiskLock,
}

impl Inspection {
    /// Whether no engine has ever written to the folder that `disk` is: a start would begin a new one.
    /// Blocks.
    pub fn is_new(disk: &Arc<dyn Disk>) -> Result<bool, OpenError> {
        let segments = SegmentStore::new(Arc::clone(disk), SegmentOptions::production());
        match snapshot::load(&**disk).map_err(failed("read snapshot"))? {
            LoadedSnapshot::None => Ok(!has_others(&**disk, &segments)?),
            LoadedSnapshot::Found(..) | LoadedSnapshot::Newer(_) | LoadedSnapshot::Damaged => {
                Ok(false)
            }
        }
    }

    /// Reads snapshot and journal of the folder that `disk` is. Blocks.
    ///
    /// Fails as a start would: when the folder is in use, newer, or damaged beyond one log.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self, OpenError> {
        let lock = folder_lock::take(&*disk)?;
        let segments = SegmentStore::new(Arc::clone(&disk), SegmentOptions::production());
        let (head, rows) = match snapshot::load(&*disk).map_err(failed("read snapshot"))? {
            LoadedSnapshot::Found(head, rows, _) => (head, rows),
            LoadedSnapshot::Newer(version) => return Err(OpenError::newer(version)),
            LoadedSnapshot::Damaged => {
                return Err(OpenError::damaged("its snapshot is not readable"));
            }
            LoadedSnapshot::None if has_others(&*disk, &segments)? => {
                return Err(OpenError::damaged(
                    "its snapshot is missing, but journal or logs are there",
                ));
            }
            LoadedSnapshot::None => return Err(OpenError::damaged("it holds nothing of ours")),
        };
        let journal = Journal::open(&*disk)?;
        let start = WalkStart { position: head.position, sequence: head.sequence.next() };
        let mut facts = Facts::new(rows, head.sequence);
        let nobody_asks = OpenProgress::default();
        let end = journal.walk(start, &nobody_asks, |group| facts.read(&group))?;
        let mut looked = Looked {
            decisions: facts.into_decisions(),
            segments: &segments,
            contradictions: BTreeMap::new(),
            expected: BTreeMap::new(),
            batches: 0,
        };
        journal.walk(start, &nobody_asks, |group| looked.read(&group))?;
        let Looked { decisions, contradictions, expected, batches, .. } = looked;
        let journal = JournalSeen { batches, torn_groups: end.torn_groups };
        let rows = decisions.rows;
        Ok(Self { rows, segments, contradictions, expected, journal, _lock: lock })
    }

    /// What the journal holds behind the snapshot.
    pub const fn journal(&self) -> JournalSeen {
        self.journal
    }

    /// Every partition that owns bytes or rows.
    pub fn list(&self) -> Result<BTreeSet<PartitionId>, StorageError> {
        let mut ids: BTreeSet<_> = self.rows.partitions().into_iter().collect();
        ids.extend(self.expected.keys());
        self.segments.add_listed(&mut ids)?;
        Ok(ids)
    }

    /// Whether the rows say what is whole of a log: a folder that somebody put there has none.
    pub fn has_rows(&self, id: PartitionId) -> bool {
        self.rows.has_segments(id)
    }

    /// The logs in quarantine.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.rows.list_quarantined(&self.segments)
    }

    /// The logs of which something durable is gone, by a look at what is there, and those that could not
    /// be looked at.
    pub fn lost(&self) -> Vec<Lost> {
        let mut lost = Vec::new();
        for id in self.rows.partitions() {
            if self.rows.is_removed(id) || self.rows.quarantined(id).is_some() {
                continue;
            }
            let losses = self.segments.losses_of(id, &self.rows.segments(id));
            let (what, certainty) = match (self.rows.damage(id), losses) {
                (Some(damage), _) => (damage.describe(id), LossCertainty::Gone),
                (None, Err(error)) => (error.in_one_line(), LossCertainty::Unreadable),
                (None, Ok(losses)) => match worst_of(id, &losses) {
                    Some(loss) => loss,
                    None => continue,
                },
            };
            lost.push(Lost { id, what, certainty });
        }
        lost
    }

    /// The paths of what lies among the logs and is none of ours.
    pub fn foreign(&self) -> Vec<String> {
        self.segments.foreign()
    }

    /// Reads and checks everything of a log. One that is removed or in quarantine is left alone.
    pub fn verify(&self, id: PartitionId) -> LogCheck {
        if self.rows.is_removed(id) || self.rows.quarantined(id).is_some() {
            return LogCheck::default();
        }
        let facts = self.rows.segments(id);
        let none = BTreeSet::new();
        let expected = self.expected.get(&id).unwrap_or(&none);
        // One that can't be read is a finding: the others are checked all the same.
        let checked = self.segments.check_closed(id, &facts, expected).unwrap_or_else(|error| {
            let message = error.in_one_line();
            let finding = Finding { chunk: String::new(), position: 0, message };
            Checked { damage: vec![finding], ..Checked::default() }
        });
        let damage = self.rows.damage(id).map(|damage| damage.finding(id));
        let contradictions = self.contradictions.get(&id).into_iter().flatten().cloned();
        let all = damage.into_iter().chain(contradictions).chain(checked.damage);
        let all = all.map(|finding| (Severity::Damage, finding));
        let notes = checked.notes.into_iter().map(|finding| (Severity::Note, finding));
        let findings = all.chain(notes).collect();
        LogCheck { findings, segments: facts.len(), bytes: checked.bytes }
    }
}

/// The second pass over the journal: what a start would write again, and whether it could.
struct Looked<'a> {
    decisions: Decisions,
    segments: &'a SegmentStore,
    contradictions: BTreeMap<PartitionId, Vec<Finding>>,
    expected: BTreeMap<PartitionId, BTreeSet<SegmentName>>,
    batches: u64,
}

impl Looked<'_> {
    fn read(&mut self, group: &Group) -> Result<(), OpenError> {
        for entry in &group.entries {
            let (Entry::Append(head, _) | Entry::Written(head, _)) = entry else {
                self.decisions.pass(entry);
                continue;
            };
            let id = head.partition;
            let fault = match self.decisions.decide(head, false) {
                EntryVerdict::Skip
                | EntryVerdict::Rescue
                | EntryVerdict::Drop
                | EntryVerdict::Cut => continue,
                EntryVerdict::Damage => Some("batch in the journal overlaps what is there"),
                EntryVerdict::Accept => match entry {
                    Entry::Written(_, written) => {
                        let place = Placement { segment: head.segment, position: head.position };
                        let there = self.segments.bytes_at(id, place, written.length)?;
                        let is_there = there.is_some_and(|bytes| written.are(&bytes));
                        (!is_there).then_some("batch that the journal names is not in its segment")
                    }
                    _ => None,
                },
            };
            self.batches += 1;
            self.expected.entry(id).or_default().insert(SegmentName::appended(head.segment));
            if let Some(fault) = fault {
                let (base, next) = (head.base_offset, head.next_offset);
                let message = format!("{fault}. batch=`{base}..{next}`");
                let chunk = format!("{:020}.log", head.segment.get());
                let finding = Finding { chunk, position: head.position, message };
                self.contradictions.entry(id).or_default().push(finding);
            }
        }
        Ok(())
    }
}

/// The rows of the metadata store, to be read only.
impl MetaStore for Inspection {
    fn get(&self, table: Table, key: Key) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let found = self.rows.get(TableNumber::of(table), &key).cloned();
        Box::pin(async move { Ok(found) })
    }

    fn scan(
        &self,
        table: Table,
        after: Option<Key>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Page, StorageError>> {
        let page = self.rows.scan(TableNumber::of(table), after.as_deref(), limit);
        Box::pin(async move { Ok(page) })
    }

    fn commit(&self, _: MetaBatch) -> BoxFuture<'_, Result<(), CommitError>> {
        let refused = StorageError::new(ErrorKind::Invalid, "the folder is only looked at");
        Box::pin(async move { Err(refused.into()) })
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection").field("journal", &self.journal).finish_non_exhaustive()
    }
}
