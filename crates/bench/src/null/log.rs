//! The null broker's topics: one growing file and one list of batch positions per partition.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use strandline_records::batches;

/// Larger writes make the kernel allocate huge folios: 313–500 MB/s instead of 3.5–4.2 GB/s.
const WRITE_BYTES: usize = 256 * 1024;

/// Kafka's code for a batch that fails its checks.
const CORRUPT_MESSAGE: i16 = 2;

/// All topics.
#[derive(Debug)]
pub(super) struct Logs {
    data: PathBuf,
    default_partitions: usize,
    topics: Mutex<BTreeMap<String, Arc<[Arc<Partition>]>>>,
    published: Mutex<u64>,
    moved: Condvar,
}

/// One partition.
#[derive(Debug)]
pub(super) struct Partition {
    /// The file that holds its batches.
    pub(super) file: File,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    end: Mark,
    durable: Mark,
    /// Base offset and position of each batch, ascending.
    batches: Vec<Mark>,
}

/// An offset and the place in the file where it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The offset.
    pub(super) offset: i64,
    /// Bytes from the file's start.
    pub(super) position: u64,
}

/// A part of a partition's file to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    /// Where it begins.
    pub(super) position: u64,
    /// How long it is.
    pub(super) length: usize,
    /// The high watermark.
    pub(super) high_watermark: i64,
}

impl Logs {
    /// Topics below the folder `data`; unknown ones get `default_partitions` when first named.
    pub(super) fn new(data: PathBuf, default_partitions: usize) -> Self {
        Self {
            data,
            default_partitions,
            topics: Mutex::default(),
            published: Mutex::new(0),
            moved: Condvar::new(),
        }
    }

    /// The partitions of a topic, created when it is new.
    pub(super) fn topic(
        &self,
        name: &str,
        partitions: Option<usize>,
    ) -> io::Result<Arc<[Arc<Partition>]>> {
        let mut topics = lock(&self.topics);
        if let Some(found) = topics.get(name) {
            return Ok(Arc::clone(found));
        }
        let count = partitions.unwrap_or(self.default_partitions);
        let open = |index| {
            let path = self.data.join(format!("{name}-{index}.log"));
            let file =
                File::options().read(true).write(true).create(true).truncate(true).open(path)?;
            Ok(Arc::new(Partition { file, log: Mutex::default() }))
        };
        let made: Arc<[_]> = (0..count).map(open).collect::<io::Result<Vec<_>>>()?.into();
        topics.insert(name.to_owned(), Arc::clone(&made));
        Ok(made)
    }

    /// Wakes everybody who waits for records.
    pub(super) fn publish(&self) {
        *lock(&self.published) += 1;
        self.moved.notify_all();
    }

    /// Calls `look` until it finds something or `wait` is over.
    pub(super) fn wait_for<T>(
        &self,
        wait: Duration,
        mut look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + wait;
        let mut published = lock(&self.published);
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            published =
                self.moved.wait_timeout(published, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Partition {
    /// Checks the batches, gives them their offsets and writes them. Code and base offset.
    pub(super) fn append(&self, records: &mut [u8]) -> io::Result<(i16, i64)> {
        let mut lengths = [0; 8];
        let mut count = 0;
        for batch in batches(records) {
            match batch {
                Ok(batch) if count < lengths.len() && batch.check_crc().is_ok() => {
                    lengths[count] = batch.bytes().len();
                    count += 1;
                }
                _ => return Ok((CORRUPT_MESSAGE, -1)),
            }
        }
        let mut log = lock(&self.log);
        let base = log.end;
        let mut rest = &mut *records;
        let mut mark = base;
        for &length in &lengths[..count] {
            let (batch, tail) = rest.split_at_mut(length);
            rest = tail;
            batch[..8].copy_from_slice(&mark.offset.to_be_bytes());
            batch[12..16].fill(0);
            let delta = i32::from_be_bytes([batch[23], batch[24], batch[25], batch[26]]);
            log.batches.push(mark);
            mark.offset += i64::from(delta.max(0)) + 1;
            mark.position += length as u64;
        }
        // The lock is held over the write, as offsets and bytes must keep the same order.
        let mut at = base.position;
        for piece in records.chunks(WRITE_BYTES) {
            self.file.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
        log.end = mark;
        Ok((0, base.offset))
    }

    /// The end of what is written now.
    pub(super) fn written(&self) -> Mark {
        lock(&self.log).end
    }

    /// Lets readers see everything before `end`.
    pub(super) fn publish(&self, end: Mark) {
        let mut log = lock(&self.log);
        if end.offset > log.durable.offset {
            log.durable = end;
        }
    }

    /// The high watermark.
    pub(super) fn high_watermark(&self) -> i64 {
        lock(&self.log).durable.offset
    }

    /// Whole batches from the one that holds `offset` on: about `limit` bytes, at least one batch.
    pub(super) fn region(&self, offset: i64, limit: usize) -> Option<Region> {
        let log = lock(&self.log);
        if offset >= log.durable.offset {
            return None;
        }
        let first = log.batches.partition_point(|mark| mark.offset <= offset).checked_sub(1)?;
        let position = log.batches[first].position;
        let most = position + limit as u64;
        let fit = if log.end.position <= most {
            log.batches.len()
        } else {
            log.batches.partition_point(|mark| mark.position <= most) - 1
        };
        let end =
            log.batches.get(fit.max(first + 1)).map_or(log.end.position, |mark| mark.position);
        let length = usize::try_from(end.min(log.durable.position) - position).ok()?;
        Some(Region { position, length, high_watermark: log.durable.offset })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
