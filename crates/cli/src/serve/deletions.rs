//! Pending deletions: what HTTP tells of them, and what people ask for there, as the broker has it.

use std::sync::Arc;

use strandline_broker::{
    Broker, DeletionAction, DeletionError, DeletionStatus, Hold, UndeleteError,
};
use strandline_console::{Deletion, DeletionChange, DeletionChanged, DeletionRefused};
use strandline_model::TopicId;

/// All of them, the oldest first.
pub(super) fn pending(broker: &Broker) -> Vec<Deletion> {
    broker.deletions().into_iter().map(deletion).collect()
}

/// Does what is asked.
pub(super) async fn change(
    broker: &Arc<Broker>,
    change: DeletionChange,
) -> Result<DeletionChanged, DeletionRefused> {
    let (id, action) = match change {
        DeletionChange::PauseAll => return change_all(broker, Hold::Paused).await,
        DeletionChange::ResumeAll => return change_all(broker, Hold::Free).await,
        DeletionChange::Undelete { id, name } => {
            let undeleted = broker.undelete_topic(parsed(&id)?, name.as_deref()).await;
            return undeleted.map(DeletionChanged::Undeleted).map_err(not_undeleted);
        }
        DeletionChange::Pause(id) => (id, DeletionAction::Pause),
        DeletionChange::Resume(id) => (id, DeletionAction::Resume),
        DeletionChange::Retry(id) => (id, DeletionAction::Retry),
        DeletionChange::Purge(id) => (id, DeletionAction::Purge),
    };
    let changed = broker.change_deletion(parsed(&id)?, action).await.map_err(refused)?;
    Ok(DeletionChanged::Pending(changed.into_iter().map(deletion).collect()))
}

async fn change_all(broker: &Arc<Broker>, hold: Hold) -> Result<DeletionChanged, DeletionRefused> {
    broker.pause_deletions(hold).await.map_err(refused)?;
    Ok(DeletionChanged::Pending(pending(broker)))
}

fn parsed(id: &str) -> Result<TopicId, DeletionRefused> {
    id.parse().map_err(|error| DeletionRefused::Invalid(format!("{id}: {error}")))
}

fn refused(error: DeletionError) -> DeletionRefused {
    let words = error.to_string();
    match error {
        DeletionError::Unknown => DeletionRefused::Unknown(words),
        DeletionError::NotFailed | DeletionError::Paused(_) => DeletionRefused::Conflict(words),
        DeletionError::Storage(_) => DeletionRefused::Unavailable(words),
    }
}

fn not_undeleted(error: UndeleteError) -> DeletionRefused {
    let words = error.to_string();
    match error {
        UndeleteError::Unknown => DeletionRefused::Unknown(words),
        UndeleteError::Name(_) | UndeleteError::Internal(_) => DeletionRefused::Invalid(words),
        UndeleteError::Begun(_) | UndeleteError::Taken(_) | UndeleteError::Collides { .. } => {
            DeletionRefused::Conflict(words)
        }
        UndeleteError::Storage(_) => DeletionRefused::Unavailable(words),
    }
}

fn deletion(status: DeletionStatus) -> Deletion {
    let left_bytes = status.left().get();
    Deletion {
        id: status.id.to_string(),
        topic: status.topic,
        engine: status.engine,
        state: status.state,
        deleted_at: status.deleted_at,
        client_id: status.client_id,
        address: status.address,
        grace_until: status.grace_until,
        can_undelete: status.can_undelete,
        partitions: status.partition_count,
        partitions_left: status.partitions_left,
        bytes: status.bytes.get(),
        freed_bytes: status.freed.get(),
        left_bytes,
        failures: status.failures,
        last_error: status.last_error,
        last_error_at: status.last_error_at,
        next_step_at: status.next_step_at,
    }
}
