//! What steps left to be done: rows to keep, replies to release.

use std::ops::Range;

use strandline_coordination::{Machine, ReplyToken};
use strandline_storage::{Change, MetaBatch};

use super::EffectsOf;

/// Bytes of rows after which the next step has a commit of its own.
const COMMIT_BYTES: usize = 1024 * 1024;
/// Bytes of rows up to which a step is kept all or none. Engines bound a commit; the rows of a larger
/// step become durable one after another, before its reply all the same.
const STEP_BYTES: usize = 8 * 1024 * 1024;
/// Rows or replies that are collected while a commit is under way. Reached: no further command is
/// taken until it is done.
const COLLECTED_MAX: usize = 10_000;

/// Effects of steps that follow each other.
pub(super) struct Batch<M: Machine> {
    /// Replies of steps before the first with rows.
    pub(super) early: Vec<(ReplyToken, M::Reply)>,
    pub(super) rows: Vec<M::Row>,
    /// Which of them each step left.
    pub(super) steps: Vec<Range<usize>>,
    /// Replies of the first step with rows, and of all after it.
    pub(super) late: Vec<(ReplyToken, M::Reply)>,
}

impl<M: Machine> Default for Batch<M> {
    fn default() -> Self {
        Self { early: Vec::new(), rows: Vec::new(), steps: Vec::new(), late: Vec::new() }
    }
}

impl<M: Machine> Batch<M> {
    pub(super) fn push(&mut self, effects: EffectsOf<M>) {
        let before = self.rows.len();
        self.rows.extend(effects.rows);
        if self.rows.len() > before {
            self.steps.push(before..self.rows.len());
        }
        let replies = if self.rows.is_empty() { &mut self.early } else { &mut self.late };
        replies.extend(effects.replies);
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() + self.early.len() + self.late.len() >= COLLECTED_MAX
    }
}

/// The changes of steps as commits that engines take, to be made in this order.
pub(super) fn commits(steps: impl Iterator<Item = Vec<Change>>) -> Vec<MetaBatch> {
    let mut batches = Vec::new();
    let mut batch = MetaBatch::new();
    let mut held = 0;
    for step in steps {
        let bytes: usize = step.iter().map(size).sum();
        let whole = bytes <= STEP_BYTES;
        let parts =
            if whole { vec![step] } else { step.into_iter().map(|one| vec![one]).collect() };
        for part in parts {
            let bytes: usize = part.iter().map(size).sum();
            if held + bytes > COMMIT_BYTES && held > 0 {
                batches.push(std::mem::take(&mut batch));
                held = 0;
            }
            held += bytes;
            batch.changes.extend(part);
        }
    }
    batches.push(batch);
    batches
}

fn size(change: &Change) -> usize {
    match change {
        Change::Put(_, key, value) => key.len() + value.len(),
        Change::Delete(_, key) => key.len(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use strandline_storage::Table;

    use super::*;

    fn put(key: &'static str, bytes: usize) -> Change {
        Change::Put(Table::Groups, Bytes::from(key), Bytes::from(vec![0; bytes]))
    }

    /// How many changes each commit has; all of them are there, in their order.
    fn lengths(steps: &[Vec<Change>]) -> Vec<usize> {
        let batches = commits(steps.iter().cloned());
        let lengths = batches.iter().map(|batch| batch.changes.len()).collect();
        let all: Vec<_> = batches.into_iter().flat_map(|batch| batch.changes).collect();
        assert_eq!(all, steps.concat());
        lengths
    }

    #[test]
    fn commits_are_split_between_steps() {
        let half = COMMIT_BYTES / 2;
        let steps = [vec![put("a", 10), put("b", half)], vec![put("c", half), put("d", 10)]];
        assert_eq!(lengths(&steps), [2, 2], "neither step is torn");
        let small = [vec![put("a", 10)], vec![put("b", 10), put("c", 10)], vec![put("d", 10)]];
        assert_eq!(lengths(&small), [4], "many steps share a commit");
        let large = [vec![put("a", 10)], vec![put("b", half), put("c", COMMIT_BYTES)]];
        assert_eq!(lengths(&large), [1, 2], "a step beyond a commit's usual size stays whole");
    }

    #[test]
    fn a_step_that_no_engine_takes_at_once_is_split_between_its_rows() {
        let third = STEP_BYTES / 3;
        let rows = vec![put("a", third), put("b", third), put("c", third), put("d", third)];
        assert_eq!(lengths(&[rows, vec![put("e", 10)]]), [1, 1, 1, 1, 1]);
    }
}
