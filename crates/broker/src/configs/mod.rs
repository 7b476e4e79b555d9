//! Configuration that changes while the broker runs: what is set, of whom, and how it changes.
//!
//! Topics keep theirs in their own rows; this module keeps the rest. A change is committed first,
//! then known here and in effect, then answered.
//!
//! # Invariants
//! - One change at a time: what is in effect follows the order of the commits.

mod alter;
mod row;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use strandline_model::QuotaEntity;
use strandline_storage::{CommitError, MetaBatch, MetaStore, StorageError, Table};
use tokio::sync::Semaphore;

use crate::topic::LoadError;

pub(crate) use alter::{AlterError, Change, ConfigResource};
pub(crate) use row::Owner;

/// Rows read at a time.
const SCAN_ROWS: usize = 1_000;

/// What is set, by key.
pub(crate) type Texts = BTreeMap<String, String>;

/// What was set while running of anything but topics.
#[derive(Debug)]
pub(crate) struct DynamicConfigs {
    meta: Arc<dyn MetaStore>,
    set: RwLock<BTreeMap<Owner, Texts>>,
    /// One change at a time, of topics too.
    changing: Semaphore,
}

impl DynamicConfigs {
    /// Reads all rows.
    pub(crate) async fn load(meta: Arc<dyn MetaStore>) -> Result<Self, LoadError> {
        let mut set = BTreeMap::new();
        let mut after = None;
        loop {
            let page = meta.scan(Table::Configs, after, SCAN_ROWS).await?;
            for row in &page.rows {
                let bad =
                    |error| LoadError::Row { table: Table::Configs, key: row.key.clone(), error };
                let owner = Owner::of_key(&row.key).map_err(bad)?;
                set.insert(owner, row::decode(row.value.clone()).map_err(bad)?);
            }
            after = page.rows.last().map(|row| row.key.clone());
            if !page.more {
                return Ok(Self { meta, set: RwLock::new(set), changing: Semaphore::new(1) });
            }
        }
    }

    /// What is set of `owner`; empty when nothing is.
    pub(crate) fn of(&self, owner: &Owner) -> Texts {
        self.set.read().get(owner).cloned().unwrap_or_default()
    }

    /// Groups of which something is set, by name.
    pub(crate) fn groups(&self) -> Vec<String> {
        let group = |owner: &Owner| match owner {
            Owner::Group(name) => Some(name.clone()),
            Owner::AllBrokers
            | Owner::Broker(_)
            | Owner::ClientMetrics(_)
            | Owner::ClientQuota(_) => None,
        };
        self.set.read().keys().filter_map(group).collect()
    }

    /// Subscriptions to the metrics of clients, by name.
    pub(crate) fn client_metrics(&self) -> Vec<String> {
        let subscription = |owner: &Owner| match owner {
            Owner::ClientMetrics(name) => Some(name.clone()),
            Owner::AllBrokers | Owner::Broker(_) | Owner::Group(_) | Owner::ClientQuota(_) => None,
        };
        self.set.read().keys().filter_map(subscription).collect()
    }

    /// All quotas, by whom they are for.
    pub(crate) fn client_quotas(&self) -> Vec<(QuotaEntity, BTreeMap<String, f64>)> {
        let set = self.set.read();
        let quotas = set.iter().filter_map(|(owner, texts)| match owner {
            Owner::ClientQuota(entity) => Some((entity.clone(), numbers(texts))),
            Owner::AllBrokers | Owner::Broker(_) | Owner::ClientMetrics(_) | Owner::Group(_) => {
                None
            }
        });
        quotas.collect()
    }

    /// Commits `texts` as all that is set of `owner`. The caller holds the permit of `changing`.
    async fn replace(&self, owner: Owner, texts: Texts) -> Result<(), StorageError> {
        let key = owner.key();
        let batch = MetaBatch::new();
        let batch = if texts.is_empty() {
            batch.delete(Table::Configs, key)
        } else {
            batch.put(Table::Configs, key, row::encode(&texts))
        };
        match self.meta.commit(batch).await {
            Ok(()) => {}
            Err(CommitError::Storage(error)) => return Err(error),
            Err(CommitError::Unexpected { .. }) => unreachable!("nothing is expected"),
        }
        let mut set = self.set.write();
        if texts.is_empty() {
            set.remove(&owner);
        } else {
            set.insert(owner, texts);
        }
        Ok(())
    }
}

/// Quotas as they were kept. One that is no number, after a downgrade, counts as unset.
fn numbers(texts: &Texts) -> BTreeMap<String, f64> {
    let number = |(key, text): (&String, &String)| Some((key.clone(), text.parse().ok()?));
    texts.iter().filter_map(number).collect()
}
