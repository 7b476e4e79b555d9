//! From waiting items to a group.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strandline_model::Offset;
use strandline_storage::{CommitError, Durability, ErrorKind, Expectation, StorageError};

use super::Committer;
use super::group::{Answer, Placed, RewriteSlot};
use crate::journal::group::APPEND_OVERHEAD_BYTES;
use crate::live::LiveLog;
use crate::queue::{Item, PendingAppend, PendingChange, Wait};
use crate::tables::{self, TableNumber};

impl Committer {
    /// Takes items until the group is full, or one comes that acts between two groups.
    pub(super) fn compose(&mut self) {
        self.builder.begin();
        self.work.begin();
        let group_max = self.shared.config.group_max.get();
        while self.builder.whole_bytes() + self.work.append_bytes < group_max {
            let Some(item) = self.items.pop_front() else { break };
            match item {
                Item::Append(append) => self.compose_append(append),
                // A trim decides from what is published, and no append may follow it into a segment
                // that it drops: it has a group of its own. So has a rewrite.
                Item::Change(change) if change.trim.is_some() || change.rewritten.is_some() => {
                    if self.work.is_empty() {
                        self.compose_change(change);
                    } else {
                        self.items.push_front(Item::Change(change));
                    }
                    break;
                }
                Item::Change(change) => self.compose_change(change),
                other if self.work.is_empty() => self.act_between(other),
                other => {
                    self.items.push_front(other);
                    break;
                }
            }
        }
    }

    fn compose_append(&mut self, append: PendingAppend) {
        let PendingAppend { log, batches, completion } = append;
        let mut side = log.commit.lock();
        let placed = match side.broken.clone().or_else(|| self.fatal.clone()) {
            Some(error) => Err(error),
            None => log.segments.place(&batches),
        };
        let place = match placed {
            Ok(place) => place,
            Err(error) => {
                self.work.failed_appends.push((completion, error));
                return;
            }
        };
        if let Some(row) = side.epoch_row.take() {
            let key = tables::partition_key(log.id);
            self.change_row(tables::EPOCHS, &key, Some(&row.value()));
        }
        drop(side);
        match log.durability() {
            Durability::Commit => self.work.wants_sync = true,
            Durability::Interval(within) => self.note_interval(within),
            Durability::Never => {}
        }
        self.work.append_bytes += batches.size().get() + APPEND_OVERHEAD_BYTES;
        self.appended_since_space_check += batches.size().get();
        self.work.appends.push(Placed { log, batches, place, completion });
    }

    fn note_interval(&mut self, within: Duration) {
        let shortest = self.work.sync_within.map_or(within, |other| other.min(within));
        self.work.sync_within = Some(shortest);
    }

    fn compose_change(&mut self, change: PendingChange) {
        let PendingChange { expectations, changes, wait, log, trim, rewritten, done } = change;
        // Even a refusal waits for the group: it may tell of rows that the group brings.
        self.work.wants_sync |= wait == Wait::Sync;
        if let Some(fatal) = &self.fatal {
            let result = Err(CommitError::Storage(fatal.clone()));
            self.work.answers.push(Answer { done, result });
            return;
        }
        let unexpected = expectations.iter().position(|expected| !self.holds(expected));
        if let Some(index) = unexpected {
            let result = Err(CommitError::Unexpected { index });
            self.work.answers.push(Answer { done, result });
            return;
        }
        if let Some((log, slot)) = log.as_ref().zip(rewritten) {
            if let Err(error) = self.rewrite_segments(log, &slot) {
                self.work.answers.push(Answer { done, result: Err(error.into()) });
                return;
            }
            self.note_epoch(log);
            self.work.rewrites.push((Arc::clone(log), slot));
        }
        if let Some((log, log_start)) = log.zip(trim) {
            let broken = log.commit.lock().broken.clone();
            if broken.is_some() || log_start <= log.log_start() {
                let result = broken.map_or(Ok(()), |error| Err(error.into()));
                self.work.answers.push(Answer { done, result });
                return;
            }
            let ended = self.drop_segments(&log, log_start);
            self.note_epoch(&log);
            self.work.trims.push((log, log_start, ended));
        }
        for row in changes {
            self.change_row(row.table, &row.key, row.value.as_deref());
        }
        self.work.answers.push(Answer { done, result: Ok(()) });
    }

    /// Journals the epoch of a log that nothing was appended to in it, beside the end of segments: a start
    /// passes over what went to them, and would bring back the rest of appends that failed in an older
    /// epoch, without their beginning.
    fn note_epoch(&mut self, log: &LiveLog) {
        // It stays for the first append: this group may fail.
        let row = log.commit.lock().epoch_row;
        if let Some(row) = row {
            self.change_row(tables::EPOCHS, &tables::partition_key(log.id), Some(&row.value()));
        }
    }

    /// Journals which segments a trim drops: their files may be gone when the journal is read.
    fn drop_segments(&mut self, log: &LiveLog, log_start: Offset) -> Vec<Offset> {
        let ended = log.segments.end_below(log_start);
        for base_offset in &ended {
            let key = tables::segment_key(log.id, *base_offset);
            self.change_row(tables::SEGMENTS, &key, None);
        }
        ended
    }

    /// Journals that a segment takes the place of others. The old rows go first, even when the new one
    /// has the key of one of them: a start drops what it finds of segments whose row was deleted.
    fn rewrite_segments(&mut self, log: &LiveLog, slot: &RewriteSlot) -> Result<(), StorageError> {
        log.commit.lock().broken.clone().map_or(Ok(()), Err)?;
        let slot = slot.lock();
        let Some(rewritten) = &*slot else {
            return Err(StorageError::new(ErrorKind::Closed, "rewrite was given up"));
        };
        log.segments.check_rewritten(rewritten)?;
        for name in rewritten.replaced() {
            let key = tables::segment_key(log.id, name.base_offset);
            self.change_row(tables::SEGMENTS, &key, None);
        }
        if let Some(facts) = rewritten.facts() {
            let key = tables::segment_key(log.id, facts.base_offset);
            self.change_row(tables::SEGMENTS, &key, Some(&tables::segment_value(&facts)));
        }
        Ok(())
    }

    fn change_row(&mut self, table: TableNumber, key: &[u8], value: Option<&[u8]>) {
        match value {
            Some(value) => self.builder.put(table, key, value),
            None => self.builder.delete(table, key),
        }
        let key = Bytes::copy_from_slice(key);
        let value = value.map(Bytes::copy_from_slice);
        self.work.pending_rows.insert((table, key), value);
    }

    /// Whether an expectation holds once the group so far is published.
    fn holds(&self, expected: &Expectation) -> bool {
        let (table, key, wanted) = match expected {
            Expectation::Absent(table, key) => (table, key, None),
            Expectation::Equals(table, key, value) => (table, key, Some(value)),
        };
        let table = TableNumber::of(*table);
        if let Some(pending) = self.work.pending_rows.get(&(table, key.clone())) {
            return pending.as_ref() == wanted;
        }
        self.shared.rows.read().get(table, key) == wanted
    }

    /// Whatever acts on the state between two groups.
    fn act_between(&mut self, item: Item) {
        match item {
            Item::Append(_) | Item::Change(_) => unreachable!("these go into groups"),
            Item::Roll { log, done } => {
                log.segments.roll();
                done.settle(log.commit.lock().broken.clone().map_or(Ok(()), Err));
            }
            Item::Retire { log, error, done } => {
                self.retire(&log, error.as_ref());
                // Without a journal nobody opens the log again: what it was about to lose may stand
                // in a group that a start will read.
                done.settle(self.fatal.clone().map_or(Ok(()), Err));
            }
            Item::Release(log) => self.release(&log),
            Item::Barrier(done) => {
                if self.writer.has_unsynced() {
                    self.sync_published();
                }
                done.settle(self.fatal.clone().map_or(Ok::<(), StorageError>(()), Err));
            }
        }
    }
}
