//! Reading: from every offset, within every limit, out of range, by timestamp.

use bytes::Bytes;
use strandline_model::{ByteCount, Offset, OffsetDelta, Timestamp};

use super::{Appended, Factory, Subject, TestBatch, settings};
use crate::{BatchInfo, LogSettings, Minimum, ReadError, ReadLimit};

const ALL: ReadLimit = ReadLimit { bytes: ByteCount::mib(64), minimum: Minimum::OneBatch };

fn bytes_of<'a>(batches: impl IntoIterator<Item = &'a Appended>) -> Bytes {
    batches.into_iter().flat_map(|batch| batch.bytes.to_vec()).collect()
}

fn offsets(begin: Offset, end: Offset) -> impl Iterator<Item = Offset> {
    (begin.get()..end.get()).map(Offset::new)
}

/// A read begins with the batch that holds its offset, wherever in the batch that is.
pub async fn a_read_begins_with_the_batch_that_holds_its_offset(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let appended = subject.append_some(12).await;
    let end = subject.log.bounds().durable_end;
    for from in offsets(Offset::ZERO, end) {
        let expected = bytes_of(appended.iter().filter(|batch| batch.offsets.end > from));
        assert_eq!(subject.read(from, end, ALL).await, expected, "from {from}");
    }
    assert_eq!(subject.read(end, end, ALL).await, Bytes::new());
}

/// A read ends before the first batch that begins at or after `upto`.
pub async fn a_read_ends_before_upto(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let appended = subject.append_some(8).await;
    let end = subject.log.bounds().durable_end;
    for from in offsets(Offset::ZERO, end) {
        for upto in offsets(from.next(), end.next()) {
            let expected = appended
                .iter()
                .filter(|batch| batch.offsets.end > from && batch.offsets.start < upto);
            assert_eq!(subject.read(from, upto, ALL).await, bytes_of(expected), "{from}..{upto}");
        }
    }
}

/// A read stops before the batch that would exceed its limit; the first one comes all the same if
/// the reader asks for it.
pub async fn a_read_keeps_within_its_limit(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let appended = subject.append_some(5).await;
    let end = subject.log.bounds().durable_end;
    let total = bytes_of(&appended).len();
    for limit in 0..=total + 1 {
        let mut fits = 0;
        let within = appended.iter().take_while(|batch| {
            fits += batch.bytes.len();
            fits <= limit
        });
        let within = bytes_of(within);
        let bytes = ByteCount::new(limit as u64);
        let nothing = ReadLimit { bytes, minimum: Minimum::Nothing };
        assert_eq!(subject.read(Offset::ZERO, end, nothing).await, within, "limit {limit}");
        let one = ReadLimit { bytes, minimum: Minimum::OneBatch };
        let expected = if within.is_empty() { bytes_of(appended.first()) } else { within };
        assert_eq!(subject.read(Offset::ZERO, end, one).await, expected, "limit {limit}");
    }
}

/// A reader gets through a log of many chunks, whether or not a read crosses their borders.
pub async fn reads_get_through_many_chunks(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(1), ..settings() });
    let appended = subject.append_some(60).await;
    assert!(subject.log.chunks().len() > 3, "small chunks");
    let end = subject.log.bounds().durable_end;
    for from in offsets(Offset::ZERO, end) {
        let expected = bytes_of(appended.iter().filter(|batch| batch.offsets.end > from));
        assert_eq!(subject.read_all(from).await, expected, "from {from}");
    }
}

/// Batches of any size come back as they went in, small limits or large.
pub async fn batches_of_all_sizes_come_back(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut appended = Vec::new();
    for value_bytes in [0, 1, 400, 4000, 5000, 70_000, 3, 300_000, 2, 1_000_000, 10] {
        appended.push(subject.append(TestBatch::of(2).value_bytes(value_bytes)).await);
    }
    subject.assert_holds(&appended).await;
    let end = subject.log.bounds().durable_end;
    for batch in &appended {
        let one = ReadLimit { bytes: ByteCount::ZERO, minimum: Minimum::OneBatch };
        assert_eq!(subject.read(batch.offsets.start, end, one).await, batch.bytes);
    }
}

/// Offsets below the log start and past the durable end are out of range; the error says the range.
pub async fn offsets_outside_the_log_are_out_of_range(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.append_some(10).await;
    let end = subject.log.bounds().durable_end;
    let log_start = Offset::new(4);
    subject.log.trim(log_start).await.expect("trims");
    let bounds = subject.log.bounds();
    let outside = [Offset::ZERO, Offset::new(3), end.next(), end + OffsetDelta::new(100_000)];
    for from in outside {
        match subject.log.read(from, end, ALL).await {
            Err(ReadError::OutOfRange(range)) => assert_eq!(range, bounds, "from {from}"),
            other => panic!("from {from}: {other:?}"),
        }
    }
    for from in [log_start, end] {
        subject.log.read(from, end, ALL).await.expect("the borders are in range");
    }
}

/// What was read stays readable when the log goes on, rolls, and is trimmed above it.
pub async fn bytes_outlive_a_trim(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let appended = subject.append_some(10).await;
    let end = subject.log.bounds().durable_end;
    let read = subject.log.read(Offset::ZERO, end, ALL).await.expect("reads");
    subject.log.roll().await.expect("rolls");
    subject.append_some(10).await;
    subject.log.trim(end).await.expect("trims");
    assert_eq!(read.read_to_memory().expect("still there"), bytes_of(&appended));
}

/// A lookup finds the first batch whose newest timestamp is at least the one asked for.
pub async fn a_timestamp_finds_the_first_batch_that_reaches_it(factory: &mut impl Factory) {
    let engine = factory.make().await;
    // In many small chunks, and in one.
    for (index, segment_bytes) in [(0, ByteCount::new(500)), (1, ByteCount::mib(1))] {
        let subject = Subject::open(&engine, index).await;
        subject.log.configure(LogSettings { segment_bytes, ..settings() });
        find_timestamps(&subject, index == 0).await;
    }
}

async fn find_timestamps(subject: &Subject, in_many: bool) {
    // Producers' clocks differ, and some records have no time at all.
    let stamps =
        [Some(50), Some(40), None, Some(90), Some(60), Some(0), Some(120), None, Some(100)];
    let mut appended = Vec::new();
    for stamp in stamps.iter().cycle().take(30) {
        let batch = TestBatch::of(2).stamped(stamp.map(Timestamp::from_millis));
        appended.push(subject.append(batch).await);
    }
    assert_eq!(subject.log.chunks().len() > 3, in_many, "as large as they should be");
    for log_start in [0, 4, 5, 13, 40].map(Offset::new) {
        subject.log.trim(log_start).await.expect("trims");
        for at in (0..=130).step_by(10).map(Timestamp::from_millis) {
            let expected = appended
                .iter()
                .filter(|batch| batch.offsets.end > log_start)
                .find(|batch| batch.timestamp >= Some(at))
                .map(|batch| BatchInfo {
                    base_offset: batch.offsets.start,
                    next_offset: batch.offsets.end,
                    max_timestamp: batch.timestamp.expect("it reaches one"),
                    leader_epoch: subject.epoch,
                });
            let found = subject.log.find_timestamp(at).await.expect("looks");
            assert_eq!(found, expected, "at {at} from {log_start}");
        }
    }
}
