//! Producer ids: each is given out once, across restarts and crashes.
//!
//! Ids are reserved in blocks, one metadata commit each, and given out from memory. A crash loses
//! the rest of a block, never the promise.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::ProducerId;
use strandline_storage::{MetaStore, StorageError};

use crate::counter;

/// Ids in a block: as many as Kafka's controller hands to a broker.
const BLOCK: i64 = 1_000;

/// Gives out producer ids.
#[derive(Debug)]
pub(crate) struct ProducerIds {
    meta: Arc<dyn MetaStore>,
    reserved: Mutex<Range<i64>>,
}

impl ProducerIds {
    pub(crate) const fn new(meta: Arc<dyn MetaStore>) -> Self {
        Self { meta, reserved: Mutex::new(0..0) }
    }

    /// An id that nobody has or will get.
    pub(crate) async fn allocate(&self) -> Result<ProducerId, StorageError> {
        if let Some(id) = self.reserved.lock().next() {
            return Ok(ProducerId::new(id));
        }
        let mut block = counter::reserve(&*self.meta, counter::PRODUCER_IDS, BLOCK).await?;
        let id = block.next().expect("a block has ids");
        let mut reserved = self.reserved.lock();
        // Two callers may have reserved a block each; what is left of the other one is lost.
        if reserved.is_empty() {
            *reserved = block;
        }
        Ok(ProducerId::new(id))
    }
}
