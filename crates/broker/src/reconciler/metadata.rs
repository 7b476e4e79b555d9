//! What metadata says of the logs of each engine: the claims that reconciliation compares with.

use std::collections::BTreeMap;

use bytes::Bytes;
use strandline_model::{PartitionId, TopicId};
use strandline_partition::reconcile::{Claim, Claims};
use strandline_storage::{MetaStore, Row, StorageError, Table};

use crate::broker::CLUSTER_ID_KEY;
use crate::row_codec::RowError;
use crate::topic::{DeletionRow, LoadError, TopicRow, deletion_key, topic_key};

/// Rows read at a time.
const SCAN_ROWS: usize = 1_000;

/// The topics that exist and those whose bytes wait for their removal, read from the rows.
#[derive(Debug, Default)]
pub struct Metadata {
    engines: BTreeMap<String, Claims>,
    names: BTreeMap<TopicId, String>,
}

impl Metadata {
    /// Reads the rows. Fails when one can't be read: what nobody understands claims nothing, and that
    /// would make its logs unknown.
    ///
    /// Topics first: a deletion moves a topic from the first table to the second in one commit, so it is
    /// seen in one of them at least.
    pub async fn read(meta: &dyn MetaStore) -> Result<Self, LoadError> {
        let mut metadata = Self::default();
        scan(meta, Table::Topics, |row| {
            let id = row.key.as_ref().try_into().map_err(|_| RowError::Damaged)?;
            let topic = TopicRow::decode(row.value.clone())?;
            let claim = Claim::Topic { partition_count: topic.partition_count };
            metadata.add(TopicId::from_bytes(id), topic, claim);
            Ok(())
        })
        .await?;
        scan(meta, Table::Deletions, |row| {
            let DeletionRow { topic_id, topic, .. } =
                DeletionRow::decode(&row.key, row.value.clone())?;
            let claim = Claim::Deletion { partition_count: topic.partition_count };
            metadata.add(topic_id, topic, claim);
            Ok(())
        })
        .await?;
        Ok(metadata)
    }

    fn add(&mut self, id: TopicId, topic: TopicRow, claim: Claim) {
        // One that was deleted between the two scans counts as it was: either claim keeps its logs.
        self.engines.entry(topic.engine).or_default().entry(id).or_insert(claim);
        self.names.entry(id).or_insert_with(|| topic.name.to_string());
    }

    /// What is said of the logs that `engine` keeps.
    pub fn claims(&self, engine: &str) -> Claims {
        self.engines.get(engine).cloned().unwrap_or_default()
    }

    /// The name of a topic that exists or is deleted.
    pub fn name_of(&self, id: TopicId) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }
}

/// Whether a broker ever kept its metadata here: where it did not, every log would be unknown.
pub async fn has_metadata(meta: &dyn MetaStore) -> Result<bool, StorageError> {
    let cluster_id = meta.get(Table::Cluster, Bytes::from_static(CLUSTER_ID_KEY)).await?;
    Ok(cluster_id.is_some())
}

/// Whether a topic, or a deletion that is pending, claims a log of `engine` now.
///
/// Fails when a row of it can't be read: what nobody understands may claim it.
pub(super) async fn is_claimed(
    meta: &dyn MetaStore,
    engine: &str,
    id: PartitionId,
) -> Result<bool, LoadError> {
    let tables = [
        (Table::Topics, topic_key(id.topic_id)),
        (Table::Deletions, deletion_key(engine, id.topic_id)),
        // Once more: one that is brought back moves from the second table to the first.
        (Table::Topics, topic_key(id.topic_id)),
    ];
    for (table, key) in tables {
        let Some(value) = meta.get(table, key.clone()).await? else { continue };
        let decoded = match table {
            Table::Deletions => DeletionRow::decode(&key, value).map(|row| row.topic),
            _ => TopicRow::decode(value),
        };
        let topic = decoded.map_err(|error| LoadError::Row { table, key, error })?;
        if topic.engine == engine && id.index.get() < topic.partition_count {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn scan(
    meta: &dyn MetaStore,
    table: Table,
    mut each: impl FnMut(&Row) -> Result<(), RowError>,
) -> Result<(), LoadError> {
    let mut after: Option<Bytes> = None;
    loop {
        let page = meta.scan(table, after, SCAN_ROWS).await?;
        for row in &page.rows {
            let bad = |error| LoadError::Row { table, key: row.key.clone(), error };
            each(row).map_err(bad)?;
        }
        after = page.rows.last().map(|row| row.key.clone());
        if !page.more {
            return Ok(());
        }
    }
}
