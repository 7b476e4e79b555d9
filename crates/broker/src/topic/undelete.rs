//! Bringing a deleted topic back: one commit, after which it is there as if nothing had happened.

use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{InvalidTopicName, TopicName};
use strandline_storage::{CommitError, ErrorKind, MetaBatch, StorageError, Table};

use super::{DeletionRow, Registry, Topic, TopicRow, name_key, topic_key};

/// Why a deleted topic was not brought back.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UndeleteError {
    /// Nothing is known of it.
    #[error("no deletion of this id is pending: it never was, or nothing is left of the topic")]
    Unknown,
    /// The grace is over, or somebody ended it.
    #[error("the removal of {0} has begun: it can't be brought back")]
    Begun(TopicName),
    /// The name that it is to have can't be one.
    #[error(transparent)]
    Name(#[from] InvalidTopicName),
    /// The name that it is to have is the broker's own.
    #[error("{0} is a name of the broker's own topics")]
    Internal(TopicName),
    /// Another topic has its name.
    #[error("a topic named {0} exists: the deleted one needs another name")]
    Taken(TopicName),
    /// Another topic has a name that counts as the same.
    #[error("{name} collides with topic {other}: they differ in . and _ only")]
    Collides {
        /// What it is to be called.
        name: TopicName,
        /// What is there.
        other: TopicName,
    },
    /// The metadata store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Registry {
    /// Brings the topic of `deletion` back as `name`. The row is still `kept` at that moment.
    pub(crate) async fn undelete_topic(
        &self,
        deletion: &DeletionRow,
        kept: Bytes,
        name: TopicName,
    ) -> Result<Arc<Topic>, UndeleteError> {
        self.check_name(&name, &deletion.topic.name)?;
        let id = deletion.topic_id;
        let row = TopicRow { name, ..deletion.topic.clone() };
        let batch = MetaBatch::new()
            .expect_equals(Table::Deletions, deletion.key(), kept)
            .expect_absent(Table::TopicNames, name_key(&row.name))
            .put(Table::TopicNames, name_key(&row.name), topic_key(id))
            .put(Table::Topics, topic_key(id), row.encode())
            .delete(Table::Deletions, deletion.key());
        match self.meta.commit(batch).await {
            Ok(()) => {}
            Err(CommitError::Unexpected { .. }) => {
                // An earlier try may have been kept though its commit was answered with an error.
                let there = self.meta.get(Table::Topics, topic_key(id)).await?;
                if there != Some(row.encode()) {
                    return Err(self.why_unexpected(row.name).await?);
                }
            }
            Err(CommitError::Storage(error)) => return Err(error.into()),
        }
        let topic = Arc::new(row.into_topic(id, &self.settings));
        self.insert(Arc::clone(&topic));
        // A change of the broker's configuration goes through the topics that are known by then.
        topic.refresh_settings(&self.settings);
        tracing::info!(topic = %topic.name(), %id, was = %deletion.topic.name, "topic undeleted");
        Ok(topic)
    }

    /// Why the rows are not as they were expected to be.
    async fn why_unexpected(&self, name: TopicName) -> Result<UndeleteError, StorageError> {
        let taken = self.meta.get(Table::TopicNames, name_key(&name)).await?.is_some();
        Ok(if taken {
            UndeleteError::Taken(name)
        } else {
            let message = "the deletion changed while the topic was brought back";
            StorageError::new(ErrorKind::Unavailable, message).into()
        })
    }

    fn check_name(&self, name: &TopicName, was: &TopicName) -> Result<(), UndeleteError> {
        if name.is_internal() && name != was {
            return Err(UndeleteError::Internal(name.clone()));
        }
        let image = self.image.read();
        if image.by_name.contains_key(name) {
            return Err(UndeleteError::Taken(name.clone()));
        }
        match image.colliding(name) {
            Some(other) => {
                Err(UndeleteError::Collides { name: name.clone(), other: other.clone() })
            }
            None => Ok(()),
        }
    }
}
