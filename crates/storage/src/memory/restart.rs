//! A stop and a start of the memory engine, for tests: as if its memory were a disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use strandline_model::PartitionId;

use super::log::Log;
use super::{MemoryEngine, MemoryOptions};
use crate::BoxFuture;
use crate::testkit::Stop;

impl MemoryEngine {
    /// Another engine with what this one holds, which stops as `stop` says: its handles answer
    /// `Closed` from now on. After a crash, what was not durable is lost, and logs that were open
    /// are found unclean.
    ///
    /// # Panics
    /// When `options` are too small for what there is.
    #[must_use = "what was stored moves into it"]
    pub fn restart(
        &self,
        stop: Stop,
        options: MemoryOptions,
        spawn: impl FnOnce(BoxFuture<'static, ()>),
    ) -> Self {
        self.shared.closed.store(true, Ordering::Release);
        let next = Self::new(options, spawn);
        let logs = std::mem::take(&mut *self.shared.logs.lock());
        *next.shared.logs.lock() = logs
            .into_iter()
            .map(|(id, log)| (id, Arc::new(taken_over(id, &log, stop))))
            .collect::<BTreeMap<_, _>>();
        *next.shared.tables.lock() = std::mem::take(&mut *self.shared.tables.lock());
        let held = next.shared.logs.lock().values().map(|log| log.state.lock().held()).sum::<u64>();
        let rows = next.shared.tables.lock().held();
        next.shared
            .budget
            .take(held + rows, super::space::Purpose::Rows)
            .expect("it fitted before");
        next
    }
}

/// The log as it is found by the next engine; the one of the last is dead.
fn taken_over(id: PartitionId, log: &Log, stop: Stop) -> Log {
    let mut old = log.state.lock();
    let mut state = super::log::State::empty(old.bounds.log_start);
    state.bounds = old.bounds;
    state.chunks = std::mem::take(&mut old.chunks);
    state.saved = old.saved.take();
    state.compacted = old.compacted;
    state.epoch = old.epoch;
    state.removing = old.removing;
    state.quarantined = old.quarantined;
    state.unclean = old.unclean;
    if stop == Stop::Crash {
        state.unclean = true;
        state.bounds.written_end = state.bounds.durable_end;
        state.chunks.cut_to(state.bounds.durable_end);
    }
    old.removing = true;
    drop(old);
    Log { id, state: Mutex::new(state) }
}
