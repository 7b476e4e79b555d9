//! Waiting for enough to read, without polling.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::look::Look;
use super::{Asked, Found, Looker};
use crate::environment::Environment;

/// Looks at the partitions until there is enough, something urgent, or the time is up.
pub(crate) async fn fetch(
    looker: Looker<'_>,
    environment: &dyn Environment,
    stop: &CancellationToken,
    asked: &[Asked],
) -> Vec<Found> {
    let look = looker.look(asked).await;
    // A request of no partitions closes a session: there is nothing to wait for.
    if asked.is_empty() || is_enough(&looker, &look) {
        return look.found;
    }
    let mut deadline = environment.sleep(Duration::from_millis(looker.limits.max_wait_ms));
    let parked = Parked::new(asked);
    loop {
        // Registered first, looked afterwards: a change between the two is not missed.
        parked.register();
        let look = looker.look(asked).await;
        if is_enough(&looker, &look) {
            return look.found;
        }
        tokio::select! {
            () = parked.waiter.notified() => {}
            () = &mut deadline => return looker.look(asked).await.found,
            // The broker stops: the client gets what there is and comes back to the next one.
            () = stop.cancelled() => return looker.look(asked).await.found,
        }
    }
}

fn is_enough(looker: &Looker<'_>, look: &Look) -> bool {
    look.urgent || look.bytes >= looker.limits.min_bytes || looker.limits.max_wait_ms == 0
}

/// A registration with every partition, which ends with the fetch: also when its connection closes.
struct Parked<'a> {
    asked: &'a [Asked],
    waiter: Arc<Notify>,
}

impl<'a> Parked<'a> {
    fn new(asked: &'a [Asked]) -> Self {
        Self { asked, waiter: Arc::new(Notify::new()) }
    }

    fn register(&self) {
        for (_, slot) in self.asked.iter().filter_map(|asked| asked.found.as_ref().ok()) {
            slot.signals().register(&self.waiter);
        }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        for (_, slot) in self.asked.iter().filter_map(|asked| asked.found.as_ref().ok()) {
            slot.signals().unregister(&self.waiter);
        }
    }
}
