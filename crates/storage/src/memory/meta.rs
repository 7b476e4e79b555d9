//! Rows in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::MemoryEngine;
use super::space::{Budget, Purpose};
use crate::{
    BoxFuture, Change, CommitError, Expectation, Key, MetaBatch, MetaStore, Page, Row,
    StorageError, Table, Value,
};

/// What a row costs beside its key and value.
const ROW_OVERHEAD_BYTES: u64 = 96;

/// The rows of all tables.
#[derive(Default)]
pub(super) struct Tables {
    rows: BTreeMap<(Table, Key), Value>,
}

impl MetaStore for MemoryEngine {
    fn get(&self, table: Table, key: Key) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            Ok(self.shared.tables.lock().rows.get(&(table, key)).cloned())
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
            Ok(self.shared.tables.lock().page(table, after, limit))
        })
    }

    fn commit(&self, batch: MetaBatch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            self.shared.tables.lock().commit(batch, &self.shared.budget)
        })
    }
}

impl Tables {
    fn page(&self, table: Table, after: Option<Key>, limit: usize) -> Page {
        let begin = match after {
            Some(key) => Bound::Excluded((table, key)),
            None => Bound::Included((table, Key::new())),
        };
        let mut following = self
            .rows
            .range((begin, Bound::Unbounded))
            .take_while(|((of, _), _)| *of == table)
            .map(|((_, key), value)| Row { key: key.clone(), value: value.clone() });
        let rows = following.by_ref().take(limit).collect();
        Page { rows, more: following.next().is_some() }
    }

    fn commit(&mut self, batch: MetaBatch, budget: &Budget) -> Result<(), CommitError> {
        if let Some(index) = batch.expectations.iter().position(|fact| !self.holds(fact)) {
            return Err(CommitError::Unexpected { index });
        }
        let changes = last_changes(batch.changes);
        let (mut freed, mut needed) = (0, 0);
        for (row, value) in &changes {
            freed += self.rows.get(row).map_or(0, |old| cost(&row.1, old));
            needed += value.as_ref().map_or(0, |new| cost(&row.1, new));
        }
        // Only growth can be refused, so that deleting works when memory is full.
        budget.take(needed.saturating_sub(freed), Purpose::Rows)?;
        budget.give_back(freed.saturating_sub(needed));
        for (row, value) in changes {
            match value {
                Some(value) => self.rows.insert(row, value),
                None => self.rows.remove(&row),
            };
        }
        Ok(())
    }

    /// Everything that is held, with its overhead.
    #[cfg(feature = "testkit")]
    pub(super) fn held(&self) -> u64 {
        self.rows.iter().map(|((_, key), value)| cost(key, value)).sum()
    }

    fn holds(&self, expectation: &Expectation) -> bool {
        match expectation {
            Expectation::Absent(table, key) => !self.rows.contains_key(&(*table, key.clone())),
            Expectation::Equals(table, key, value) => {
                self.rows.get(&(*table, key.clone())) == Some(value)
            }
        }
    }
}

/// What each row becomes: its value, or `None` when it goes.
fn last_changes(changes: Vec<Change>) -> BTreeMap<(Table, Key), Option<Value>> {
    changes
        .into_iter()
        .map(|change| match change {
            Change::Put(table, key, value) => ((table, key), Some(value)),
            Change::Delete(table, key) => ((table, key), None),
        })
        .collect()
}

const fn cost(key: &Key, value: &Value) -> u64 {
    key.len() as u64 + value.len() as u64 + ROW_OVERHEAD_BYTES
}
