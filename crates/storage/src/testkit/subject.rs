//! An open log under test, with what was appended to it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strandline_model::{
    ByteCount, LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId,
};

use super::{Engine, Recorder, TestBatch};
use crate::{
    AppendError, CommitLog, Durability, Found, LogSettings, Minimum, OpenLog, Opened, ReadLimit,
    Ticket,
};

/// Partition `index` of the topic that the cases use.
pub const fn partition(index: u32) -> PartitionId {
    PartitionId::new(TopicId::from_bytes([0x42; 16]), PartitionIndex::new(index))
}

/// Chunks of 1 MiB that never grow old, everything synced.
pub const fn settings() -> LogSettings {
    LogSettings {
        segment_bytes: ByteCount::mib(1),
        segment_records: u64::MAX,
        segment_age: Duration::MAX,
        index_interval_bytes: ByteCount::new(512),
        durability: Durability::Commit,
    }
}

/// Opens partition `index` with [`settings`], at epoch 0 or later.
pub fn open_request(index: u32, listener: &Arc<Recorder>) -> OpenLog {
    let listener = Arc::clone(listener);
    OpenLog { id: partition(index), at_least: LeaderEpoch::ZERO, settings: settings(), listener }
}

/// An open log.
#[derive(Debug)]
pub struct Subject {
    /// The handle.
    pub log: Arc<dyn CommitLog>,
    /// The epoch that it was opened with.
    pub epoch: LeaderEpoch,
    /// The state in which it was.
    pub found: Found,
    /// What the engine told its owner.
    pub heard: Arc<Recorder>,
}

/// One batch that was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its offsets.
    pub offsets: Range<Offset>,
    /// Its bytes.
    pub bytes: Bytes,
    /// The newest timestamp of its records.
    pub timestamp: Option<Timestamp>,
}

impl Subject {
    /// Opens partition `index` with [`settings`].
    pub async fn open(engine: &Engine, index: u32) -> Self {
        Self::open_at_least(engine, index, LeaderEpoch::ZERO).await
    }

    /// The same with an epoch of at least `at_least`.
    pub async fn open_at_least(engine: &Engine, index: u32, at_least: LeaderEpoch) -> Self {
        let heard = Arc::new(Recorder::default());
        let request = OpenLog { at_least, ..open_request(index, &heard) };
        let Opened { log, epoch, found } =
            engine.logs.open(request).await.expect("a healthy log opens");
        heard.watch(&log);
        Self { log, epoch, found, heard }
    }

    /// Submits `batch` at the end, waiting while the engine is busy.
    pub async fn submit(&self, batch: TestBatch) -> (Appended, Ticket) {
        let at = self.log.bounds().written_end;
        let sealed = batch.seal(at, self.epoch);
        let appended = Appended {
            offsets: at..sealed.next_offset(),
            bytes: sealed.bytes().clone(),
            timestamp: batch.timestamp,
        };
        loop {
            match self.log.submit(at, sealed.clone()) {
                Ok(ticket) => return (appended, ticket),
                Err(AppendError::Busy) => self.log.ready().await,
                Err(error) => panic!("a healthy log takes an append: {error:?}"),
            }
        }
    }

    /// Appends `batch` and waits until it is durable.
    pub async fn append(&self, batch: TestBatch) -> Appended {
        let (appended, ticket) = self.submit(batch).await;
        ticket.await.expect("a healthy log makes appends durable");
        appended
    }

    /// Appends `count` batches of one to four records each.
    pub async fn append_some(&self, count: u32) -> Vec<Appended> {
        let mut all = Vec::new();
        for number in 0..count {
            all.push(self.append(TestBatch::of(1 + number % 4)).await);
        }
        all
    }

    /// Reads once, from `from` on.
    pub async fn read(&self, from: Offset, upto: Offset, limit: ReadLimit) -> Bytes {
        let batches = self.log.read(from, upto, limit).await.expect("a healthy log is read");
        batches.read_to_memory().expect("what was read is there")
    }

    /// Reads everything from `from` to the durable end, in as many reads as it takes.
    pub async fn read_all(&self, from: Offset) -> Bytes {
        let upto = self.log.bounds().durable_end;
        let limit = ReadLimit { bytes: ByteCount::mib(64), minimum: Minimum::OneBatch };
        let mut all = Vec::new();
        let mut next = from;
        while next < upto {
            let bytes = self.read(next, upto, limit).await;
            let last = strandline_records::batches(&bytes).last().expect("every read gets on");
            next = last.expect("whole batches").next_offset().expect("sealed batches");
            all.extend_from_slice(&bytes);
        }
        all.into()
    }

    /// Checks that the log holds exactly `expected`, from the batch that holds its start on.
    pub async fn assert_holds(&self, expected: &[Appended]) {
        let bounds = self.log.bounds();
        let kept = expected.iter().filter(|batch| batch.offsets.end > bounds.log_start);
        let bytes = kept.flat_map(|batch| batch.bytes.to_vec()).collect::<Vec<_>>();
        assert_eq!(self.read_all(bounds.log_start).await, bytes);
        let end = expected.last().map_or(Offset::ZERO, |batch| batch.offsets.end);
        assert_eq!(bounds.durable_end, end);
        assert_eq!(bounds.written_end, end);
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.heard.complaints(), Vec::<String>::new());
        }
    }
}
