//! Deleting a topic: one commit, after which its name is free and its bytes are a pending deletion.

use std::sync::Arc;

use strandline_model::Timestamp;
use strandline_storage::{CommitError, MetaBatch, StorageError, Table};

use super::{DeletionRow, Registry, Topic, TopicRow, name_key, topic_key};
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

impl Registry {
    /// Deletes `topic`: the name is free, and the pending deletion durable, when this returns.
    pub(crate) async fn delete_topic(
        &self,
        topic: &Arc<Topic>,
        now: Timestamp,
        grace_ms: i64,
    ) -> Result<DeletionRow, DeleteError> {
        for _ in 0..RACES_MAX {
            let row = self.row_of(topic).await?.ok_or(DeleteError::UnknownTopic)?;
            let key = topic_key(topic.id());
            let deletion = DeletionRow {
                topic_id: topic.id(),
                deleted_at: now,
                not_before: now.plus_millis(grace_ms),
                topic: row.clone(),
            };
            let batch = MetaBatch::new()
                .expect_equals(Table::Topics, key.clone(), row.encode())
                .delete(Table::Topics, key)
                .delete(Table::TopicNames, name_key(&row.name))
                .put(Table::Deletions, deletion.key(), deletion.encode());
            match self.meta.commit(batch).await {
                Ok(()) => {
                    self.remove(topic);
                    topic.delete();
                    tracing::info!(topic = %topic.name(), id = %topic.id(), "topic deleted");
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
