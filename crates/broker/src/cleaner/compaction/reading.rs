//! Reads a part of a log from one end to the other, and knows whether it has seen all of it.

use bytes::Bytes;
use strandline_model::{ByteCount, Offset};
use strandline_records::{BatchHeader, batches};
use strandline_storage::{CommitLog, ErrorKind, Minimum, ReadError, ReadLimit, StorageError};

use super::pass::Stopped;
use crate::partition::into_memory;

/// See the [module](self).
pub(super) struct Reading<'a> {
    log: &'a dyn CommitLog,
    next: Offset,
    upto: Offset,
    limit: ReadLimit,
    /// Bytes that were read.
    bytes: u64,
}

impl<'a> Reading<'a> {
    /// From the batch that holds `from` to the one that ends at `upto`.
    pub(super) fn new(log: &'a dyn CommitLog, from: Offset, upto: Offset, step: ByteCount) -> Self {
        let limit = ReadLimit { bytes: step, minimum: Minimum::OneBatch };
        Self { log, next: from, upto, limit, bytes: 0 }
    }

    /// The next batches, whole; `None` at the end.
    pub(super) async fn step(&mut self) -> Result<Option<Bytes>, Stopped> {
        if self.next >= self.upto {
            return Ok(None);
        }
        let read = match self.log.read(self.next, self.upto, self.limit).await {
            Ok(read) => into_memory(read).await?,
            // Trimmed meanwhile.
            Err(ReadError::OutOfRange(_)) => return Err(Stopped::Interrupted("it was trimmed")),
            Err(ReadError::Storage(error)) => return Err(error.into()),
        };
        let mut last = None;
        for batch in batches(&read) {
            let header = batch.and_then(|batch| BatchHeader::parse(batch.bytes()));
            let header = header.map_err(|error| {
                let message = format!("log can't be compacted. offset=`{}`", self.next);
                StorageError::new(ErrorKind::Corrupt, message).caused_by(error)
            })?;
            last = Some(header);
        }
        let Some(last) = last.filter(|last| last.next_offset > self.next) else {
            return Err(self.incomplete().into());
        };
        self.next = last.next_offset;
        self.bytes += read.len() as u64;
        Ok(Some(read))
    }

    /// Bytes that were read.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fails unless everything was seen: up to the end, and so many bytes if it is known how many.
    pub(super) fn check_whole(&self, expected: Option<u64>) -> Result<(), StorageError> {
        let has_all = expected.is_none_or(|expected| self.bytes == expected);
        if self.next == self.upto && has_all { Ok(()) } else { Err(self.incomplete()) }
    }

    fn incomplete(&self) -> StorageError {
        let (next, upto, bytes) = (self.next, self.upto, self.bytes);
        let message = format!(
            "log has less than its chunks say. reached=`{next}`, expected=`{upto}`, bytes=`{bytes}`"
        );
        StorageError::new(ErrorKind::Corrupt, message)
    }
}
