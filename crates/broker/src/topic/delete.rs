//! Deleting a topic: one commit, after which its name is free and its bytes are a pending deletion.

use std::sync::Arc;

use strandline_model::{ByteCount, Timestamp};
use strandline_storage::{CommitError, MetaBatch, StorageError, Table};

use super::deletion_row::deletion_key;
use super::{DeletedBy, DeletionRow, Registry, Topic, TopicRow, name_key, topic_key};
use crate::Broker;
use crate::purger::stored_bytes;
use crate::row_codec::RowError;

/// Times that a deletion is tried again when the topic changed between reading and committing.
const RACES_MAX: u32 = 16;

/// Why a topic was not deleted.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum DeleteError {
    #[error("topic does not exist")]
    UnknownTopic,
    #[error("topic deletion is disabled (delete.topic.enable=false)")]
    Disabled,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What is kept of a deletion beside the topic.
#[derive(Clone, Debug)]
struct DeletionFacts {
    /// When.
    now: Timestamp,
    /// How long its bytes stay.
    grace_ms: i64,
    /// How many there are.
    bytes: ByteCount,
    /// Who asked for it.
    by: DeletedBy,
}

impl Broker {
    /// Deletes `topic`: the name is free, and the pending deletion durable, when this returns.
    pub(crate) async fn delete_topic(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        by: DeletedBy,
    ) -> Result<(), DeleteError> {
        let config = self.settings().broker();
        if !config.delete_topic_enable {
            return Err(DeleteError::Disabled);
        }
        let (now, grace_ms) = (self.environment().now(), config.deletion_grace_ms);
        let facts = DeletionFacts { now, grace_ms, bytes: self.bytes_of(topic), by };
        let (broker, topic) = (Arc::clone(self), Arc::clone(topic));
        // Before the name is free, so that nobody slips in between.
        self.let_name_rest(&topic);
        let deleted = async move {
            let deletion = broker.registry().delete_topic(&topic, facts).await?;
            broker.purger().add(deletion);
            Ok(())
        };
        self.to_the_end("delete topic", deleted).await?
    }

    /// Bytes of a topic's batches, as far as memory knows.
    fn bytes_of(&self, topic: &Topic) -> ByteCount {
        let Ok(store) = self.engines().store(topic.engine()) else { return ByteCount::ZERO };
        let ids = topic.partitions().into_iter().map(|slot| slot.id());
        ByteCount::new(ids.filter_map(|id| stored_bytes(store.as_ref(), id)).sum())
    }
}

impl Registry {
    /// Deletes `topic`: the name is free, and the pending deletion durable, when this returns.
    async fn delete_topic(
        &self,
        topic: &Arc<Topic>,
        facts: DeletionFacts,
    ) -> Result<DeletionRow, DeleteError> {
        for _ in 0..RACES_MAX {
            let key = topic_key(topic.id());
            let Some(row) = self.row_of(topic).await? else {
                // An earlier try may have been kept though its commit was answered with an error.
                let kept = self.kept_deletion(topic).await?.ok_or(DeleteError::UnknownTopic)?;
                self.forget(topic);
                return Ok(kept);
            };
            let deletion = DeletionRow {
                topic_id: topic.id(),
                deleted_at: facts.now,
                not_before: facts.now.plus_millis(facts.grace_ms),
                has_begun: false,
                is_paused: false,
                bytes: facts.bytes,
                freed: ByteCount::ZERO,
                by: facts.by.clone(),
                topic: row.clone(),
            };
            let batch = MetaBatch::new()
                .expect_equals(Table::Topics, key.clone(), row.encode())
                .delete(Table::Topics, key)
                .delete(Table::TopicNames, name_key(&row.name))
                .put(Table::Deletions, deletion.key(), deletion.encode());
            match self.meta.commit(batch).await {
                Ok(()) => {
                    self.forget(topic);
                    let DeletedBy { client_id, address } = &deletion.by;
                    tracing::info!(
                        topic = %topic.name(), id = %topic.id(), %client_id, %address, "topic deleted"
                    );
                    return Ok(deletion);
                }
                // The row changed, or went: look again.
                Err(CommitError::Unexpected { .. }) => {}
                Err(CommitError::Storage(error)) => return Err(error.into()),
            }
        }
        Err(StorageError::new(
            strandline_storage::ErrorKind::Unavailable,
            "topic changed each time that its deletion was tried",
        )
        .into())
    }

    fn forget(&self, topic: &Arc<Topic>) {
        self.remove(topic);
        topic.delete();
    }

    /// The deletion of a topic that is still known here.
    async fn kept_deletion(&self, topic: &Arc<Topic>) -> Result<Option<DeletionRow>, StorageError> {
        let is_known = self.by_id(topic.id()).is_some_and(|known| Arc::ptr_eq(&known, topic));
        if !is_known {
            return Ok(None);
        }
        let key = deletion_key(topic.engine(), topic.id());
        let Some(value) = self.meta.get(Table::Deletions, key.clone()).await? else {
            return Ok(None);
        };
        DeletionRow::decode(&key, value).map(Some).map_err(|error| {
            let kind = strandline_storage::ErrorKind::Corrupt;
            StorageError::new(kind, "row of a deletion can't be read").caused_by(error)
        })
    }

    /// The row of `topic` as it is kept now; `None` when it was deleted.
    pub(super) async fn row_of(&self, topic: &Topic) -> Result<Option<TopicRow>, StorageError> {
        let key = topic_key(topic.id());
        let Some(value) = self.meta.get(Table::Topics, key).await? else { return Ok(None) };
        TopicRow::decode(value).map(Some).map_err(|error: RowError| {
            let kind = strandline_storage::ErrorKind::Corrupt;
            StorageError::new(kind, "topic row can't be read").caused_by(error)
        })
    }
}
