//! Closes partitions that nobody used for a while: an open one holds indexes, what its producers did
//! last and a descriptor, a closed one little more than its rows.
//!
//! Each `log.idle.close.ms` all slots are looked at. A partition that was not used since the look before
//! is closed as a stop would close it; [`PartitionSlot`] opens it again when it is asked for.
//!
//! # Invariants
//! - What somebody has in hand is not closed, nor what is not durable yet.
//! - Whoever waits for a partition to change keeps waiting, and is woken: waiting is the slot's.
//!
//! docs/adr/0022-idle-logs.md has the reasons.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Broker;
use crate::cleaner::{Cleaner, CleanerParts};
use crate::partition::PartitionSlot;

/// Partitions that are closed at a time: their states are made durable together.
const CLOSES_AT_ONCE: usize = 64;
/// Slots that are looked at before others may have the thread.
const LOOKS: usize = 256;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct IdleCloser {
    cleaner: Arc<Cleaner>,
}

impl IdleCloser {
    /// One that shares its parts with the cleaner.
    pub(crate) const fn new(cleaner: Arc<Cleaner>) -> Self {
        Self { cleaner }
    }

    fn parts(&self) -> &CleanerParts {
        self.cleaner.parts()
    }

    /// Works until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut changes = self.parts().settings.changes();
        while self.wait(&mut changes, &stop).await {
            self.pass(&stop).await;
        }
    }

    /// Waits for the next pass, whose time may change meanwhile. False: the broker stops.
    async fn wait(&self, changes: &mut watch::Receiver<u64>, stop: &CancellationToken) -> bool {
        let CleanerParts { settings, environment, .. } = self.parts();
        let begun = environment.monotonic();
        loop {
            let waited = environment.monotonic().saturating_sub(begun);
            let pause = settings.broker().log_idle_close_ms.map(Duration::from_millis);
            let slept = async {
                match pause {
                    Some(pause) => environment.sleep(pause.saturating_sub(waited)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = slept => return true,
                Ok(()) = changes.changed() => {}
                () = stop.cancelled() => return false,
            }
        }
    }

    /// Closes what was not used since the pass before. How many that were.
    pub(crate) async fn pass(&self, stop: &CancellationToken) -> usize {
        let mut idle = Vec::new();
        let topics = self.parts().registry.all();
        let slots = topics.iter().flat_map(|topic| topic.partitions());
        for (index, slot) in slots.enumerate() {
            if (index + 1) % LOOKS == 0 {
                tokio::task::yield_now().await;
            }
            if !slot.take_use() && slot.opened().is_some() {
                idle.push(slot);
            }
        }
        let closes = stream::iter(idle).map(close).buffer_unordered(CLOSES_AT_ONCE);
        let closed = closes.take_until(stop.cancelled()).filter(|closed| {
            let closed = *closed;
            async move { closed }
        });
        closed.count().await
    }
}

impl Broker {
    /// Closes the partitions that were not used since this was last called, beside the passes that come
    /// by themselves. How many that were.
    pub async fn close_idle(&self) -> usize {
        IdleCloser::new(Arc::clone(self.cleaner())).pass(self.stop()).await
    }
}

async fn close(slot: Arc<PartitionSlot>) -> bool {
    let Some(partition) = slot.opened() else { return false };
    if let Err(error) = partition.save_state_to_close().await {
        // It stays open, and what failed shows where it is used.
        tracing::debug!(partition = %slot.id(), %error, "idle partition was not closed");
        return false;
    }
    slot.close_idle(partition)
}
