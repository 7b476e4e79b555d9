//! Small keyed state: topics, pending deletions, groups, offsets, producer ids.

use std::fmt::Debug;

use bytes::Bytes;

use crate::{BoxFuture, CommitError, StorageError};

/// The key of a row within its table. Rows of a table are ordered by it, byte by byte.
pub type Key = Bytes;
/// The value of a row: opaque to the engine.
pub type Value = Bytes;

/// Keyed rows, changed in atomic batches.
pub trait MetaStore: Debug + Send + Sync {
    /// The value of row `key`; `None` when there is no such row.
    fn get(&self, table: Table, key: Key) -> BoxFuture<'_, Result<Option<Value>, StorageError>>;

    /// Rows of `table` in key order: those after `after` (all for `None`), at most `limit`.
    fn scan(
        &self,
        table: Table,
        after: Option<Key>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Page, StorageError>>;

    /// Applies all changes or none. Durable, and seen by every later scan, when it returns.
    ///
    /// Calls that overlap are applied one after another in some order.
    fn commit(&self, batch: MetaBatch) -> BoxFuture<'_, Result<(), CommitError>>;
}

/// The tables. The numbers are persisted: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// Facts about the cluster: its id, the next producer id, levels of features.
    Cluster = 1,
    /// Topics by id.
    Topics = 2,
    /// Topic ids by name.
    TopicNames = 3,
    /// Deleted topics whose bytes are not all gone, by engine and topic id.
    Deletions = 4,
    /// What was set while running of brokers, groups and subscriptions to the metrics of clients, by
    /// kind and name.
    Configs = 5,
    /// Consumer groups: generation, members, assignments.
    Groups = 6,
    /// How far groups have read, by group, topic and partition.
    GroupOffsets = 7,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 7] = [
        Self::Cluster,
        Self::Topics,
        Self::TopicNames,
        Self::Deletions,
        Self::Configs,
        Self::Groups,
        Self::GroupOffsets,
    ];

    /// The persisted number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The table of a persisted number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.number() == number)
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Value,
}

/// Rows of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In key order.
    pub rows: Vec<Row>,
    /// Whether rows follow the last one.
    pub more: bool,
}

/// Changes that are applied together, if all expectations hold at that moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaBatch {
    /// What must be true.
    pub expectations: Vec<Expectation>,
    /// What changes, in order: the last change of a row wins.
    pub changes: Vec<Change>,
}

/// A fact about one row that must hold for a commit to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// There is no such row.
    Absent(Table, Key),
    /// The row has exactly this value.
    Equals(Table, Key, Value),
}

/// A change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Inserts or replaces.
    Put(Table, Key, Value),
    /// Removes; nothing happens when there is no such row.
    Delete(Table, Key),
}

impl MetaBatch {
    /// A batch that does nothing yet.
    pub const fn new() -> Self {
        Self { expectations: Vec::new(), changes: Vec::new() }
    }

    /// Requires that there is no row `key`.
    #[must_use]
    pub fn expect_absent(mut self, table: Table, key: impl Into<Key>) -> Self {
        self.expectations.push(Expectation::Absent(table, key.into()));
        self
    }

    /// Requires that row `key` is `value`.
    #[must_use]
    pub fn expect_equals(
        mut self,
        table: Table,
        key: impl Into<Key>,
        value: impl Into<Value>,
    ) -> Self {
        self.expectations.push(Expectation::Equals(table, key.into(), value.into()));
        self
    }

    /// Inserts or replaces row `key`.
    #[must_use]
    pub fn put(mut self, table: Table, key: impl Into<Key>, value: impl Into<Value>) -> Self {
        self.changes.push(Change::Put(table, key.into(), value.into()));
        self
    }

    /// Removes row `key`.
    #[must_use]
    pub fn delete(mut self, table: Table, key: impl Into<Key>) -> Self {
        self.changes.push(Change::Delete(table, key.into()));
        self
    }
}
