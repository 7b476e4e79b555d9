//! Opening: epochs, fencing, what is found after a stop.

use std::sync::Arc;

use strandline_model::{ByteCount, LeaderEpoch, Offset, OffsetDelta};

use super::{Event, Factory, Recorder, Stop, Subject, TestBatch, open_request};
use crate::{AppendError, ChunkInfo, CommitLog, ErrorKind, Found, Minimum, ReadLimit};

const ONE_BATCH: ReadLimit = ReadLimit { bytes: ByteCount::new(1), minimum: Minimum::OneBatch };

fn kind_of_refusal(subject: &Subject) -> ErrorKind {
    let at = subject.log.bounds().written_end;
    match subject.log.submit(at, TestBatch::of(1).seal(at, subject.epoch)) {
        Err(AppendError::Refused(error)) => error.kind(),
        other => panic!("{other:?}"),
    }
}

/// A second opener gets a higher epoch and everything durable; the first can't write any more and
/// is told so.
pub async fn a_later_opener_fences_the_earlier(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let earlier = Subject::open(&engine, 0).await;
    let mut appended = earlier.append_some(4).await;
    let later = Subject::open(&engine, 0).await;
    assert!(later.epoch > earlier.epoch, "two writers never share an epoch");
    assert_ne!(later.found, Found::Created);
    later.assert_holds(&appended).await;

    appended.extend(later.append_some(2).await);
    assert_eq!(kind_of_refusal(&earlier), ErrorKind::Fenced);
    for refused in [
        earlier.log.trim(Offset::new(1)).await.map(|_| ()),
        earlier.log.roll().await,
        earlier.log.save_state(Offset::ZERO, "old".into()).await,
    ] {
        assert_eq!(refused.expect_err("the log has another owner").kind(), ErrorKind::Fenced);
    }
    assert_eq!(earlier.heard.death().await, ErrorKind::Fenced);
    assert_eq!(later.log.bounds().log_start, Offset::ZERO);
    later.assert_holds(&appended).await;
}

/// The epoch is at least what the opener asks for, and never falls.
pub async fn the_epoch_is_at_least_what_was_asked(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let mut before = LeaderEpoch::ZERO;
    for at_least in [3, 3, 0, 17, 5].map(LeaderEpoch::new) {
        let subject = Subject::open_at_least(&engine, 0, at_least).await;
        assert!(subject.epoch >= at_least.max(before), "{}", subject.epoch);
        before = subject.epoch;
        let batch = subject.append(TestBatch::of(1)).await;
        let found = subject.log.find_timestamp(batch.timestamp.expect("stamped")).await;
        assert!(found.expect("looks").is_some());
    }
}

/// The store knows the epoch of an open log, or says that it would have to look.
pub async fn the_store_knows_the_epoch_of_an_open_log(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open_at_least(&engine, 0, LeaderEpoch::new(9)).await;
    subject.append(TestBatch::of(1)).await;
    let known = engine.logs.epoch(super::partition(0));
    assert!(known.is_none_or(|epoch| epoch == subject.epoch), "{known:?}");
    let unknown = engine.logs.epoch(super::partition(1));
    assert!(unknown.is_none_or(|epoch| epoch == LeaderEpoch::ZERO), "{unknown:?}");
}

/// A log whose handle was dropped opens again with everything in it, and goes on.
pub async fn a_log_opens_again_after_its_handle_was_dropped(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let mut appended = Vec::new();
    let mut before = LeaderEpoch::ZERO;
    for _ in 0..4 {
        let subject = Subject::open(&engine, 0).await;
        assert!(subject.epoch >= before);
        before = subject.epoch;
        subject.assert_holds(&appended).await;
        appended.extend(subject.append_some(3).await);
    }
}

/// Whoever has no use for a log for a while lets go of its handle, and opens it again when it is needed:
/// nothing of it is lost, nobody is told that it died, and what is stored is known meanwhile.
pub async fn a_log_that_nobody_holds_is_as_it_was(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let mut appended = Vec::new();
    for round in 0..4_u8 {
        let subject = Subject::open(&engine, 0).await;
        subject.assert_holds(&appended).await;
        let state = subject.log.load_state().await.expect("loads");
        assert_eq!(
            state.map(|(_, state)| state),
            round.checked_sub(1).map(|last| vec![last].into())
        );
        appended.extend(subject.append_some(3).await);
        let end = subject.log.bounds().durable_end;
        subject.log.save_state(end, vec![round].into()).await.expect("saves");
        subject.log.trim(Offset::new(i64::from(round))).await.expect("trims");
        subject.log.roll().await.expect("rolls");
        let chunks = subject.log.chunks();
        let region =
            subject.log.read(end + OffsetDelta::new(-1), end, ONE_BATCH).await.expect("reads");
        // The last one is not waited for.
        let (batch, ticket) = subject.submit(TestBatch::of(2)).await;
        appended.push(batch);
        let heard = Arc::clone(&subject.heard);
        drop(subject);

        ticket.await.expect("what was submitted goes on");
        let stored = engine.logs.stored(super::partition(0)).expect("it is known");
        let end = appended.last().map(|batch| batch.offsets.end);
        assert_eq!(Some(stored.bounds.durable_end), end);
        assert_eq!(stored.bounds.log_start, Offset::new(i64::from(round)));
        let bytes =
            |chunks: &[ChunkInfo]| chunks.iter().map(|chunk| chunk.bytes).sum::<ByteCount>();
        assert!(bytes(&stored.chunks) > bytes(&chunks));
        region.read_to_memory().expect("what was read before stays");
        assert!(heard.events().iter().all(|event| matches!(event, Event::Durable(_))));
    }
    Subject::open(&engine, 0).await.assert_holds(&appended).await;
}

/// After a clean stop everything is there, nothing is suspected, and the epoch does not fall.
pub async fn a_clean_stop_loses_nothing(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let mut appended = subject.append_some(9).await;
    // Not waited for: closing makes it durable.
    let (batch, ticket) = subject.submit(TestBatch::of(2)).await;
    appended.push(batch);
    let epoch = subject.epoch;
    drop(subject);
    let Some(engine) = engine.restarted(factory, Stop::Clean).await else { return };
    ticket.await.expect("closing settles what was submitted");
    let subject = Subject::open(&engine, 0).await;
    assert_eq!(subject.found, Found::Clean);
    assert!(subject.epoch >= epoch);
    subject.assert_holds(&appended).await;
    appended.extend(subject.append_some(3).await);
    subject.assert_holds(&appended).await;
}

/// After a crash everything acknowledged is there, and an epoch that wrote is not claimed again
/// unless nothing can have been lost.
pub async fn a_crash_loses_nothing_acknowledged(factory: &mut impl Factory) {
    let mut engine = factory.make().await;
    let mut appended = Vec::new();
    let mut epoch = None;
    for _ in 0..4 {
        let subject = Subject::open(&engine, 0).await;
        match (epoch, subject.found) {
            (None, found) => assert_eq!(found, Found::Created),
            (Some(_), Found::Created) => panic!("the log was there before"),
            (Some(before), Found::Clean) => assert!(subject.epoch >= before),
            (Some(before), Found::Unclean) => assert!(subject.epoch > before),
        }
        subject.assert_holds(&appended).await;
        appended.extend(subject.append_some(5).await);
        epoch = Some(subject.epoch);
        drop(subject);
        let Some(next) = engine.restarted(factory, Stop::Crash).await else { return };
        engine = next;
    }
}

/// What was submitted and not acknowledged is there after a crash up to some batch, or not at all.
pub async fn a_crash_cuts_between_batches(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let mut appended = subject.append_some(3).await;
    let acknowledged = subject.log.bounds().durable_end;
    for _ in 0..30 {
        let (batch, _dropped) = subject.submit(TestBatch::of(3).value_bytes(2000)).await;
        appended.push(batch);
    }
    drop(subject);
    let Some(engine) = engine.restarted(factory, Stop::Crash).await else { return };
    let subject = Subject::open(&engine, 0).await;
    let end = subject.log.bounds().written_end;
    assert!(end >= acknowledged);
    appended.retain(|batch| batch.offsets.start < end);
    subject.assert_holds(&appended).await;
    appended.extend(subject.append_some(2).await);
    subject.assert_holds(&appended).await;
}

/// Logs of different partitions know nothing of each other.
pub async fn logs_are_independent(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let mut subjects = Vec::new();
    for index in 0..20 {
        subjects.push((Subject::open(&engine, index).await, Vec::new()));
    }
    for round in 0..5 {
        let mut tickets = Vec::new();
        for (number, (subject, appended)) in (0_u32..).zip(&mut subjects) {
            let (batch, ticket) = subject.submit(TestBatch::of(1 + (number + round) % 3)).await;
            appended.push(batch);
            tickets.push(ticket);
        }
        for ticket in tickets {
            ticket.await.expect("durable");
        }
    }
    subjects[3].0.log.trim(Offset::new(2)).await.expect("trims");
    for (subject, appended) in &subjects {
        subject.assert_holds(appended).await;
    }
}

/// A handle works until its last holder lets go, whatever became of the other references.
pub async fn a_handle_is_shared(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let heard = Arc::new(Recorder::default());
    let opened = engine.logs.open(open_request(0, &heard)).await.expect("opens");
    let kept: Arc<dyn CommitLog> = Arc::clone(&opened.log);
    let epoch = opened.epoch;
    drop(opened);
    let batch = TestBatch::of(1).seal(Offset::ZERO, epoch);
    kept.submit(Offset::ZERO, batch).expect("taken").await.expect("durable");
}
