//! Numbers that are given out once, across restarts and crashes: reserved in blocks, in one row each.

use std::ops::Range;

use bytes::Bytes;
use strandline_model::Offset;
use strandline_storage::{CommitError, ErrorKind, MetaBatch, MetaStore, StorageError, Table};

/// The row that holds the first producer id that is not reserved yet, an i64.
pub(crate) const PRODUCER_IDS: &[u8] = b"next-producer-id";
/// The row that holds where the logs of the next memory engine begin, an i64.
const MEMORY_OFFSETS: &[u8] = b"next-memory-offset";
/// More records than a log in memory takes in one run, and few enough for millions of starts.
const MEMORY_OFFSETS_PER_RUN: i64 = 1 << 40;
/// Times that a reservation is tried again when another one was first.
const RACES_MAX: u32 = 64;

/// Reserves the next `block` numbers of the counter in the row `key`.
pub(crate) async fn reserve(
    meta: &dyn MetaStore,
    key: &'static [u8],
    block: i64,
) -> Result<Range<i64>, StorageError> {
    for _ in 0..RACES_MAX {
        if let Some(reserved) = try_reserve(meta, Bytes::from_static(key), block).await? {
            return Ok(reserved);
        }
    }
    let message = "numbers could not be reserved: others were always first";
    Err(StorageError::new(ErrorKind::Unavailable, message))
}

/// `None` when somebody else changed the row at the same time.
async fn try_reserve(
    meta: &dyn MetaStore,
    key: Bytes,
    block: i64,
) -> Result<Option<Range<i64>>, StorageError> {
    let old = meta.get(Table::Cluster, key.clone()).await?;
    let first = match &old {
        None => 0,
        Some(value) => decode(value)?,
    };
    let next = first.checked_add(block).ok_or_else(|| {
        StorageError::new(ErrorKind::Invalid, "all numbers of a counter have been given out")
    })?;
    let batch = match old {
        None => MetaBatch::new().expect_absent(Table::Cluster, key.clone()),
        Some(value) => MetaBatch::new().expect_equals(Table::Cluster, key.clone(), value),
    };
    let value = Bytes::copy_from_slice(&next.to_be_bytes());
    match meta.commit(batch.put(Table::Cluster, key, value)).await {
        Ok(()) => Ok(Some(first..next)),
        Err(CommitError::Unexpected { .. }) => Ok(None),
        Err(CommitError::Storage(error)) => Err(error),
    }
}

fn decode(value: &Bytes) -> Result<i64, StorageError> {
    let number = value.as_ref().try_into().map(i64::from_be_bytes).ok();
    number
        .filter(|&next| next >= 0)
        .ok_or_else(|| StorageError::new(ErrorKind::Corrupt, "row of a counter can't be read"))
}

/// Where the logs of a memory engine begin in this run: above all offsets of earlier runs, whose
/// logs are gone while topics, and what consumers remember, stay.
pub async fn first_memory_offset(meta: &dyn MetaStore) -> Result<Offset, StorageError> {
    let run = reserve(meta, MEMORY_OFFSETS, MEMORY_OFFSETS_PER_RUN).await?;
    Ok(Offset::new(run.start))
}
