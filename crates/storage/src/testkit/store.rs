//! The store as a whole: listing, space, verification, closing.

use std::collections::BTreeSet;
use std::sync::Arc;

use strandline_model::{ByteCount, Offset};

use super::{Factory, Recorder, Stop, Subject, TestBatch, open_request, partition, settings};
use crate::{AppendError, ErrorKind, FigureValue, LogSettings, Stored};

/// Every log that was appended to is listed, before and after a restart.
pub async fn logs_with_bytes_are_listed(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        assert_eq!(engine.logs.list().await.expect("lists"), Vec::new());
        for index in [3, 0, 7] {
            Subject::open(&engine, index).await.append(TestBatch::of(1)).await;
        }
        let expected = BTreeSet::from([0, 3, 7].map(partition));
        let listed = engine.logs.list().await.expect("lists");
        assert_eq!(listed.len(), expected.len(), "each once");
        assert_eq!(BTreeSet::from_iter(listed), expected);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert_eq!(BTreeSet::from_iter(engine.logs.list().await.expect("lists")), expected);
    }
}

/// What is stored of a log is known whether it is open or not, and of others nothing.
pub async fn what_is_stored_is_known_without_opening(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        assert_eq!(engine.logs.stored(partition(0)), None);
        let subject = Subject::open(&engine, 0).await;
        subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(1), ..settings() });
        subject.append_some(30).await;
        subject.log.trim(Offset::new(20)).await.expect("trims");
        let (bounds, chunks) = (subject.log.bounds(), subject.log.chunks());
        assert!(chunks.len() > 1, "{chunks:?}");
        let compacted = subject.log.compacted();
        let stored = Stored { bounds, chunks, compacted };
        assert_eq!(engine.logs.stored(partition(0)), Some(stored));
        drop(subject);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        let stored = engine.logs.stored(partition(0)).expect("it was stored");
        assert_eq!(engine.logs.stored(partition(1)), None);
        let subject = Subject::open(&engine, 0).await;
        let (bounds, chunks) = (subject.log.bounds(), subject.log.chunks());
        assert_eq!(stored, Stored { bounds, chunks, compacted: subject.log.compacted() });

        subject.log.trim(bounds.durable_end).await.expect("trims");
        let emptied = engine.logs.stored(partition(0)).expect("it was stored");
        assert_eq!(emptied.bounds.log_start, bounds.durable_end);
        assert_eq!(emptied.chunks, Vec::new());
        drop(subject);
        engine.logs.remove_some(partition(0), ByteCount::mib(64)).await.expect("removes");
        assert_eq!(engine.logs.stored(partition(0)), None);
    }
}

/// What is stored counts as used.
pub async fn used_space_counts_what_is_stored(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let mut stored = ByteCount::ZERO;
    for _ in 0..8 {
        let batch = subject.append(TestBatch::of(10).value_bytes(10_000)).await;
        stored += ByteCount::of(&batch.bytes);
        let space = engine.logs.space();
        assert!(space.used >= stored, "{space:?}");
    }
}

/// A healthy log verifies without findings, whatever was done to it.
pub async fn a_healthy_log_has_no_findings(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(1), ..settings() });
    subject.append_some(30).await;
    subject.log.trim(Offset::new(20)).await.expect("trims");
    subject.log.roll().await.expect("rolls");
    subject.append_some(3).await;
    assert_eq!(engine.logs.verify(partition(0)).await.expect("verifies"), Vec::new());
    drop(subject);
    let Some(engine) = engine.restarted(factory, Stop::Clean).await else { return };
    assert_eq!(engine.logs.verify(partition(0)).await.expect("verifies"), Vec::new());
}

/// Nothing keeps a healthy engine from its work; what it counts has good names, and never falls.
pub async fn a_healthy_engine_is_in_no_trouble_and_counts(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let before = engine.logs.figures();
    let subject = Subject::open(&engine, 0).await;
    subject.append_some(10).await;
    subject.read_all(Offset::ZERO).await;
    assert_eq!(engine.logs.trouble(), None);
    let after = engine.logs.figures();
    assert_eq!(before.len(), after.len(), "always the same figures");
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let mut names = BTreeSet::new();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.name, before.label, before.help), (after.name, after.label, after.help));
        assert!(is_word(after.name) && !after.name.ends_with("_total"), "{after:?}");
        assert!(!after.help.is_empty() && !after.help.ends_with('.'), "{after:?}");
        assert!(names.insert((after.name, after.label)), "twice: {after:?}");
        match (before.value, after.value) {
            (FigureValue::Count(before), FigureValue::Count(after)) => assert!(before <= after),
            (FigureValue::Level(_), FigureValue::Level(level)) => assert!(level.is_finite()),
            (FigureValue::Times(before), FigureValue::Times(after)) => {
                assert!(before.sum <= after.sum);
            }
            other => panic!("another kind of value: {other:?}"),
        }
    }
}

/// Closing settles what was submitted; afterwards everything answers `Closed`.
pub async fn a_closed_engine_says_so(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = Subject::open(&engine, 0).await;
    let (_, ticket) = subject.submit(TestBatch::of(2)).await;
    engine.logs.close().await.expect("closes");
    ticket.await.expect("closing makes everything durable");

    let heard = Arc::new(Recorder::default());
    let logs = &engine.logs;
    let answers = [
        logs.open(open_request(1, &heard)).await.map(|_| ()),
        logs.list().await.map(|_| ()),
        logs.remove_some(partition(0), ByteCount::kib(1)).await.map(|_| ()),
        logs.verify(partition(0)).await.map(|_| ()),
        logs.quarantine(partition(0), strandline_model::Timestamp::default()).await,
        logs.release(partition(0)).await,
        logs.quarantined().await.map(|_| ()),
        logs.lost().await.map(|_| ()),
        subject.log.roll().await,
        subject.log.trim(Offset::new(1)).await.map(|_| ()),
        subject.log.save_state(Offset::ZERO, "x".into()).await,
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.expect_err("closed").kind(), ErrorKind::Closed, "call {number}");
    }
    let at = Offset::new(2);
    let refused = subject.log.submit(at, TestBatch::of(1).seal(at, subject.epoch));
    let Err(AppendError::Refused(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Closed);
}
