//! What reconciliation found, from the broker's words to those of HTTP.

use strandline_broker::{Broker, EngineReconciliation, MissingPartition as Found, StrangerState};
use strandline_console::{MissingPartition, Reconciliation, Stranger};

/// What was found last of each engine.
pub(super) fn reconciliation(broker: &Broker) -> Vec<Reconciliation> {
    broker.reconciliation().into_iter().map(told).collect()
}

fn told(found: EngineReconciliation) -> Reconciliation {
    let strangers = found.strangers.iter().map(|stranger| {
        let (state, bytes, since, purge_at) = match stranger.state {
            StrangerState::Quarantined { since, bytes, purge_at } => {
                ("quarantined", bytes.get(), Some(since), purge_at)
            }
            StrangerState::Left => ("left", 0, None, None),
        };
        Stranger {
            topic_id: stranger.id.topic_id.to_string(),
            partition: stranger.id.index.get(),
            state,
            bytes,
            since,
            purge_at,
        }
    });
    Reconciliation {
        checked_at: found.checked_at,
        known: found.known_count,
        pending: found.pending_count,
        foreign: found.foreign,
        strangers: strangers.collect(),
        missing: found.missing.iter().map(partition).collect(),
        damaged: found.damaged.iter().map(partition).collect(),
        unreadable: found.unreadable.iter().map(partition).collect(),
        engine: found.engine,
    }
}

fn partition(found: &Found) -> MissingPartition {
    MissingPartition {
        topic: found.topic.clone(),
        topic_id: found.id.topic_id.to_string(),
        partition: found.id.index.get(),
        what: found.what.clone(),
    }
}
