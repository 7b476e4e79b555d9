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
    /// Records deleted by request.
    Trim,
    /// Positions of groups.
    Commit,
    Delete,
    /// A deletion taken back.
    Undelete,
    /// The background work of deletions.
    Purge,
    Stop,
}

impl Phase {
    pub(crate) const ALL: [Self; 10] = [
        Self::Start,
        Self::Create,
        Self::Produce,
        Self::Retention,
        Self::Trim,
        Self::Commit,
        Self::Delete,
        Self::Undelete,
        Self::Purge,
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
    /// Its creation, its deletion, its return, … in turn.
    pub(crate) changes: Vec<Deed>,
    /// When it was deleted last; `None` when nothing can bring it back.
    pub(crate) may_return_since: Option<Timestamp>,
    pub(crate) partitions: Vec<PartitionLife>,
    /// Positions by partition, in the order in which they were committed.
    pub(crate) positions: BTreeMap<u32, Vec<(i64, Deed)>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionLife {
    /// By offset. One record at a time is sent, so that each has the next offset.
    pub(crate) records: Vec<(String, Deed)>,
    /// Log starts that were asked for.
    pub(crate) trims: Vec<(i64, Deed)>,
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
        let count = |counts: &dyn Fn(Deed) -> bool| {
            self.records.iter().rposition(|(_, deed)| counts(*deed)).map_or(0, |last| last + 1)
        };
        (count(&|deed| deed.is_sure(cut)), count(&|deed| deed.is_possible(cut)))
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
