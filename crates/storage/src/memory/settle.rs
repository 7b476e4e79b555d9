//! The task that makes appends durable: the engine's stand-in for a disk's sync.

use std::sync::Arc;

use strandline_model::{LeaderEpoch, Offset};
use tokio::sync::mpsc;

use super::log::Log;
use crate::{Completion, LogListener, StorageError};

/// One thing to settle, in the order in which it happened.
pub(super) enum Settlement {
    /// An append that ends at `end`.
    Append { log: Arc<Log>, epoch: LeaderEpoch, end: Offset, completion: Completion },
    /// A handle that died.
    Death { listener: Arc<dyn LogListener>, error: StorageError },
    /// Somebody wants to know when everything before is settled.
    Barrier(Completion),
}

/// Settlements that are taken from the queue at once.
const ROUND_MAX: usize = 256;

/// Runs until nobody can append any more.
pub(super) async fn run(mut queue: mpsc::Receiver<Settlement>) {
    let mut round = Vec::with_capacity(ROUND_MAX);
    while queue.recv_many(&mut round, ROUND_MAX).await > 0 {
        round.drain(..).for_each(Settlement::settle);
    }
}

impl Settlement {
    fn settle(self) {
        match self {
            Self::Append { log, epoch, end, completion } => {
                completion.settle(log.become_durable(epoch, end));
            }
            Self::Death { listener, error } => listener.died(&error),
            Self::Barrier(completion) => completion.settle(Ok(())),
        }
    }
}
