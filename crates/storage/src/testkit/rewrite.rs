//! Rewrites: what takes the place of chunks, when it is refused, and what is left when it fails.

use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_records::crc32c;

use super::chunk::assert_chunks_describe;
use super::{Appended, Factory, Stop, Subject, partition, settings};
use crate::{
    ChunkId, ChunkInfo, ChunkState, Compacted, ErrorKind, LogSettings, Minimum, ReadLimit, Removal,
    StorageError,
};

/// A log of some chunks of a few batches each, all but the last sealed, and what is in it.
async fn filled(subject: &Subject) -> Vec<Appended> {
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(1), ..settings() });
    let appended = subject.append_some(70).await;
    assert!(subject.log.chunks().len() > 6, "{:?}", subject.log.chunks());
    appended
}

/// What of `appended` lies in these chunks.
fn within(appended: &[Appended], chunks: &[ChunkInfo]) -> Vec<Appended> {
    let is_in = |batch: &&Appended| {
        chunks
            .iter()
            .any(|chunk| (chunk.base_offset..chunk.next_offset).contains(&batch.offsets.start))
    };
    appended.iter().filter(is_in).cloned().collect()
}

impl Subject {
    /// Replaces chunks by `batches`.
    pub(super) async fn rewrite(
        &self,
        chunks: &[ChunkInfo],
        batches: &[Appended],
    ) -> Result<(), StorageError> {
        let (first, last) = (chunks.first().expect("some"), chunks.last().expect("some"));
        let mut rewrite = self.log.rewrite(first.id, last.id).await?;
        for batch in batches {
            rewrite.add(batch.bytes.clone()).await?;
        }
        rewrite.commit().await
    }

    /// Replaces chunks by every other batch of theirs, but keeps the last: what the log holds then.
    async fn thin_out(&self, appended: &[Appended], chunks: &[ChunkInfo]) -> Vec<Appended> {
        let old = within(appended, chunks);
        let end = old.last().expect("chunks hold batches").offsets.end;
        let kept: Vec<_> = old
            .iter()
            .enumerate()
            .filter(|(index, batch)| index % 2 == 1 || batch.offsets.end == end)
            .map(|(_, batch)| batch.clone())
            .collect();
        self.rewrite(chunks, &kept).await.expect("rewrites");
        let mut left = appended.to_vec();
        left.retain(|batch| !old.contains(batch) || kept.contains(batch));
        left
    }

    fn assert_describes(&self, appended: &[Appended]) {
        assert_chunks_describe(&self.log.chunks(), self.log.bounds(), appended);
    }
}

/// Adjacent chunks become one of the batches that are left: found by offset, also by one in a hole,
/// and by time; other chunks stay as they are, and appends go on.
pub async fn a_rewrite_takes_the_place_of_its_chunks(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let appended = filled(&subject).await;
    let before = subject.log.chunks();
    let bounds = subject.log.bounds();
    let mut left = subject.thin_out(&appended, &before[1..4]).await;
    assert!(left.len() < appended.len());
    let after = subject.log.chunks();
    assert_eq!(after.len(), before.len() - 2);
    assert_eq!((&after[0], &after[2..]), (&before[0], &before[4..]));
    assert_eq!(after[1].state, ChunkState::Sealed);
    assert_eq!(after[1].first_appended_at, before[1].first_appended_at);
    assert_eq!(after[1].last_appended_at, before[3].last_appended_at);
    let names = before.iter().map(|chunk| &chunk.name);
    assert_eq!(names.filter(|name| **name == after[1].name).count(), 0, "a name is used once");
    assert_eq!(subject.log.bounds(), bounds);
    subject.assert_describes(&left);
    subject.assert_holds(&left).await;
    let limit = ReadLimit { bytes: ByteCount::ZERO, minimum: Minimum::OneBatch };
    for from in (0..bounds.durable_end.get()).map(Offset::new) {
        let next = left.iter().find(|batch| batch.offsets.end > from).expect("the end stays");
        assert_eq!(subject.read(from, bounds.durable_end, limit).await, next.bytes, "{from}");
    }
    let found = subject.log.find_timestamp(Timestamp::from_millis(1)).await.expect("looks");
    assert_eq!(found.map(|found| found.base_offset), Some(left[0].offsets.start));
    left.extend(subject.append_some(5).await);
    // Again, with what was rewritten before and what came since.
    let chunks = subject.log.chunks();
    let sealed = chunks.iter().filter(|chunk| chunk.state == ChunkState::Sealed).count();
    let left = subject.thin_out(&left, &chunks[..sealed]).await;
    subject.assert_describes(&left);
    subject.assert_holds(&left).await;
    assert_eq!(engine.logs.verify(partition(0)).await.expect("checks"), Vec::new());
}

/// Of chunks of which nothing is left there is none afterwards.
pub async fn a_rewrite_of_nothing_removes_its_chunks(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let appended = filled(&subject).await;
    let before = subject.log.chunks();
    for part in [&before[..2], &before[3..4]] {
        subject.rewrite(part, &[]).await.expect("rewrites");
    }
    let gone = [&before[..2], &before[3..4]].concat();
    let left: Vec<_> = appended
        .iter()
        .filter(|batch| within(&appended, &gone).iter().all(|one| one != *batch))
        .cloned()
        .collect();
    assert_eq!(subject.log.bounds().log_start, Offset::ZERO, "what is gone was not trimmed");
    subject.assert_describes(&left);
    subject.assert_holds(&left).await;
}

/// Until it is committed nothing happens, however it ends; then the next one may begin.
pub async fn a_rewrite_that_is_dropped_changes_nothing(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let appended = filled(&subject).await;
    let before = subject.log.chunks();
    let mut rewrite = subject.log.rewrite(before[0].id, before[1].id).await.expect("begins");
    let second = subject.log.rewrite(before[3].id, before[3].id).await;
    assert_eq!(second.expect_err("one at a time").kind(), ErrorKind::Unavailable);
    rewrite.add(appended[0].bytes.clone()).await.expect("adds");
    subject.assert_holds(&appended).await;
    drop(rewrite);
    assert_eq!(subject.log.chunks(), before);
    subject.assert_holds(&appended).await;
    let left = subject.thin_out(&appended, &before[..2]).await;
    subject.assert_holds(&left).await;
}

/// What grows, what does not follow each other, what is not there, and batches that are not whole,
/// not in order or not of these chunks.
pub async fn a_rewrite_is_refused_what_would_harm_the_log(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let appended = filled(&subject).await;
    let chunks = subject.log.chunks();
    let active = chunks.last().expect("some").clone();
    let kind = |refused: Result<_, StorageError>| match refused {
        Ok(()) => None,
        Err(error) => Some(error.kind()),
    };
    let begun = async |first: ChunkId, last: ChunkId| {
        kind(subject.log.rewrite(first, last).await.map(drop))
    };
    assert_eq!(begun(chunks[1].id, active.id).await, Some(ErrorKind::Invalid));
    assert_eq!(begun(active.id, active.id).await, Some(ErrorKind::Invalid));
    assert_eq!(begun(chunks[2].id, chunks[1].id).await, Some(ErrorKind::Invalid));
    let nowhere = ChunkId(chunks[1].base_offset.next());
    assert_eq!(begun(nowhere, chunks[1].id).await, Some(ErrorKind::Unavailable));
    let mut inside = within(&appended, &chunks[1..3]);
    let outside = within(&appended, &chunks[3..4]);
    let below = within(&appended, &chunks[..1]);
    let mut broken = inside[0].clone();
    let mut bytes = broken.bytes.to_vec();
    *bytes.last_mut().expect("a batch has bytes") ^= 1;
    assert_ne!(crc32c(&bytes), crc32c(&broken.bytes));
    broken.bytes = bytes.into();
    let mut torn = inside[0].clone();
    torn.bytes = torn.bytes.slice(..torn.bytes.len() - 1);
    for wrong in [&outside[0], &below[0], &broken, &torn] {
        let refused = subject.rewrite(&chunks[1..3], std::slice::from_ref(wrong)).await;
        assert_eq!(kind(refused), Some(ErrorKind::Invalid), "{wrong:?}");
    }
    inside.swap(0, 1);
    assert_eq!(kind(subject.rewrite(&chunks[1..3], &inside).await), Some(ErrorKind::Invalid));
    assert_eq!(subject.log.chunks(), chunks);
    subject.assert_holds(&appended).await;
}

/// The last batch of a log can't be rewritten away: its end is where the next append goes.
pub async fn the_end_of_a_log_outlives_its_rewrite(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        let subject = Subject::open(&engine, 0).await;
        let mut appended = filled(&subject).await;
        subject.log.roll().await.expect("rolls");
        let chunks = subject.log.chunks();
        let last = &chunks[chunks.len() - 2..];
        for batches in [Vec::new(), within(&appended, &last[..1])] {
            let refused = subject.rewrite(last, &batches).await.expect_err("no end");
            assert_eq!(refused.kind(), ErrorKind::Invalid);
        }
        assert_eq!(subject.log.chunks(), chunks);
        let end = appended.last().expect("some").clone();
        let of_last = within(&appended, last);
        appended.retain(|batch| !of_last.contains(batch) || *batch == end);
        subject.rewrite(last, std::slice::from_ref(&end)).await.expect("rewrites");
        subject.assert_holds(&appended).await;
        drop(subject);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        let subject = Subject::open(&engine, 0).await;
        subject.assert_holds(&appended).await;
        appended.extend(subject.append_some(3).await);
        subject.assert_describes(&appended);
        subject.assert_holds(&appended).await;
        // What was appended behind it is there after another stop.
        drop(subject);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        Subject::open(&engine, 0).await.assert_holds(&appended).await;
    }
}

/// A rewrite that returned is there after any stop, and one that did not return is not.
pub async fn a_rewrite_survives_a_restart(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        let subject = Subject::open(&engine, 0).await;
        let appended = filled(&subject).await;
        let chunks = subject.log.chunks();
        let mut left = subject.thin_out(&appended, &chunks[..2]).await;
        left = subject.thin_out(&left, &chunks[3..5]).await;
        left.extend(subject.append_some(4).await);
        let chunks = subject.log.chunks();
        let mut begun = subject.log.rewrite(chunks[0].id, chunks[1].id).await.expect("begins");
        begun.add(left[0].bytes.clone()).await.expect("adds");
        drop((begun, subject));
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        let subject = Subject::open(&engine, 0).await;
        subject.assert_describes(&left);
        subject.assert_holds(&left).await;
        if stop == Stop::Clean {
            // A crash may leave indexes that are to be made anew.
            let findings = engine.logs.verify(partition(0)).await.expect("checks");
            assert_eq!(findings, Vec::new());
        }
        let chunks = subject.log.chunks();
        let left = subject.thin_out(&left, &chunks[..3]).await;
        drop(subject);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        Subject::open(&engine, 0).await.assert_holds(&left).await;
    }
}

/// A trim that comes meanwhile goes first; the rewrite is refused then and harms nothing.
pub async fn chunks_that_are_dropped_meanwhile_are_not_replaced(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let appended = filled(&subject).await;
    let chunks = subject.log.chunks();
    let mut rewrite = subject.log.rewrite(chunks[0].id, chunks[2].id).await.expect("begins");
    rewrite.add(appended[0].bytes.clone()).await.expect("adds");
    subject.log.trim(chunks[1].base_offset).await.expect("trims");
    let refused = rewrite.commit().await.expect_err("a chunk is gone");
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    subject.assert_describes(&appended);
    subject.assert_holds(&appended).await;
    // One that the log start cuts through is rewritten from the batch of the log start on.
    let chunks = subject.log.chunks();
    let middle = chunks[0].next_offset;
    subject.log.trim(Offset::new(middle.get() - 1)).await.expect("trims");
    let kept = within(&appended, &chunks[..1]).last().expect("a last batch").clone();
    subject.rewrite(&chunks[..1], std::slice::from_ref(&kept)).await.expect("rewrites");
    subject.assert_holds(&appended).await;
}

/// Whoever was fenced replaces nothing.
pub async fn a_rewrite_ends_with_its_handle(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let appended = filled(&subject).await;
    let chunks = subject.log.chunks();
    let mut rewrite = subject.log.rewrite(chunks[0].id, chunks[1].id).await.expect("begins");
    rewrite.add(appended[0].bytes.clone()).await.expect("adds");
    let later = Subject::open(&engine, 0).await;
    rewrite.commit().await.expect_err("fenced");
    subject.log.rewrite(chunks[0].id, chunks[1].id).await.map(drop).expect_err("fenced");
    later.assert_holds(&appended).await;
    let left = later.thin_out(&appended, &chunks[..2]).await;
    later.assert_holds(&left).await;
}

/// What was read before a rewrite can be used after it.
pub async fn bytes_outlive_a_rewrite(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let appended = filled(&subject).await;
    let chunks = subject.log.chunks();
    let old = within(&appended, &chunks[..2]);
    let limit = ReadLimit { bytes: ByteCount::mib(1), minimum: Minimum::OneBatch };
    let upto = chunks[1].next_offset;
    let held = subject.log.read(Offset::ZERO, upto, limit).await.expect("reads");
    let left = subject.thin_out(&appended, &chunks[..2]).await;
    let whole: Vec<u8> = old.iter().flat_map(|batch| batch.bytes.to_vec()).collect();
    let held = held.read_to_memory().expect("reads");
    // A read may end where a chunk does.
    assert!(!held.is_empty() && whole.starts_with(&held));
    subject.assert_holds(&left).await;
}

/// A rewritten chunk is dropped by a trim, and goes with its log.
pub async fn a_rewritten_chunk_is_trimmed_and_removed_like_any_other(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let appended = filled(&subject).await;
    let chunks = subject.log.chunks();
    let mut left = subject.thin_out(&appended, &chunks[..3]).await;
    left = subject.thin_out(&left, &chunks[3..5]).await;
    for log_start in (0..=chunks[5].base_offset.get()).map(Offset::new) {
        subject.log.trim(log_start).await.expect("trims");
        subject.assert_describes(&left);
        subject.assert_holds(&left).await;
    }
    let chunks = subject.log.chunks();
    let rewrite = subject.log.rewrite(chunks[0].id, chunks[0].id).await.expect("begins");
    // It is closed by the removal, which waits for nobody who writes.
    let step = engine.logs.remove_some(partition(0), ByteCount::kib(1)).await.expect("removes");
    assert!(matches!(step, Removal::Remaining(_)), "{step:?}");
    rewrite.commit().await.expect_err("its log is being removed");
    drop(subject);
    loop {
        let step = engine.logs.remove_some(partition(0), ByteCount::kib(1)).await;
        if step.expect("removes") == Removal::Done {
            break;
        }
    }
    assert_eq!(engine.logs.list().await.expect("lists"), Vec::new());
}

/// How far a log is compacted is told, also of a closed one, and after a stop.
pub async fn how_far_a_log_is_compacted_is_kept(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        let subject = Subject::open(&engine, 0).await;
        filled(&subject).await;
        assert_eq!(subject.log.compacted(), Compacted::default());
        let end = subject.log.bounds().durable_end;
        let past = Compacted { clean_end: end.next(), delete_horizon: None };
        subject.log.note_compacted(past).await.expect_err("past the end");
        let horizon = Some(Timestamp::from_millis(77));
        let notes = [
            Compacted { clean_end: end, delete_horizon: horizon },
            Compacted { clean_end: Offset::new(5), delete_horizon: None },
        ];
        for note in notes {
            subject.log.note_compacted(note).await.expect("notes");
            assert_eq!(subject.log.compacted(), note);
        }
        // So that it is as durable as everything else.
        subject.append_some(1).await;
        drop(subject);
        let stored = engine.logs.stored(partition(0)).expect("it is stored");
        assert_eq!(stored.compacted, notes[1]);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        let stored = engine.logs.stored(partition(0)).expect("it is stored");
        assert_eq!(stored.compacted, notes[1], "{stop:?}");
        assert_eq!(Subject::open(&engine, 0).await.log.compacted(), notes[1]);
    }
}
