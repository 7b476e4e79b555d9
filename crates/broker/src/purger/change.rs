//! What people change of a pending deletion: stop it and let it go on, hurry it, take it back.

use std::sync::Arc;

use strandline_model::config::{AlterOp, Alteration};
use strandline_model::{TopicId, TopicName};
use strandline_partition::deletion::Hold;
use strandline_storage::{CommitError, ErrorKind, MetaBatch, StorageError, Table};

use super::{DeletionStatus, Entry, Purger};
use crate::Broker;
use crate::configs::{Change, ConfigResource};
use crate::topic::{DeletionRow, Registry, Topic, UndeleteError};

/// What stops all deletions.
const PAUSED: &str = "deletion.paused";

/// What becomes of one pending deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionAction {
    /// No step begins until somebody says so, however often the broker starts.
    Pause,
    /// Steps may begin.
    Resume,
    /// The pause after a failure ends.
    Retry,
    /// The grace ends: from now on the topic can't be brought back.
    Purge,
}

/// Why a pending deletion was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeletionError {
    /// Nothing is known of it.
    #[error("no deletion of this id is pending: it never was, or nothing is left of the topic")]
    Unknown,
    /// There is nothing to try again.
    #[error("the last step did not fail, or a step is under way: there is nothing to try again")]
    NotFailed,
    /// All are stopped where this can't change it.
    #[error("{0}")]
    Paused(String),
    /// The metadata store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Purger {
    /// Changes the row of a pending deletion as `change` says; returns it as it is kept then. `None`:
    /// nothing is pending under this id.
    pub(super) async fn amend(
        &self,
        id: TopicId,
        change: impl FnOnce(&DeletionRow) -> Option<DeletionRow>,
    ) -> Result<Option<DeletionRow>, StorageError> {
        let permit = self.changing.acquire().await.expect("the semaphore is never closed");
        let Some(entry) = self.entry(id) else { return Ok(None) };
        let new = match change(&entry.row) {
            Some(new) if new != entry.row => new,
            _ => return Ok(Some(entry.row)),
        };
        let value = new.encode();
        let batch = MetaBatch::new()
            .expect_equals(Table::Deletions, new.key(), entry.kept.clone())
            .put(Table::Deletions, new.key(), value.clone());
        match self.parts.meta.commit(batch).await {
            Ok(()) => {}
            Err(CommitError::Storage(error)) => return Err(error),
            Err(CommitError::Unexpected { .. }) => {
                self.read_again(&entry).await?;
                let message = "the deletion changed meanwhile";
                return Err(StorageError::new(ErrorKind::Unavailable, message));
            }
        }
        self.update(id, |entry| entry.take_row(new.clone(), value));
        drop(permit);
        Ok(Some(new))
    }

    /// Takes what is kept of a deletion: an earlier change may have been kept though its commit was
    /// answered with an error. The caller holds the permit of `changing`.
    async fn read_again(&self, entry: &Entry) -> Result<(), StorageError> {
        let id = entry.row.topic_id;
        let Some(value) = self.parts.meta.get(Table::Deletions, entry.row.key()).await? else {
            self.list.lock().entries.remove(&id);
            return Ok(());
        };
        let row = DeletionRow::decode(&entry.row.key(), value.clone()).map_err(|error| {
            StorageError::new(ErrorKind::Corrupt, "row of a deletion can't be read")
                .caused_by(error)
        })?;
        self.update(id, |entry| entry.take_row(row, value));
        Ok(())
    }

    async fn act(&self, id: TopicId, action: DeletionAction) -> Result<(), DeletionError> {
        let wall = self.parts.environment.now();
        let amended = match action {
            DeletionAction::Pause => {
                self.amend(id, |row| Some(DeletionRow { is_paused: true, ..row.clone() })).await
            }
            DeletionAction::Resume => {
                self.amend(id, |row| Some(DeletionRow { is_paused: false, ..row.clone() })).await
            }
            DeletionAction::Purge => {
                self.amend(id, |row| {
                    let not_before = row.not_before.min(wall);
                    Some(DeletionRow { not_before, ..row.clone() })
                })
                .await
            }
            DeletionAction::Retry => Ok(self.entry(id).map(|entry| entry.row)),
        };
        let row = amended?.ok_or(DeletionError::Unknown)?;
        let now = self.parts.environment.monotonic();
        let mut retried = true;
        self.update(id, |entry| match action {
            DeletionAction::Pause | DeletionAction::Resume => {}
            DeletionAction::Retry => retried = entry.turn.retry(now),
            DeletionAction::Purge => entry.turn.due = entry.turn.due.min(now),
        });
        self.changed.notify_one();
        if !retried {
            return Err(DeletionError::NotFailed);
        }
        tracing::info!(topic = %row.topic.name, %id, ?action, "pending deletion changed");
        Ok(())
    }

    /// Brings a topic back, as `name` or under its old one.
    async fn undelete(
        &self,
        registry: &Registry,
        id: TopicId,
        name: Option<TopicName>,
    ) -> Result<Arc<Topic>, UndeleteError> {
        let permit = self.changing.acquire().await.expect("the semaphore is never closed");
        let entry = self.entry(id).ok_or(UndeleteError::Unknown)?;
        if entry.row.has_begun {
            return Err(UndeleteError::Begun(entry.row.topic.name));
        }
        let name = name.unwrap_or_else(|| entry.row.topic.name.clone());
        let topic = match registry.undelete_topic(&entry.row, entry.kept.clone(), name).await {
            Ok(topic) => topic,
            Err(UndeleteError::Storage(error)) => {
                // It may be kept all the same; the next try sees what is.
                tracing::warn!(%id, %error, "topic was not undeleted");
                return Err(error.into());
            }
            Err(refused) => return Err(refused),
        };
        self.list.lock().entries.remove(&id);
        drop(permit);
        self.changed.notify_one();
        let name = Arc::from(topic.name().as_str());
        if self.parts.groups.name_topic(id, name).await.is_err() {
            // Groups that are built anew read the name themselves.
            tracing::warn!(%id, "groups were not told of an undeleted topic");
        }
        Ok(topic)
    }
}

impl Entry {
    fn take_row(&mut self, row: DeletionRow, kept: bytes::Bytes) {
        self.turn.hold = Hold::paused_if(row.is_paused);
        self.turn.has_begun = row.has_begun;
        self.row = row;
        self.kept = kept;
    }
}

impl Broker {
    /// Changes one pending deletion; durable when it returns. Tells how it stands then: `None` when
    /// nothing is left of it meanwhile.
    pub async fn change_deletion(
        self: &Arc<Self>,
        id: TopicId,
        action: DeletionAction,
    ) -> Result<Option<DeletionStatus>, DeletionError> {
        let purger = Arc::clone(self.purger());
        let acted = async move { purger.act(id, action).await };
        self.to_the_end("change deletion", acted).await??;
        Ok(self.deletion(id))
    }

    /// Stops all deletions, or lets them go on: sets `deletion.paused` for all brokers, or forgets what
    /// was set where the broker was started with what is asked for. Durable when it returns.
    pub async fn pause_deletions(self: &Arc<Self>, hold: Hold) -> Result<(), DeletionError> {
        let paused = (hold == Hold::Paused).to_string();
        let op = if self.settings().static_value(PAUSED).as_ref() == Some(&paused) {
            AlterOp::Delete
        } else {
            AlterOp::Set(paused.clone())
        };
        let alteration = Alteration { name: PAUSED.to_owned(), op };
        let change = Change::Incremental(vec![alteration]);
        let altered =
            self.alter_configs(ConfigResource::Broker(String::new()), change, false).await;
        altered.map_err(|error| DeletionError::Paused(error.to_string()))?;
        if Hold::paused_if(self.settings().broker().deletion_paused) != hold {
            let message =
                format!("{PAUSED} is set for this broker alone, which goes before {paused}");
            return Err(DeletionError::Paused(message));
        }
        Ok(())
    }

    /// Brings a deleted topic back, with its records, settings and the positions of groups; as `name`
    /// or under its old one, which is returned. Durable when it returns.
    pub async fn undelete_topic(
        self: &Arc<Self>,
        id: TopicId,
        name: Option<&str>,
    ) -> Result<String, UndeleteError> {
        let name = name.map(TopicName::new).transpose()?;
        let broker = Arc::clone(self);
        let undeleted = async move { broker.purger().undelete(broker.registry(), id, name).await };
        let topic = self.to_the_end("undelete topic", undeleted).await??;
        Ok(topic.name().to_string())
    }
}
