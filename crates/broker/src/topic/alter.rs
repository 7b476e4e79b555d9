//! Changing a topic's own configuration: one metadata commit, then the open logs are told.

use std::sync::Arc;

use strandline_model::config::Scope;
use strandline_storage::{CommitError, ErrorKind, MetaBatch, StorageError, Table};

use super::{Registry, Topic, TopicRow, topic_key};
use crate::configs::{AlterError, Change};
use crate::settings::{ENGINE, InvalidSetting};

/// Times that a change is tried again when the topic changed between reading and committing.
const RACES_MAX: u32 = 16;

/// Why a topic's configuration was not changed.
#[derive(Debug)]
pub(crate) enum AlterTopicError {
    /// It was deleted.
    UnknownTopic,
    /// Anything else.
    Refused(Box<AlterError>),
}

impl<E: Into<AlterError>> From<E> for AlterTopicError {
    fn from(error: E) -> Self {
        Self::Refused(Box::new(error.into()))
    }
}

impl Registry {
    /// Changes what is set on `topic`, or only checks whether it could be. One change at a time.
    pub(crate) async fn alter_topic(
        &self,
        topic: &Arc<Topic>,
        change: &Change,
        validate_only: bool,
    ) -> Result<(), AlterTopicError> {
        for _ in 0..RACES_MAX {
            let old = self.row_of(topic).await?.ok_or(AlterTopicError::UnknownTopic)?;
            let configs = change.applied_to(Scope::Topic, &old.configs)?;
            self.settings.check_topic(&configs)?;
            if configs.get(ENGINE).is_some_and(|engine| engine.trim() != old.engine) {
                return Err(InvalidSetting::PinnedEngine(old.engine).into());
            }
            if validate_only {
                return Ok(());
            }
            if configs == old.configs {
                // An earlier change may have been kept though its commit was answered with an error.
                if topic.settings().overrides != configs {
                    topic.configure(self.settings.shared_topic(configs));
                }
                return Ok(());
            }
            let key = topic_key(topic.id());
            let new = TopicRow { configs, ..old.clone() };
            let batch = MetaBatch::new()
                .expect_equals(Table::Topics, key.clone(), old.encode())
                .put(Table::Topics, key, new.encode());
            match self.meta.commit(batch).await {
                Ok(()) => {
                    topic.configure(self.settings.shared_topic(new.configs));
                    tracing::info!(topic = %topic.name(), "topic configured");
                    return Ok(());
                }
                // It grew, or went: look again.
                Err(CommitError::Unexpected { .. }) => {}
                Err(CommitError::Storage(error)) => return Err(error.into()),
            }
        }
        let message = "topic changed each time that its configuration was changed";
        Err(StorageError::new(ErrorKind::Unavailable, message).into())
    }

    /// Resolves the settings of all topics anew, after the broker's configuration changed.
    pub(crate) fn refresh_settings(&self) {
        for topic in self.all() {
            topic.refresh_settings(&self.settings);
        }
    }
}
