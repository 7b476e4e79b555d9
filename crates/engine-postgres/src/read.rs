//! Reading: from memory what was appended or read last, by index what is older.

use bytes::{Bytes, BytesMut};
use strandline_model::{Offset, Timestamp};
use strandline_records::{BatchView, batches};
use strandline_storage::{
    BatchBytes, BatchInfo, BatchPiece, ErrorKind, Minimum, ReadError, ReadLimit, StorageError,
};

use crate::cache::Entry;
use crate::connection::Params;
use crate::facts::{Chunk, Facts};
use crate::handle::PgLog;
use crate::sql::Query;
use crate::vitals::count;

/// Bytes that are asked of the database at once, beyond the first entry.
const FETCH_BYTES_MAX: u64 = 1 << 20;

/// Batches smaller than this are copied together: a socket takes a few large pieces sooner than many
/// small ones.
const PIECE_BYTES_MIN: usize = 4096;

/// How often a read begins anew because the chunks that it reads were replaced.
const RESTARTS_MAX: usize = 8;

/// A part of a chunk that is to be read.
#[derive(Clone, Copy, Debug)]
struct Part {
    number: i64,
    next: Offset,
}

/// What a read has and may still take.
struct Reading {
    done: BatchBytes,
    small: BytesMut,
    left: u64,
    owes_one: bool,
    upto: Offset,
}

impl Reading {
    /// Takes what belongs to the read of an entry. False when the read is at its end.
    fn take(&mut self, data: &Bytes, from: Offset) -> Result<bool, StorageError> {
        let mut position = 0;
        for batch in batches(data) {
            let batch = batch.map_err(damaged)?;
            let size = batch.bytes().len();
            let begin = position;
            position += size;
            let (base, next) = offsets(&batch)?;
            if next <= from {
                continue;
            }
            if base >= self.upto || size as u64 > self.left && !self.owes_one {
                return Ok(false);
            }
            self.owes_one = false;
            self.left = self.left.saturating_sub(size as u64);
            self.push(data.slice(begin..position));
        }
        Ok(true)
    }

    fn push(&mut self, batch: Bytes) {
        if batch.len() < PIECE_BYTES_MIN {
            self.small.extend_from_slice(&batch);
        } else {
            self.flush();
            self.done.push(BatchPiece::Memory(batch));
        }
    }

    fn flush(&mut self) {
        self.done.push(BatchPiece::Memory(self.small.split().freeze()));
    }

    fn finish(mut self) -> BatchBytes {
        self.flush();
        self.done
    }
}

impl PgLog {
    pub(crate) async fn read_batches(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> Result<BatchBytes, ReadError> {
        self.shared.vitals().check_lease()?;
        let mut reading = None;
        for _ in 0..RESTARTS_MAX {
            let Some(parts) = self.parts(from, upto)? else { return Ok(BatchBytes::empty()) };
            let fresh = Reading {
                done: BatchBytes::empty(),
                small: BytesMut::new(),
                left: limit.bytes.get(),
                owes_one: limit.minimum == Minimum::OneBatch,
                upto: upto.min(self.log.state.lock().bounds.durable_end),
            };
            if let Some(whole) = self.read_parts(&parts, from, fresh).await? {
                reading = Some(whole);
                break;
            }
        }
        // A trim, or another owner, may have come meanwhile: then what was found may begin too late.
        self.parts(from, upto)?;
        let gone = || {
            let message =
                format!("an entry is missing. partition=`{}`, from=`{from}`", self.log.id);
            ReadError::Storage(StorageError::new(ErrorKind::Corrupt, message))
        };
        Ok(reading.ok_or_else(gone)?.finish())
    }

    /// The chunks that hold what lies from `from` on; `None` when there is nothing before `upto`.
    fn parts(&self, from: Offset, upto: Offset) -> Result<Option<Vec<Part>>, ReadError> {
        let state = self.log.state.lock();
        self.check(&state)?;
        let bounds = state.bounds;
        if from < bounds.log_start || from > bounds.durable_end {
            return Err(ReadError::OutOfRange(bounds));
        }
        let upto = upto.min(bounds.durable_end);
        if from >= upto {
            return Ok(None);
        }
        let first = state.chunks.partition_point(|chunk| chunk.facts.next <= from);
        let parts = state.chunks[first..].iter().take_while(|chunk| chunk.facts.base < upto);
        let part =
            |facts: &Facts| Part { number: facts.number, next: facts.next.min(bounds.durable_end) };
        Ok(Some(parts.map(|chunk| part(&chunk.facts)).collect()))
    }

    /// `None` when an entry is not where it should be.
    async fn read_parts(
        &self,
        parts: &[Part],
        mut from: Offset,
        mut reading: Reading,
    ) -> Result<Option<Reading>, StorageError> {
        for part in parts {
            while from < part.next {
                let budget = reading.left.clamp(1, FETCH_BYTES_MAX);
                let entries = self.entries(part.number, from, budget).await?;
                if entries.is_empty() {
                    return Ok(None);
                }
                for entry in entries {
                    if !reading.take(&entry.data, from)? || entry.next >= reading.upto {
                        return Ok(Some(reading));
                    }
                    from = entry.next;
                }
            }
        }
        Ok(Some(reading))
    }

    /// Some entries of a chunk, from the one that holds `from` or comes next; none when there is none.
    async fn entries(
        &self,
        chunk: i64,
        from: Offset,
        budget: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        let counts = &self.shared.vitals().counts;
        if let Some(entry) = self.shared.tail.get(self.cache_id, chunk, from) {
            count(&counts.reads_of_tail);
            return Ok(vec![entry]);
        }
        if let Some(entry) = self.shared.past.get(self.cache_id, chunk, from) {
            count(&counts.reads_of_past);
            return Ok(vec![entry]);
        }
        count(&counts.reads_of_rows);
        let budget = budget.cast_signed();
        let values: Params<'_> = &[&self.log_id, &chunk, &from.get(), &budget];
        let rows = self.shared.query("read entries", Query::Read, values).await?;
        let mut from = from;
        let mut entries = Vec::with_capacity(rows.len());
        for row in &rows {
            let base = Offset::new(row.get(0));
            let data = Bytes::copy_from_slice(row.get::<_, &[u8]>(4));
            let entry = Entry { from: from.min(base), next: Offset::new(row.get(1)), data };
            from = entry.next;
            self.shared.past.insert(self.cache_id, chunk, entry.clone());
            entries.push(entry);
        }
        Ok(entries)
    }

    pub(crate) async fn find(&self, at: Timestamp) -> Result<Option<BatchInfo>, ReadError> {
        self.shared.vitals().check_lease()?;
        let (candidates, log_start, durable_end) = {
            let state = self.log.state.lock();
            self.check(&state)?;
            let bounds = state.bounds;
            let reaches = |chunk: &&Chunk| {
                chunk.facts.max_timestamp >= Some(at) && chunk.facts.next > bounds.log_start
            };
            let found = state.chunks.iter().filter(reaches).map(|chunk| chunk.facts);
            (found.collect::<Vec<_>>(), bounds.log_start, bounds.durable_end)
        };
        for Facts { number, base, next, .. } in candidates {
            let mut from = log_start;
            let next = next.min(durable_end);
            loop {
                let values: Params<'_> = &[
                    &self.log_id,
                    &number,
                    &from.get(),
                    &at.as_millis(),
                    &base.get(),
                    &next.get(),
                ];
                let rows = self.shared.query("find a time", Query::FindTimestamp, values).await?;
                let Some(row) = rows.first() else { break };
                let data: &[u8] = row.get(2);
                match first_at(data, at, log_start)? {
                    Some(found) if found.next_offset <= durable_end => return Ok(Some(found)),
                    Some(_) => return Ok(None),
                    // The batch that reaches it lies below the log start.
                    None => from = Offset::new(row.get(1)),
                }
            }
        }
        Ok(None)
    }
}

/// The first batch behind `log_start` that reaches `at`.
fn first_at(
    data: &[u8],
    at: Timestamp,
    log_start: Offset,
) -> Result<Option<BatchInfo>, StorageError> {
    for batch in batches(data) {
        let batch = batch.map_err(damaged)?;
        let (base_offset, next_offset) = offsets(&batch)?;
        let Some(max_timestamp) = batch.max_timestamp().filter(|newest| *newest >= at) else {
            continue;
        };
        if next_offset > log_start {
            let leader_epoch = batch.leader_epoch().ok_or_else(unsealed)?;
            return Ok(Some(BatchInfo { base_offset, next_offset, max_timestamp, leader_epoch }));
        }
    }
    Ok(None)
}

/// The offsets of a stored batch.
pub(crate) fn offsets(batch: &BatchView<'_>) -> Result<(Offset, Offset), StorageError> {
    batch.base_offset().zip(batch.next_offset()).ok_or_else(unsealed)
}

fn unsealed() -> StorageError {
    StorageError::new(ErrorKind::Corrupt, "a stored batch has no offset or no epoch")
}

pub(crate) fn damaged(error: strandline_records::BatchError) -> StorageError {
    StorageError::new(ErrorKind::Corrupt, "a stored batch is damaged").caused_by(error)
}
