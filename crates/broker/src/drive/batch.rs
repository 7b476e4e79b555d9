//! What steps left to be done: rows to keep, replies to release.

use strandline_coordination::{Machine, ReplyToken};
use strandline_storage::{Change, MetaBatch};

use super::EffectsOf;

/// Bytes of rows after which a commit is split. Engines bound a commit; a machine's large steps are
/// lists of rows that may become durable one after another.
const COMMIT_BYTES: usize = 1024 * 1024;
/// Rows or replies that are collected while a commit is under way. Reached: no further command is
/// taken until it is done.
const COLLECTED_MAX: usize = 10_000;

/// Effects of steps that follow each other.
pub(super) struct Batch<M: Machine> {
    /// Replies of steps before the first with rows.
    pub(super) early: Vec<(ReplyToken, M::Reply)>,
    pub(super) rows: Vec<M::Row>,
    /// Replies of the first step with rows, and of all after it.
    pub(super) late: Vec<(ReplyToken, M::Reply)>,
}

impl<M: Machine> Default for Batch<M> {
    fn default() -> Self {
        Self { early: Vec::new(), rows: Vec::new(), late: Vec::new() }
    }
}

impl<M: Machine> Batch<M> {
    pub(super) fn push(&mut self, effects: EffectsOf<M>) {
        self.rows.extend(effects.rows);
        let replies = if self.rows.is_empty() { &mut self.early } else { &mut self.late };
        replies.extend(effects.replies);
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() + self.early.len() + self.late.len() >= COLLECTED_MAX
    }
}

/// The changes as commits that engines take, to be made in this order.
pub(super) fn commits(changes: impl Iterator<Item = Change>) -> Vec<MetaBatch> {
    let mut batches = Vec::new();
    let mut batch = MetaBatch::new();
    let mut bytes = 0;
    for change in changes {
        let size = size(&change);
        if bytes + size > COMMIT_BYTES && bytes > 0 {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += size;
        batch.changes.push(change);
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

    #[test]
    fn large_batches_are_split_between_rows_and_keep_their_order() {
        let put = |key: &'static str, bytes| {
            Change::Put(Table::Groups, Bytes::from(key), Bytes::from(vec![0; bytes]))
        };
        let changes = [put("a", 10), put("b", COMMIT_BYTES), put("c", 10), put("d", 10)];
        let batches = commits(changes.clone().into_iter());
        let lengths: Vec<_> = batches.iter().map(|batch| batch.changes.len()).collect();
        assert_eq!(lengths, [1, 1, 2]);
        let all: Vec<_> = batches.into_iter().flat_map(|batch| batch.changes).collect();
        assert_eq!(all, changes);
    }
}
