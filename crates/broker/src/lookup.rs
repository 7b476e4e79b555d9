//! Finding offsets by time: the engine finds the batch, the batch's records say the rest.

use strandline_model::{ByteCount, LeaderEpoch, Limits, Offset, Timestamp};
use strandline_records::{BatchView, Compression, batches};
use strandline_storage::{ErrorKind, Minimum, ReadError, ReadLimit, StorageError};

use crate::partition::{Partition, into_memory};

/// Times that the newest record is looked for while newer ones are appended.
const NEWEST_TRIES_MAX: u32 = 16;
/// Bytes read at a time when the batch that the engine found has nothing after all.
const STEP: ByteCount = ByteCount::mib(1);
/// More is looked through on a thread that may take its time.
const CHEAP_BYTES_MAX: usize = 64 * 1024;

/// A record that was found, as the wire tells of it; −1 stands for what is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) leader_epoch: i32,
}

/// The first of the durable records that have the newest timestamp.
pub(crate) async fn newest_record(partition: &Partition) -> Result<Option<Position>, StorageError> {
    for _ in 0..NEWEST_TRIES_MAX {
        // Chunks know of a batch before it is durable. Then its record is looked for in vain, and
        // what was written by now is waited for.
        let written_end = partition.bounds().written_end;
        let chunks = partition.log().chunks();
        let newest = chunks.iter().filter_map(|chunk| chunk.max_timestamp).max();
        let Some(newest) = newest else { return Ok(None) };
        if let Some(found) = first_at_or_after(partition, newest).await? {
            return Ok(Some(found));
        }
        partition.log().durable(written_end).await?;
    }
    let message = "newest record was newer each time that it was looked for";
    Err(StorageError::new(ErrorKind::Unavailable, message))
}

/// The first durable record whose timestamp is at least `at`.
pub(crate) async fn first_at_or_after(
    partition: &Partition,
    at: Timestamp,
) -> Result<Option<Position>, StorageError> {
    let found = match partition.log().find_timestamp(at).await {
        Ok(found) => found,
        Err(ReadError::Storage(error)) => return Err(error),
        // Trimmed to its end meanwhile: nothing is left.
        Err(ReadError::OutOfRange(_)) => return Ok(None),
    };
    let Some(batch) = found else { return Ok(None) };
    // Nearly always the first batch has the record. It has not when all that are new enough lie
    // below the log start, or when its header promised too much.
    let mut next = batch.base_offset;
    let bounds = partition.bounds();
    let mut step = ByteCount::ZERO;
    while next < bounds.durable_end {
        let limit = ReadLimit { bytes: step, minimum: Minimum::OneBatch };
        let read = match partition.log().read(next, bounds.durable_end, limit).await {
            Ok(read) => into_memory(read).await?,
            Err(ReadError::Storage(error)) => return Err(error),
            Err(ReadError::OutOfRange(_)) => return Ok(None),
        };
        let (after, position) = if is_cheap(&read) {
            search(&read, at, bounds.log_start)?
        } else {
            // This thread serves others.
            tokio::task::spawn_blocking(move || search(&read, at, bounds.log_start))
                .await
                .map_err(|_| {
                    StorageError::new(ErrorKind::Unavailable, "search was given up at shutdown")
                })??
        };
        if position.is_some() || after <= next {
            return Ok(position);
        }
        next = after;
        step = STEP;
    }
    Ok(None)
}

/// Whether looking through these batches takes no longer than a hop to another thread: a little that
/// is compressed may be a lot inside.
fn is_cheap(bytes: &[u8]) -> bool {
    let is_plain = |batch: Result<BatchView<'_>, _>| {
        batch.is_ok_and(|batch| batch.attributes().compression() == Some(Compression::None))
    };
    bytes.len() <= CHEAP_BYTES_MAX && batches(bytes).all(is_plain)
}

/// The first record at or after `at` among these batches, and the offset after the last of them.
fn search(
    bytes: &[u8],
    at: Timestamp,
    log_start: Offset,
) -> Result<(Offset, Option<Position>), StorageError> {
    let damaged = || StorageError::new(ErrorKind::Corrupt, "batch in the log is damaged");
    let mut after = Offset::ZERO;
    for batch in batches(bytes) {
        let batch = batch.map_err(|error| damaged().caused_by(error))?;
        after = batch.next_offset().ok_or_else(damaged)?;
        let found = batch
            .first_record_since(at, log_start, Limits::production().batch_decompressed_bytes_max)
            .map_err(|error| damaged().caused_by(error))?;
        if let Some(record) = found {
            let position = Position {
                offset: record.offset.get(),
                timestamp: record.timestamp.as_millis(),
                leader_epoch: batch.leader_epoch().map_or(-1, LeaderEpoch::get),
            };
            return Ok((after, Some(position)));
        }
    }
    Ok((after, None))
}
