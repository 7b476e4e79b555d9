//! The metadata store: rows that are journaled with the appends.

use bytes::Bytes;
use strandline_storage::{
    BoxFuture, Change, CommitError, ErrorKind, Key, MetaBatch, MetaStore, Page, StorageError,
    Table, Value,
};
use tokio::sync::oneshot;

use crate::FileEngine;
use crate::log::await_change;
use crate::queue::{Item, PendingChange, RowChange, Wait};
use crate::tables::TableNumber;

impl MetaStore for FileEngine {
    fn get(&self, table: Table, key: Key) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            Ok(self.shared.rows.read().get(TableNumber::of(table), &key).cloned())
        })
    }

    fn scan(
        &self,
        table: Table,
        after: Option<Key>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Page, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let rows = self.shared.rows.read();
            Ok(rows.scan(TableNumber::of(table), after.as_deref(), limit))
        })
    }

    fn commit(&self, batch: MetaBatch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            let MetaBatch { expectations, changes } = batch;
            let changes: Vec<_> = changes.into_iter().map(RowChange::from).collect();
            self.check_size(&changes)?;
            self.shared.queue.rows_room(&self.shared.checkpoints).await;
            let wait = if self.shared.config.metadata_waits() { Wait::Sync } else { Wait::Write };
            let (done, answer) = oneshot::channel();
            let (log, trim, rewritten) = (None, None, None);
            let change = PendingChange { expectations, changes, wait, log, trim, rewritten, done };
            self.shared.queue.push(Item::Change(change))?;
            await_change(answer).await
        })
    }
}

impl FileEngine {
    /// One commit is part of one group, and a group of one file.
    fn check_size(&self, changes: &[RowChange]) -> Result<(), StorageError> {
        let bytes: usize = changes.iter().map(RowChange::size).sum();
        let bytes_max = self.shared.config.commit_max.get();
        if bytes as u64 <= bytes_max {
            return Ok(());
        }
        let message = format!("commit is too large. bytes=`{bytes}`, max=`{bytes_max}`");
        Err(StorageError::new(ErrorKind::Invalid, message))
    }
}

impl From<Change> for RowChange {
    fn from(change: Change) -> Self {
        match change {
            Change::Put(table, key, value) => {
                Self { table: TableNumber::of(table), key, value: Some(value) }
            }
            Change::Delete(table, key) => {
                Self { table: TableNumber::of(table), key, value: None::<Bytes> }
            }
        }
    }
}
