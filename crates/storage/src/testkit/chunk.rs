//! Chunks: how they are closed, described and dropped; trimming.

use std::time::Duration;

use strandline_model::{ByteCount, Offset, Timestamp};

use super::{Appended, Factory, Stop, Subject, TestBatch, settings};
use crate::{ChunkId, ChunkInfo, ChunkState, LogBounds, LogSettings};

/// Checks what holds of any list of chunks over what was appended.
pub(super) fn assert_chunks_describe(
    chunks: &[ChunkInfo],
    bounds: LogBounds,
    appended: &[Appended],
) {
    for (position, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk.id, ChunkId(chunk.base_offset));
        assert!(chunk.base_offset < chunk.next_offset, "an empty chunk: {chunk:?}");
        assert!(chunk.next_offset > bounds.log_start, "wholly below the log start: {chunk:?}");
        let is_last = position + 1 == chunks.len();
        assert!(is_last || chunk.state == ChunkState::Sealed, "active, but not last: {chunk:?}");
        let batches = appended
            .iter()
            .filter(|batch| (chunk.base_offset..chunk.next_offset).contains(&batch.offsets.start));
        let bytes = batches.clone().map(|batch| ByteCount::of(&batch.bytes)).sum::<ByteCount>();
        assert_eq!(chunk.bytes, bytes, "{chunk:?}");
        assert_eq!(
            chunk.max_timestamp,
            batches.filter_map(|batch| batch.timestamp).max(),
            "{chunk:?}"
        );
    }
    // Where chunks were rewritten there are holes between them, as there are between batches.
    let first =
        bounds.log_start.max(appended.first().map_or(Offset::ZERO, |one| one.offsets.start));
    let ends = std::iter::once(first).chain(chunks.iter().map(|chunk| chunk.next_offset));
    let begins = chunks.iter().map(|chunk| chunk.base_offset);
    for (end, begin) in ends.zip(begins) {
        let between = |batch: &&Appended| batch.offsets.start >= end && batch.offsets.end <= begin;
        assert_eq!(appended.iter().find(between), None, "chunks follow each other: {chunks:?}");
    }
    let is_ordered = chunks.windows(2).all(|pair| pair[0].next_offset <= pair[1].base_offset);
    assert!(is_ordered, "{chunks:?}");
    assert!(chunks.windows(2).all(|pair| pair[0].name != pair[1].name), "{chunks:?}");
    match (chunks.first(), chunks.last()) {
        (Some(first), Some(last)) => {
            let begin = appended.iter().find(|batch| batch.offsets.end > bounds.log_start);
            let begin = begin.map_or(bounds.log_start, |batch| batch.offsets.start);
            assert!(first.base_offset <= begin, "{chunks:?} {bounds:?}");
            // What is submitted but not durable may be in a chunk already, or not yet.
            let ends = bounds.durable_end..=bounds.written_end;
            assert!(ends.contains(&last.next_offset), "{chunks:?} {bounds:?}");
        }
        _ => assert_eq!(bounds.log_start, bounds.durable_end, "nothing stored, not empty"),
    }
}

impl Subject {
    fn assert_chunks(&self, appended: &[Appended]) -> Vec<ChunkInfo> {
        // In this order: what is durable by the bounds is in the chunks.
        let bounds = self.log.bounds();
        let chunks = self.log.chunks();
        assert_chunks_describe(&chunks, bounds, appended);
        chunks
    }
}

/// A chunk is closed before it would grow past the segment size.
pub async fn a_chunk_is_closed_before_it_grows_past_its_size(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let segment_bytes = ByteCount::kib(2);
    subject.log.configure(LogSettings { segment_bytes, ..settings() });
    let appended = subject.append_some(80).await;
    let chunks = subject.assert_chunks(&appended);
    assert!(chunks.len() > 3, "{chunks:?}");
    assert!(chunks.iter().all(|chunk| chunk.bytes <= segment_bytes), "{chunks:?}");
}

/// A chunk is closed before it would span more offsets than the settings say; an append alone may.
pub async fn a_chunk_is_closed_before_it_holds_too_many_records(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.log.configure(LogSettings { segment_records: 5, ..settings() });
    let mut appended = Vec::new();
    for records in [3, 2, 1, 4, 9, 1] {
        appended.push(subject.append(TestBatch::of(records)).await);
    }
    let chunks = subject.assert_chunks(&appended);
    let begins = chunks.iter().map(|chunk| chunk.base_offset.get()).collect::<Vec<_>>();
    assert_eq!(begins, [0, 5, 10, 19]);
}

/// A chunk is closed when its first append is older than the segment age, by the broker's clock.
pub async fn a_chunk_is_closed_when_it_is_old(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.log.configure(LogSettings { segment_age: Duration::from_secs(10), ..settings() });
    let at = |seconds: i64| {
        // What producers say the time is has nothing to do with it.
        let batch = TestBatch::of(1).stamped(Some(Timestamp::from_millis(77)));
        batch.appended_at(Timestamp::from_millis(seconds * 1000))
    };
    let mut appended = Vec::new();
    for seconds in [100, 105, 109, 111, 112, 119, 122] {
        appended.push(subject.append(at(seconds)).await);
    }
    let chunks = subject.assert_chunks(&appended);
    let begins = chunks.iter().map(|chunk| chunk.base_offset.get()).collect::<Vec<_>>();
    assert_eq!(begins, [0, 3, 6]);
}

/// A chunk tells the times of its first and last append, by the broker's clock.
pub async fn a_chunk_knows_when_it_was_appended_to(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut appended = Vec::new();
    for millis in [5000, 6000, 9000] {
        let batch = TestBatch::of(2).appended_at(Timestamp::from_millis(millis));
        appended.push(subject.append(batch).await);
    }
    let chunks = subject.assert_chunks(&appended);
    let [chunk] = chunks.as_slice() else { panic!("{chunks:?}") };
    assert_eq!(chunk.first_appended_at, Timestamp::from_millis(5000));
    assert_eq!(chunk.last_appended_at, Timestamp::from_millis(9000));
}

/// Rolling closes the active chunk; an empty log has none, and rolling twice changes nothing more.
pub async fn roll_closes_the_active_chunk(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.log.roll().await.expect("nothing to roll");
    assert_eq!(subject.log.chunks(), Vec::new());

    let mut appended = subject.append_some(3).await;
    let border = subject.log.bounds().written_end;
    assert_eq!(subject.log.chunks().last().map(|chunk| chunk.state), Some(ChunkState::Active));
    subject.log.roll().await.expect("rolls");
    subject.log.roll().await.expect("nothing to roll");
    let chunks = subject.assert_chunks(&appended);
    assert!(chunks.iter().all(|chunk| chunk.state == ChunkState::Sealed), "{chunks:?}");

    appended.extend(subject.append_some(2).await);
    let chunks = subject.assert_chunks(&appended);
    let begins = chunks.iter().map(|chunk| chunk.base_offset).collect::<Vec<_>>();
    assert_eq!(begins, [Offset::ZERO, border]);
    subject.assert_holds(&appended).await;
}

/// Settings that change at run time hold from the next append on.
pub async fn configure_takes_effect_with_the_next_append(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut appended = subject.append_some(10).await;
    assert_eq!(subject.assert_chunks(&appended).len(), 1);
    subject.log.configure(LogSettings { segment_bytes: ByteCount::new(1), ..settings() });
    assert_eq!(subject.log.chunks().len(), 1, "nothing happens before an append");
    appended.extend(subject.append_some(3).await);
    assert_eq!(subject.assert_chunks(&appended).len(), 4);
    subject.log.configure(settings());
    appended.extend(subject.append_some(10).await);
    assert_eq!(subject.assert_chunks(&appended).len(), 4);
}

/// A trim raises the log start to any offset and drops the chunks below it, and only those.
pub async fn trim_drops_the_chunks_below_the_log_start(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(1), ..settings() });
    let appended = subject.append_some(40).await;
    let end = subject.log.bounds().written_end;
    for log_start in (0..=end.get()).map(Offset::new) {
        let bounds = subject.log.trim(log_start).await.expect("trims");
        assert_eq!(bounds, LogBounds { log_start, durable_end: end, written_end: end });
        assert_eq!(subject.log.bounds(), bounds);
        subject.assert_chunks(&appended);
        subject.assert_holds(&appended).await;
    }
}

/// Trimming to a lower offset changes nothing; past the durable end it is refused.
pub async fn trim_never_lowers_the_log_start(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let appended = subject.append_some(5).await;
    let before = subject.log.trim(Offset::new(6)).await.expect("trims");
    for lower in [Offset::ZERO, Offset::new(5), Offset::new(6)] {
        assert_eq!(subject.log.trim(lower).await.expect("nothing to do"), before);
    }
    let past = subject.log.bounds().written_end.next();
    subject.log.trim(past).await.expect_err("past the end");
    assert_eq!(subject.log.bounds(), before);
    subject.assert_holds(&appended).await;
}

/// A log that is trimmed to its end is empty there, and goes on from there.
pub async fn a_log_trimmed_to_its_end_goes_on_from_there(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut appended = subject.append_some(5).await;
    let end = subject.log.bounds().written_end;
    subject.log.trim(end).await.expect("trims");
    assert_eq!(subject.log.chunks(), Vec::new());
    appended.push(subject.append(TestBatch::of(3)).await);
    assert_eq!(subject.log.bounds().log_start, end);
    subject.assert_chunks(&appended);
    subject.assert_holds(&appended).await;
}

/// A trim that returned is there after any stop.
pub async fn a_trim_survives_a_restart(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let mut engine = factory.make().await;
        let mut appended = Vec::new();
        // Inside a batch, then at the end.
        for _ in 0..2 {
            let subject = Subject::open(&engine, 0).await;
            appended.extend(subject.append_some(6).await);
            let end = subject.log.bounds().durable_end;
            let middle = Offset::new(end.get() - 2);
            let log_start = subject.log.trim(middle).await.expect("trims").log_start;
            drop(subject);
            let Some(next) = engine.restarted(factory, stop).await else { return };
            engine = next;
            let subject = Subject::open(&engine, 0).await;
            assert_eq!(subject.log.bounds().log_start, log_start, "{stop:?}");
            subject.assert_holds(&appended).await;

            subject.log.trim(end).await.expect("trims");
            drop(subject);
            let Some(next) = engine.restarted(factory, stop).await else { return };
            engine = next;
            let subject = Subject::open(&engine, 0).await;
            let empty = LogBounds { log_start: end, durable_end: end, written_end: end };
            assert_eq!(subject.log.bounds(), empty, "{stop:?}");
        }
    }
}

/// The chunks of a log are the same after a restart, times and all.
pub async fn chunks_survive_a_restart(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        let subject = Subject::open(&engine, 0).await;
        subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(1), ..settings() });
        let mut appended = Vec::new();
        for number in 0..30_i64 {
            let stamp = (number % 3 > 0).then(|| Timestamp::from_millis(7000 - number));
            let now = Timestamp::from_millis(1000 + number);
            let batch = TestBatch::of(2).stamped(stamp).appended_at(now);
            appended.push(subject.append(batch).await);
        }
        let mut before = subject.assert_chunks(&appended);
        drop(subject);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        let subject = Subject::open(&engine, 0).await;
        let mut after = subject.assert_chunks(&appended);
        // An engine may close the active chunk, by stopping or by starting.
        for chunk in before.iter_mut().chain(&mut after) {
            chunk.state = ChunkState::Sealed;
        }
        assert_eq!(before, after, "{stop:?}");
    }
}
