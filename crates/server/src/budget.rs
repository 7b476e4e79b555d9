//! Bytes that all connections together hold of requests that have not arrived whole.
//!
//! Small frames are free: they fit into each connection's own buffer. A large one takes from the
//! budget as it arrives, never ahead of that, so a claimed size costs nothing. When the budget is
//! used up large frames wait; a frame that does not arrive in time loses its connection, which
//! gives its share back.

use std::sync::Arc;

use strandline_model::ByteCount;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one permit.
const UNIT: u64 = 1024;

/// The shared budget.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

/// What one connection has taken; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Share(Option<OwnedSemaphorePermit>);

impl Budget {
    pub(crate) fn new(bytes: ByteCount) -> Self {
        let units = usize::try_from(bytes.get() / UNIT).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))))
    }

    /// Adds `bytes` to `share`, waiting until they are there.
    pub(crate) async fn take(&self, bytes: usize, share: &mut Share) {
        let units = u32::try_from((bytes as u64).div_ceil(UNIT)).unwrap_or(u32::MAX);
        let semaphore = Arc::clone(&self.0);
        let taken = semaphore.acquire_many_owned(units).await.expect("the budget is never closed");
        match &mut share.0 {
            Some(permit) => permit.merge(taken),
            None => share.0 = Some(taken),
        }
    }
}

impl Share {
    /// Gives everything back.
    pub(crate) fn release(&mut self) {
        self.0 = None;
    }
}
