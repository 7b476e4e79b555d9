//! What clients were told, and when: a count of the disk's operations.
//!
//! What was answered when the disk had seen `n` of them holds for every crash after the `n`-th; what
//! was asked for before it may have happened, whether answered or not.

use std::collections::BTreeMap;

use strandline_model::{Timestamp, TopicId};

/// What the workload is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Start,
    Create,
    /// Appends, which close segments too.
    Produce,
    /// Closes active segments and drops the oldest.
    Retention,
    /// Writes segments anew without what is superseded.
    Compaction,
    /// Appends to files that fail, or on a full disk.
    Fault,
    /// Records deleted by request.
    Trim,
    /// Positions of groups.
    Commit,
    Delete,
    /// A deletion taken back.
    Undelete,
    /// The background work of deletions.
    Purge,
    /// A topic's rows go without its logs, which are set aside.
    Quarantine,
    /// The rows are there again, and so are the logs.
    Release,
    /// What was set aside goes.
    PurgeStrangers,
    Stop,
}

impl Phase {
    pub(crate) const ALL: [Self; 15] = [
        Self::Start,
        Self::Create,
        Self::Produce,
        Self::Retention,
        Self::Compaction,
        Self::Fault,
        Self::Trim,
        Self::Commit,
        Self::Delete,
        Self::Undelete,
        Self::Purge,
        Self::Quarantine,
        Self::Release,
        Self::PurgeStrangers,
        Self::Stop,
    ];
}

/// When something was asked for, and when the answer came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    pub(crate) begun: usize,
    pub(crate) answered: Option<usize>,
}

impl Deed {
    pub(crate) const fn begun(now: usize) -> Self {
        Self { begun: now, answered: None }
    }

    /// It has happened for sure.
    pub(crate) fn is_sure(self, cut: usize) -> bool {
        self.answered.is_some_and(|at| at <= cut)
    }

    /// It may have happened.
    pub(crate) const fn is_possible(self, cut: usize) -> bool {
        self.begun <= cut
    }
}

/// A topic from its creation to its last deletion. Others of the same name are other lives.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) name: String,
    pub(crate) partition_count: u32,
    /// Known once it is created.
    pub(crate) id: Option<TopicId>,
    /// Its creation, its deletion, its return, … in turn. One whose rows are gone counts as deleted.
    pub(crate) changes: Vec<Deed>,
    /// When it was deleted last; `None` when nothing can bring it back.
    pub(crate) may_return_since: Option<Timestamp>,
    /// Since when its rows may be gone while its logs and positions are there.
    pub(crate) estranged: Option<Deed>,
    pub(crate) partitions: Vec<PartitionLife>,
    /// Positions by partition, in the order in which they were committed.
    pub(crate) positions: BTreeMap<u32, Vec<(i64, Deed)>>,
}

/// What a reader gets: offset, key and value, which a tombstone has none of.
pub(crate) type Found = (i64, String, Option<String>);

#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionLife {
    /// By offset. One record at a time is sent, so that each has the next offset.
    pub(crate) records: Vec<Slot>,
    /// Log starts that were asked for.
    pub(crate) trims: Vec<(i64, Deed)>,
    /// Compactions, and where the log ended when each began.
    pub(crate) compactions: Vec<(usize, Deed)>,
}

/// An offset, and what was sent that may stand there.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) key: String,
    /// More than one when what was sent first failed: nobody knows which of them is there until one was
    /// answered or seen.
    pub(crate) sent: Vec<(Option<String>, Deed)>,
}

impl Slot {
    pub(crate) fn of(key: &str, value: Option<String>, deed: Deed) -> Self {
        Self { key: key.to_owned(), sent: vec![(value, deed)] }
    }

    fn is_sure(&self, cut: usize) -> bool {
        self.sent.iter().any(|(_, deed)| deed.is_sure(cut))
    }

    fn is_possible(&self, cut: usize) -> bool {
        self.sent.iter().any(|(_, deed)| deed.is_possible(cut))
    }

    /// The values that may be found.
    fn allowed(&self, cut: usize) -> Vec<&Option<String>> {
        let of = |counts: fn(Deed, usize) -> bool| {
            let counted = self.sent.iter().filter(move |(_, deed)| counts(*deed, cut));
            counted.map(|(value, _)| value).collect::<Vec<_>>()
        };
        let sure = of(Deed::is_sure);
        if sure.is_empty() { of(Deed::is_possible) } else { sure }
    }

    fn is_tombstone(&self) -> bool {
        self.sent.iter().all(|(value, _)| value.is_none())
    }
}

impl PartitionLife {
    /// The bounds of the log start after a crash at `cut`.
    pub(crate) fn log_start_bounds(&self, cut: usize) -> (i64, i64) {
        let least = self.trims.iter().filter(|(_, deed)| deed.is_sure(cut));
        let most = self.trims.iter().filter(|(_, deed)| deed.is_possible(cut));
        (least.map(|trim| trim.0).max().unwrap_or(0), most.map(|trim| trim.0).max().unwrap_or(0))
    }

    /// The bounds of the log end after a crash at `cut`.
    pub(crate) fn end_bounds(&self, cut: usize) -> (usize, usize) {
        let count = |counts: &dyn Fn(&Slot) -> bool| {
            self.records.iter().rposition(counts).map_or(0, |last| last + 1)
        };
        (count(&|slot| slot.is_sure(cut)), count(&|slot| slot.is_possible(cut)))
    }

    /// What is wrong with what was found between a log start and an end after a crash at `cut`.
    pub(crate) fn fault(
        &self,
        found: &[Found],
        start: usize,
        end: usize,
        cut: usize,
    ) -> Option<String> {
        let mut found = found.iter().peekable();
        // Of keys of which a record is gone, the offset of the last such.
        let mut gone: BTreeMap<&str, usize> = BTreeMap::new();
        let mut there = Vec::new();
        for offset in start..end {
            let slot = &self.records[offset];
            let at = i64::try_from(offset).expect("short logs");
            match found.next_if(|(found, ..)| *found == at) {
                Some((_, key, value)) if *key == slot.key && slot.allowed(cut).contains(&value) => {
                    there.push((offset, &*slot.key));
                }
                Some(other) => return Some(format!("{other:?} is none of {slot:?}")),
                None if self.may_be_gone(offset, cut) => {
                    gone.insert(&slot.key, offset);
                }
                None => return Some(format!("nothing at {offset}: {slot:?}")),
            }
        }
        // A reader must not take an old value for the newest.
        let older =
            there.into_iter().find(|(offset, key)| gone.get(key).is_some_and(|at| at > offset));
        let stray = found.next();
        older
            .map(|(offset, key)| format!("{key} at {offset} is there, a newer one is gone"))
            .or_else(|| stray.map(|record| format!("{record:?} is out of order or bounds")))
    }

    /// Whether compaction may have removed a record: of its key there is a newer one, or it was a
    /// tombstone.
    fn may_be_gone(&self, offset: usize, cut: usize) -> bool {
        let begun = self.compactions.iter().filter(|(_, deed)| deed.is_possible(cut));
        let Some(end) = begun.map(|(end, _)| *end).max() else { return false };
        let slot = &self.records[offset];
        let mut newer = self.records.get(offset + 1..end).unwrap_or_default().iter();
        offset < end && (slot.is_tombstone() || newer.any(|other| other.key == slot.key))
    }
}

impl Life {
    pub(crate) fn must_be_there(&self, cut: usize) -> bool {
        self.possible_counts(cut).all(is_alive)
    }

    pub(crate) fn may_be_there(&self, cut: usize) -> bool {
        self.possible_counts(cut).any(is_alive)
    }

    pub(crate) fn is_there_now(&self) -> bool {
        is_alive(self.changes.len())
    }

    /// How many of the changes may have happened when the power goes at `cut`.
    fn possible_counts(&self, cut: usize) -> impl Iterator<Item = usize> {
        let sure = self.changes.iter().filter(|deed| deed.is_sure(cut)).count();
        let possible = self.changes.iter().filter(|deed| deed.is_possible(cut)).count();
        sure..=possible
    }

    /// The positions that a group may have; −1 for none.
    pub(crate) fn allowed_positions(&self, partition: u32, cut: usize) -> Vec<i64> {
        let committed = self.positions.get(&partition).map_or(&[][..], Vec::as_slice);
        let sure = committed.iter().rposition(|(_, deed)| deed.is_sure(cut));
        let possible = committed[sure.unwrap_or(0)..].iter();
        let mut allowed: Vec<_> =
            possible.filter(|(_, deed)| deed.is_possible(cut)).map(|(at, _)| *at).collect();
        if sure.is_none() {
            allowed.push(-1);
        }
        allowed
    }
}

/// Whether a topic is there after so many changes.
const fn is_alive(changes: usize) -> bool {
    changes % 2 == 1
}

#[derive(Debug, Default)]
pub(crate) struct Promises {
    pub(crate) lives: Vec<Life>,
    /// When which phase began.
    pub(crate) phases: Vec<(usize, Phase)>,
    /// Records that compaction removed, of whatever lives.
    pub(crate) compacted: u64,
    /// Appends that failed.
    pub(crate) failed: u64,
    /// The time at which the workload ended.
    pub(crate) ended_at: Timestamp,
}

impl Promises {
    /// What was under way when the disk had seen `cut` operations.
    pub(crate) fn phase_at(&self, cut: usize) -> Phase {
        let begun = self.phases.iter().rev().find(|(at, _)| *at < cut);
        begun.map_or(Phase::Start, |(_, phase)| *phase)
    }

    /// The life that has the name now, if any.
    pub(crate) fn living(&self, name: &str) -> Option<usize> {
        self.lives.iter().rposition(|life| life.name == name && life.is_there_now())
    }
}
