//! Opening, listing and removing logs in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use strandline_model::{ByteCount, LeaderEpoch, PartitionId, Timestamp};
use tokio::sync::mpsc::Permit;

use super::log::{Freed, Log, MemoryLog, Opener, State};
use super::settle::Settlement;
use super::{MemoryEngine, Shared};
use crate::{
    BoxFuture, ErrorKind, Figure, Finding, Found, LogStore, Lost, OpenLog, Opened, Quarantined,
    Removal, Space, StorageError, Stored, Ticket, Trouble,
};

impl LogStore for MemoryEngine {
    fn open(&self, request: OpenLog) -> BoxFuture<'_, Result<Opened, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let place = self.shared.place().await?;
            self.shared.open(request, place)
        })
    }

    fn epoch(&self, id: PartitionId) -> Option<LeaderEpoch> {
        let log = self.shared.log(id);
        Some(log.map_or(LeaderEpoch::ZERO, |log| log.state.lock().epoch))
    }

    fn stored(&self, id: PartitionId) -> Option<Stored> {
        let log = self.shared.log(id)?;
        let state = log.state.lock();
        let chunks = state.chunks.infos();
        let (bounds, compacted) = (state.bounds, state.compacted);
        state.check_kept(id).is_ok().then_some(Stored { bounds, chunks, compacted })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PartitionId>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            Ok(self.shared.logs.lock().keys().copied().collect())
        })
    }

    fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> BoxFuture<'_, Result<Removal, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let Some(log) = self.shared.log(id) else { return Ok(Removal::Done) };
            let place = self.shared.place().await?;
            withdraw(&log, place, |state| state.removing = true);
            let Freed { bytes, remaining } = log.state.lock().drop_oldest(budget);
            self.shared.budget.give_back(bytes);
            if remaining > 0 {
                return Ok(Removal::Remaining(ByteCount::new(remaining)));
            }
            self.shared.logs.lock().remove(&id);
            Ok(Removal::Done)
        })
    }

    fn quarantine(
        &self,
        id: PartitionId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let Some(log) = self.shared.log(id) else { return Ok(()) };
            let place = self.shared.place().await?;
            if log.state.lock().removing {
                let message = format!("log is being removed. partition=`{id}`");
                return Err(StorageError::new(ErrorKind::Invalid, message));
            }
            withdraw(&log, place, |state| {
                state.quarantined.get_or_insert(since);
            });
            Ok(())
        })
    }

    fn release(&self, id: PartitionId) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            if let Some(log) = self.shared.log(id) {
                log.state.lock().quarantined = None;
            }
            Ok(())
        })
    }

    fn quarantined(&self) -> BoxFuture<'_, Result<Vec<Quarantined>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let logs: Vec<_> = self.shared.logs.lock().values().map(Arc::clone).collect();
            let quarantined = logs.into_iter().filter_map(|log| {
                let state = log.state.lock();
                let bytes = ByteCount::new(state.held());
                state.quarantined.map(|since| Quarantined { id: log.id, since, bytes })
            });
            Ok(quarantined.collect())
        })
    }

    fn lost(&self) -> BoxFuture<'_, Result<Vec<Lost>, StorageError>> {
        // What is kept of a log and the log itself are one: neither goes without the other.
        Box::pin(async move { self.shared.check_open().map(|()| Vec::new()) })
    }

    fn foreign(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        // Nobody else puts anything there.
        Box::pin(async move { self.shared.check_open().map(|()| Vec::new()) })
    }

    fn verify(&self, id: PartitionId) -> BoxFuture<'_, Result<Vec<Finding>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let log = self.shared.log(id).ok_or_else(|| {
                StorageError::new(ErrorKind::Missing, format!("no such log. partition=`{id}`"))
            })?;
            let findings = log.state.lock().chunks.verify();
            Ok(findings)
        })
    }

    fn space(&self) -> Space {
        self.shared.budget.space()
    }

    fn trouble(&self) -> Option<Trouble> {
        None
    }

    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let place = self.shared.place().await?;
            let (completion, settled) = Ticket::pair();
            self.shared.closed.store(true, Ordering::Release);
            place.send(Settlement::Barrier(completion));
            settled.await
        })
    }
}

impl Shared {
    fn log(&self, id: PartitionId) -> Option<Arc<Log>> {
        self.logs.lock().get(&id).map(Arc::clone)
    }

    /// A place in the queue of settlements, for the death of an earlier opener.
    async fn place(&self) -> Result<Permit<'_, Settlement>, StorageError> {
        self.settlements
            .reserve()
            .await
            .map_err(|_| StorageError::new(ErrorKind::Closed, "task of the memory engine is gone"))
    }

    fn open(
        self: &Arc<Self>,
        request: OpenLog,
        place: Permit<'_, Settlement>,
    ) -> Result<Opened, StorageError> {
        let OpenLog { id, at_least, settings, listener } = request;
        let (log, created) = {
            let mut logs = self.logs.lock();
            let created = !logs.contains_key(&id);
            (Arc::clone(logs.entry(id).or_insert_with(|| self.new_log(id))), created)
        };
        let (epoch, fenced, reached, unclean) = {
            let mut state = log.state.lock();
            if let Some(why) = state.withdrawn(id) {
                return Err(StorageError::new(ErrorKind::Invalid, why));
            }
            let fenced = state.opener.replace(Opener { listener, settings });
            let unclean = std::mem::take(&mut state.unclean) || fenced.is_some();
            let free = if unclean { state.epoch.next() } else { state.epoch };
            state.epoch = free.max(at_least);
            // What was written is kept: memory is this engine's stable storage.
            state.bounds.durable_end = state.bounds.written_end;
            (state.epoch, fenced, state.take_reached(), unclean)
        };
        for completion in reached {
            completion.settle(Ok(()));
        }
        let found = match (created, unclean) {
            (true, _) => Found::Created,
            (false, false) => Found::Clean,
            (false, true) => Found::Unclean,
        };
        if let Some(Opener { listener, .. }) = fenced {
            let message = format!("a later opener owns the log. owner=`{epoch}`");
            let error = StorageError::new(ErrorKind::Fenced, message);
            place.send(Settlement::Death { listener, error });
        }
        let shared = Arc::clone(self);
        Ok(Opened { log: Arc::new(MemoryLog { shared, log, epoch }), epoch, found })
    }
}

/// Closes the log, for the reason that `mark` notes, and tells its opener.
fn withdraw(log: &Log, place: Permit<'_, Settlement>, mark: impl FnOnce(&mut State)) {
    let (opener, waiting, why) = {
        let mut state = log.state.lock();
        mark(&mut state);
        let opener = state.opener.take();
        // Whoever had it open is told from the next opener by its epoch.
        state.unclean |= opener.is_some();
        let why = state.withdrawn(log.id).expect("it was marked");
        (opener, std::mem::take(&mut state.waiting), why)
    };
    let error = StorageError::new(ErrorKind::Closed, why);
    for (_, completion) in waiting {
        completion.settle(Err(error.clone()));
    }
    if let Some(Opener { listener, .. }) = opener {
        place.send(Settlement::Death { listener, error });
    }
}
