//! What happens once a group is as durable as it asked, or can't become so.

use std::sync::Arc;

use strandline_model::Offset;
use strandline_storage::{Completion, ErrorKind, LogListener, StorageError};

use super::Committer;
use super::group::{Answer, Run};
use crate::live::{LiveLog, answer_after};

/// What is to be told after all state has changed, without any lock held.
#[derive(Default)]
struct Told {
    moved: Vec<(Arc<dyn LogListener>, Offset)>,
    reached: Vec<Completion>,
}

impl Committer {
    /// Changes the state first, all of it, then tells the listeners, then whoever waits.
    pub(super) fn publish(&mut self) {
        self.work.published_unsynced |= self.writer.has_unsynced();
        self.publish_rows();
        let told = self.publish_appends();
        for (listener, end) in &told.moved {
            listener.durable_end_moved(*end);
        }
        self.break_failed_logs();
        // Runs are in the order of appends.
        let mut runs = self.work.runs.iter().peekable();
        for (index, placed) in self.work.appends.drain(..).enumerate() {
            while runs.peek().is_some_and(|run| run.end <= index) {
                runs.next();
            }
            let run = runs.peek().expect("every append lies in a run");
            placed.completion.settle(run.result.clone());
        }
        for completion in told.reached {
            completion.settle(Ok(()));
        }
        self.settle_rest();
    }

    fn publish_rows(&mut self) {
        let pending = std::mem::take(&mut self.work.pending_rows);
        if !pending.is_empty() {
            let mut rows = self.shared.rows.write();
            for (key, value) in pending {
                rows.change(key, value);
            }
        }
        for (log, slot) in self.work.rewrites.drain(..) {
            let Some(rewritten) = slot.lock().take() else { continue };
            // The rows of these went with the group.
            let replaced: Vec<_> = rewritten.replaced().collect();
            log.commit.lock().changed.retain(|facts| !replaced.contains(&facts.name()));
            log.segments.swap(rewritten);
            self.shared.sweeper.sweep(&log.segments);
        }
        for (log, log_start, ended) in self.work.trims.drain(..) {
            log.raise_log_start(log_start);
            // Their rows went with the group.
            log.commit.lock().changed.retain(|facts| !ended.contains(&facts.base_offset));
            if log.segments.drop_ended(&ended) > 0 {
                self.shared.sweeper.sweep(&log.segments);
            }
        }
    }

    fn publish_appends(&mut self) -> Told {
        let mut told = Told::default();
        for run in &self.work.runs {
            if run.result.is_err() {
                continue;
            }
            let placed = &self.work.appends[run.start..run.end];
            let Some(last) = placed.last() else { continue };
            let log = &last.log;
            let mut side = log.commit.lock();
            for placed in placed {
                side.note(placed.place, &placed.batches);
            }
            if side.dirty.is_none() {
                side.dirty = Some(self.next_dirty);
                self.dirty.insert(self.next_dirty, Arc::clone(log));
                self.next_dirty += 1;
            }
            drop(side);
            let end = last.batches.next_offset();
            told.reached.extend(log.raise_durable_end(end));
            told.moved.push((Arc::clone(&log.listener), end));
        }
        told
    }

    fn break_failed_logs(&self) {
        for Run { start, result, .. } in &self.work.runs {
            if let Err(error) = result {
                self.shared.space.note_full(error);
                self.break_log(&self.work.appends[*start].log, error);
            }
        }
    }

    /// Nothing of the group happened: its appends kill their logs, its changes fail.
    pub(super) fn fail_group(&mut self, error: &StorageError) {
        self.work.pending_rows.clear();
        self.work.trims.clear();
        self.work.rewrites.clear();
        self.work.runs.clear();
        for placed in &self.work.appends {
            self.break_log(&placed.log, error);
        }
        for placed in self.work.appends.drain(..) {
            placed.completion.settle(Err(error.clone()));
        }
        for answer in &mut self.work.answers {
            answer.result = Err(error.clone().into());
        }
        self.settle_rest();
    }

    fn settle_rest(&mut self) {
        for (completion, error) in self.work.failed_appends.drain(..) {
            completion.settle(Err(error));
        }
        for Answer { done, result } in self.work.answers.drain(..) {
            // Whoever asked may have gone away.
            drop(done.send(result));
        }
    }

    /// Kills a log's handle after a failed append. Does nothing the second time.
    pub(super) fn break_log(&self, log: &Arc<LiveLog>, error: &StorageError) {
        {
            let mut side = log.commit.lock();
            if side.broken.is_some() {
                return;
            }
            side.broken = Some(error.clone());
        }
        self.shared.logs.note_broken(log);
        let answer = answer_after(log.id, error);
        self.shared.queue.exclusively(|| log.set_fate(answer));
        self.retire(log, Some(error));
    }

    /// Ends a handle whose fate is set: brings what is known of its log into the rows, for the next
    /// opener, and tells its owner.
    pub(super) fn retire(&self, log: &Arc<LiveLog>, error: Option<&StorageError>) {
        self.bring_facts_down(log);
        let Some(error) = error else { return };
        let closed = StorageError::new(ErrorKind::Closed, "log is not open any more");
        for completion in log.take_waiting() {
            completion.settle(Err(closed.clone().caused_by(error.clone())));
        }
        log.listener.died(error);
    }

    /// Forgets a log that nobody has open any more: the rows know it, and its segments are synced without
    /// it. Whoever opens it again finds there what an opener finds after a start. Only for an index that
    /// is worth saving it waits for the checkpoint.
    pub(super) fn release(&mut self, log: &Arc<LiveLog>) {
        self.bring_facts_down(log);
        if !log.segments.has_index_to_save() {
            let place = log.commit.lock().dirty.take();
            let forgotten = place.and_then(|place| self.dirty.remove(&place));
            drop(forgotten);
        }
    }

    /// Brings the published facts of a log into the rows.
    pub(super) fn bring_facts_down(&self, log: &LiveLog) {
        let mut side = log.commit.lock();
        if side.changed.is_empty() {
            return;
        }
        let mut rows = self.shared.rows.write();
        for facts in side.changed.drain(..) {
            rows.put_segment(log.id, &facts);
        }
        self.shared.unsaved.note(log.id);
    }
}
