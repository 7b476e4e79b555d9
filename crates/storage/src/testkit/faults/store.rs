//! A store of logs, and one of rows, that fail by plan.

use std::sync::Arc;

use strandline_model::{ByteCount, LeaderEpoch, PartitionId, Timestamp};

use super::gate::Gate;
use super::log::FaultyLog;
use super::{CommitFault, Faults, RemoveFault, injected};
use crate::testkit::Engine;
use crate::{
    BoxFuture, CommitError, ErrorKind, Figure, Finding, Key, LogListener, LogStore, Lost,
    MetaBatch, MetaStore, OpenLog, Opened, Page, Quarantined, Removal, Space, StorageError, Stored,
    Table, Trouble, Value,
};

pub(super) fn wrap(engine: Engine, faults: &Faults) -> Engine {
    Engine {
        logs: Arc::new(FaultyLogs { inner: engine.logs, faults: faults.clone() }),
        rows: Arc::new(FaultyRows { inner: engine.rows, faults: faults.clone() }),
    }
}

#[derive(Debug)]
struct FaultyLogs {
    inner: Arc<dyn LogStore>,
    faults: Faults,
}

#[derive(Debug)]
struct FaultyRows {
    inner: Arc<dyn MetaStore>,
    faults: Faults,
}

impl LogStore for FaultyLogs {
    fn open(&self, request: OpenLog) -> BoxFuture<'_, Result<Opened, StorageError>> {
        Box::pin(async move {
            let planned = self.faults.plan.lock().opens.next();
            if let Some(kind) = planned {
                return Err(injected(kind));
            }
            let gate = Gate::new(&self.faults, request.listener);
            let listener: Arc<dyn LogListener> = Arc::clone(&gate) as _;
            let opened = self.inner.open(OpenLog { listener, ..request }).await?;
            gate.begin_at(opened.log.bounds().durable_end);
            let dead = {
                let mut plan = self.faults.plan.lock();
                plan.gates.push(Arc::clone(&gate));
                std::mem::take(&mut plan.dead)
            };
            // After the plan's lock: a handle that goes may call its engine.
            drop(dead);
            let log = FaultyLog { inner: opened.log, gate, faults: self.faults.clone() };
            Ok(Opened { log: Arc::new(log), epoch: opened.epoch, found: opened.found })
        })
    }

    fn epoch(&self, id: PartitionId) -> Option<LeaderEpoch> {
        self.inner.epoch(id)
    }

    fn stored(&self, id: PartitionId) -> Option<Stored> {
        self.inner.stored(id)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PartitionId>, StorageError>> {
        self.inner.list()
    }

    fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> BoxFuture<'_, Result<Removal, StorageError>> {
        Box::pin(async move {
            let planned = self.faults.plan.lock().removals.next();
            match planned {
                None => self.inner.remove_some(id, budget).await,
                Some(RemoveFault::Fail(kind)) => Err(injected(kind)),
                Some(RemoveFault::Hang) => std::future::pending().await,
            }
        })
    }

    fn quarantine(
        &self,
        id: PartitionId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.quarantine(id, since)
    }

    fn release(&self, id: PartitionId) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.release(id)
    }

    fn quarantined(&self) -> BoxFuture<'_, Result<Vec<Quarantined>, StorageError>> {
        self.inner.quarantined()
    }

    fn lost(&self) -> BoxFuture<'_, Result<Vec<Lost>, StorageError>> {
        Box::pin(async move {
            let mut lost = self.inner.lost().await?;
            lost.extend(self.faults.plan.lock().lost.iter().cloned());
            Ok(lost)
        })
    }

    fn foreign(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        self.inner.foreign()
    }

    fn verify(&self, id: PartitionId) -> BoxFuture<'_, Result<Vec<Finding>, StorageError>> {
        self.inner.verify(id)
    }

    fn space(&self) -> Space {
        self.inner.space()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.inner.trouble()
    }

    fn figures(&self) -> Vec<Figure> {
        self.inner.figures()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.close()
    }
}

impl MetaStore for FaultyRows {
    fn get(&self, table: Table, key: Key) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        self.inner.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        after: Option<Key>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Page, StorageError>> {
        self.inner.scan(table, after, limit)
    }

    fn commit(&self, batch: MetaBatch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            let planned = {
                let mut plan = self.faults.plan.lock();
                plan.commits_asked += 1;
                plan.commits.next()
            };
            self.faults.released().await;
            match planned {
                None => self.inner.commit(batch).await,
                Some(CommitFault::Lose) => Err(injected(ErrorKind::Unavailable).into()),
                Some(CommitFault::Keep) => {
                    self.inner.commit(batch).await?;
                    Err(injected(ErrorKind::Unavailable).into())
                }
            }
        })
    }
}
