//! Finding offsets by time: the engine finds the batch, the batch's records say the rest.

use bytes::Bytes;
use strandline_model::{ByteCount, LeaderEpoch, Limits, Offset, Timestamp};
use strandline_records::{BatchView, Compression, batches};
use strandline_storage::{ChunkInfo, ErrorKind, Minimum, ReadError, ReadLimit, StorageError};

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
        let bounds = partition.bounds();
        let chunks = partition.log().chunks();
        let newest = chunks.iter().filter_map(|chunk| chunk.max_timestamp).max();
        let Some(newest) = newest else { return Ok(None) };
        if let Some(found) = first_at_or_after(partition, newest).await? {
            return Ok(Some(found));
        }
        let is_cut = |chunk: &&ChunkInfo| chunk.base_offset < bounds.log_start;
        if bounds.durable_end == bounds.written_end
            && let Some(cut) = chunks.iter().rfind(is_cut)
        {
            // The chunk that the log start cuts tells of records that are gone.
            let in_cut = newest_in_cut_chunk(partition, cut.next_offset).await?;
            let whole = chunks.iter().filter(|chunk| !is_cut(chunk));
            let newest = whole.filter_map(|chunk| chunk.max_timestamp).chain(in_cut).max();
            let Some(newest) = newest else { return Ok(None) };
            if let Some(found) = first_at_or_after(partition, newest).await? {
                return Ok(Some(found));
            }
        }
        partition.log().durable(bounds.written_end).await?;
    }
    let message = "newest record was newer each time that it was looked for";
    Err(StorageError::new(ErrorKind::Unavailable, message))
}

/// The newest timestamp from the log start to the end of the chunk that holds it. Reads all of that.
async fn newest_in_cut_chunk(
    partition: &Partition,
    chunk_end: Offset,
) -> Result<Option<Timestamp>, StorageError> {
    let mut newest = None;
    let mut next = Offset::ZERO;
    while let Some(Step { bytes, log_start }) = read_step(partition, next, chunk_end, STEP).await? {
        let (after, found) =
            on_any_thread(bytes, move |bytes| newest_among(bytes, log_start)).await?;
        newest = newest.max(found);
        if after <= next {
            break;
        }
        next = after;
    }
    Ok(newest)
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
    let upto = partition.bounds().durable_end;
    let mut step = ByteCount::ZERO;
    while let Some(Step { bytes, log_start }) = read_step(partition, next, upto, step).await? {
        let (after, position) =
            on_any_thread(bytes, move |bytes| search(bytes, at, log_start)).await?;
        if position.is_some() || after <= next {
            return Ok(position);
        }
        next = after;
        step = STEP;
    }
    Ok(None)
}

/// Batches that were read, and the log start: records below it are gone, also in the first batch.
struct Step {
    bytes: Bytes,
    log_start: Offset,
}

/// Reads on from `next`, or from the log start when that lies behind it; `None` when nothing is left
/// before `upto`.
async fn read_step(
    partition: &Partition,
    next: Offset,
    upto: Offset,
    step: ByteCount,
) -> Result<Option<Step>, StorageError> {
    let limit = ReadLimit { bytes: step, minimum: Minimum::OneBatch };
    loop {
        // The batch that holds the log start begins below it, where nothing is read.
        let log_start = partition.bounds().log_start;
        let from = next.max(log_start);
        if from >= upto {
            return Ok(None);
        }
        match partition.log().read(from, upto, limit).await {
            Ok(read) => return Ok(Some(Step { bytes: into_memory(read).await?, log_start })),
            Err(ReadError::Storage(error)) => return Err(error),
            // Trimmed between the look and the read: what is left begins later. It only moves up.
            Err(ReadError::OutOfRange(_)) if partition.bounds().log_start > log_start => {}
            Err(ReadError::OutOfRange(_)) => return Ok(None),
        }
    }
}

/// Looks through `bytes` here, or on a thread that may take its time: this one serves others.
async fn on_any_thread<T: Send + 'static>(
    bytes: Bytes,
    look: impl FnOnce(&[u8]) -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    if is_cheap(&bytes) {
        return look(&bytes);
    }
    tokio::task::spawn_blocking(move || look(&bytes))
        .await
        .map_err(|_| StorageError::new(ErrorKind::Unavailable, "search was given up at shutdown"))?
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

/// The newest timestamp at or after `log_start` among these batches, and the offset after the last of
/// them.
fn newest_among(
    bytes: &[u8],
    log_start: Offset,
) -> Result<(Offset, Option<Timestamp>), StorageError> {
    let mut after = Offset::ZERO;
    let mut newest = None;
    for batch in batches(bytes) {
        let batch = batch.map_err(|error| damaged().caused_by(error))?;
        after = batch.next_offset().ok_or_else(damaged)?;
        let of_batch = if batch.base_offset() >= Some(log_start) {
            batch.max_timestamp()
        } else {
            batch
                .newest_record(log_start, Limits::production().batch_decompressed_bytes_max)
                .map_err(|error| damaged().caused_by(error))?
                .map(|record| record.timestamp)
        };
        newest = newest.max(of_batch);
    }
    Ok((after, newest))
}

fn damaged() -> StorageError {
    StorageError::new(ErrorKind::Corrupt, "batch in the log is damaged")
}
