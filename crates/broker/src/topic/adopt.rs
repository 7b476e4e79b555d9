//! A topic that is made for logs that are there: one commit, and a topic knows them again.
//!
//! For logs that were set aside by mistake, in a store that no broker serves: a running one would not
//! hear of it.

use std::collections::BTreeMap;

use strandline_model::{InvalidTopicName, Timestamp, TopicId, TopicName};
use strandline_storage::{CommitError, MetaBatch, MetaStore, StorageError, Table};

use super::create::PARTITIONS_PER_REQUEST_MAX;
use super::{TopicRow, deletion_key, name_key, topic_key};

/// What the topic is to be.
#[derive(Clone, Copy, Debug)]
pub struct Adoption<'a> {
    /// The id that the logs have.
    pub id: TopicId,
    /// What it is called from now on.
    pub name: &'a str,
    /// The engine that has the logs.
    pub engine: &'a str,
    /// One more than the highest index of a log.
    pub partition_count: u32,
    /// When it counts as created.
    pub now: Timestamp,
}

/// Why no topic was made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdoptError {
    /// The name can't be one.
    #[error(transparent)]
    Name(#[from] InvalidTopicName),
    /// The name is the broker's own.
    #[error("{0} is a name of the broker's own topics")]
    Internal(TopicName),
    /// A topic has the name, or one that differs only in `.` and `_`.
    #[error("a topic named {0}, or one that differs in . and _ only, exists")]
    Taken(TopicName),
    /// A topic has the id, or the deletion of one that had it is pending.
    #[error("a topic of this id exists, or its deletion is pending")]
    Known,
    /// More than a topic is made with.
    #[error("a topic would need {0} partitions for the logs, more than are made at once")]
    Partitions(u32),
    /// The metadata store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Makes the topic. Its retention is without limits, of time and of size: what somebody wants back is
/// not to go with the next pass.
pub async fn adopt(meta: &dyn MetaStore, adoption: &Adoption<'_>) -> Result<(), AdoptError> {
    let Adoption { id, name, engine, partition_count, now } = *adoption;
    let name = TopicName::new(name)?;
    if name.is_internal() || name.is_reserved() {
        return Err(AdoptError::Internal(name));
    }
    if u64::from(partition_count) > PARTITIONS_PER_REQUEST_MAX {
        return Err(AdoptError::Partitions(partition_count));
    }
    let unlimited = ["retention.ms", "retention.bytes"];
    let configs: BTreeMap<_, _> =
        unlimited.map(|key| (key.to_owned(), "-1".to_owned())).into_iter().collect();
    let row = TopicRow {
        name: name.clone(),
        engine: engine.to_owned(),
        partition_count,
        created_at: now,
        configs,
    };
    let batch = MetaBatch::new()
        .expect_absent(Table::Topics, topic_key(id))
        .expect_absent(Table::Deletions, deletion_key(engine, id))
        .expect_absent(Table::TopicNames, name_key(&name))
        .put(Table::Topics, topic_key(id), row.encode())
        .put(Table::TopicNames, name_key(&name), topic_key(id));
    match meta.commit(batch).await {
        Ok(()) => Ok(()),
        Err(CommitError::Unexpected { .. }) => {
            let taken = meta.get(Table::TopicNames, name_key(&name)).await?.is_some();
            Err(if taken { AdoptError::Taken(name) } else { AdoptError::Known })
        }
        Err(CommitError::Storage(error)) => Err(error.into()),
    }
}
