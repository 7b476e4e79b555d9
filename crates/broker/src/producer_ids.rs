//! Producer ids: each is given out once, across restarts and crashes.
//!
//! Ids are reserved in blocks, one metadata commit each, and given out from memory. A crash loses
//! the rest of a block, never the promise.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::ProducerId;
use strandline_storage::{CommitError, ErrorKind, MetaBatch, MetaStore, StorageError, Table};

/// The row that holds the first id that is not reserved yet, an i64.
const NEXT_KEY: &[u8] = b"next-producer-id";
/// Ids in a block: as many as Kafka's controller hands to a broker.
const BLOCK: i64 = 1_000;
/// Times that a reservation is tried again when another one was first.
const RACES_MAX: u32 = 64;

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
        for _ in 0..RACES_MAX {
            if let Some(id) = self.reserved.lock().next() {
                return Ok(ProducerId::new(id));
            }
            if let Some(block) = self.reserve().await? {
                let mut reserved = self.reserved.lock();
                // Two callers may have reserved a block each; what is left of the other one is lost.
                if reserved.is_empty() {
                    *reserved = block;
                }
            }
        }
        let message = "producer ids could not be reserved: others were always first";
        Err(StorageError::new(ErrorKind::Unavailable, message))
    }

    /// Reserves a block; `None` when somebody else changed the row at the same time.
    async fn reserve(&self) -> Result<Option<Range<i64>>, StorageError> {
        let key = Bytes::from_static(NEXT_KEY);
        let old = self.meta.get(Table::Cluster, key.clone()).await?;
        let first = match &old {
            None => 0,
            Some(value) => decode(value)?,
        };
        let next = first.checked_add(BLOCK).ok_or_else(|| {
            StorageError::new(ErrorKind::Invalid, "all producer ids have been given out")
        })?;
        let batch = match old {
            None => MetaBatch::new().expect_absent(Table::Cluster, key.clone()),
            Some(value) => MetaBatch::new().expect_equals(Table::Cluster, key.clone(), value),
        };
        let value = Bytes::copy_from_slice(&next.to_be_bytes());
        match self.meta.commit(batch.put(Table::Cluster, key, value)).await {
            Ok(()) => Ok(Some(first..next)),
            Err(CommitError::Unexpected { .. }) => Ok(None),
            Err(CommitError::Storage(error)) => Err(error),
        }
    }
}

fn decode(value: &Bytes) -> Result<i64, StorageError> {
    value.as_ref().try_into().map(i64::from_be_bytes).ok().filter(|&next| next >= 0).ok_or_else(
        || StorageError::new(ErrorKind::Corrupt, "row of the next producer id can't be read"),
    )
}
