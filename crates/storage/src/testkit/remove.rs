//! Removal: bounded, idempotent, resumable, final.

use std::sync::Arc;

use strandline_model::{ByteCount, Offset};

use super::{
    Engine, Factory, Recorder, Stop, Subject, TestBatch, open_request, partition, settings,
};
use crate::{AppendError, ErrorKind, LogSettings, Removal};

/// More steps than any of the logs here may take.
const STEPS_MAX: usize = 10_000;

/// Fills partition `index` with about 100 KiB in small chunks.
async fn fill(engine: &Engine, index: u32) -> Subject {
    let subject = Subject::open(engine, index).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(10), ..settings() });
    for _ in 0..25 {
        subject.append(TestBatch::of(4).value_bytes(1000)).await;
    }
    subject
}

async fn step(engine: &Engine, index: u32, budget: ByteCount) -> Removal {
    engine.logs.remove_some(partition(index), budget).await.expect("a healthy engine removes")
}

async fn remove_all(engine: &Engine, index: u32) {
    for _ in 0..STEPS_MAX {
        if step(engine, index, ByteCount::kib(10)).await == Removal::Done {
            return;
        }
    }
    panic!("removal never ends");
}

async fn is_listed(engine: &Engine, index: u32) -> bool {
    engine.logs.list().await.expect("lists").contains(&partition(index))
}

async fn assert_open_is_refused(engine: &Engine, index: u32) {
    let heard = Arc::new(Recorder::default());
    let refused = engine.logs.open(open_request(index, &heard)).await;
    assert_eq!(refused.expect_err("removal has begun").kind(), ErrorKind::Invalid);
}

/// Whatever the engine says of an id that it removed, it never gives old records back.
async fn assert_nothing_is_left(engine: &Engine, index: u32) {
    assert!(!is_listed(engine, index).await);
    let heard = Arc::new(Recorder::default());
    match engine.logs.open(open_request(index, &heard)).await {
        Ok(opened) => assert_eq!(opened.log.bounds().written_end, Offset::ZERO),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid),
    }
}

/// Steps come to an end, and what they say is left never grows.
pub async fn removal_goes_in_steps(factory: &mut impl Factory) {
    let engine = factory.make().await;
    drop(fill(&engine, 0).await);
    assert!(is_listed(&engine, 0).await);
    let mut before = ByteCount::mib(1);
    for _ in 0..STEPS_MAX {
        match step(&engine, 0, ByteCount::kib(10)).await {
            Removal::Done => return assert_nothing_is_left(&engine, 0).await,
            Removal::Remaining(left) => {
                assert!(left <= before, "{left} after {before}");
                before = left;
            }
        }
    }
    panic!("removal never ends");
}

/// A step gets on even when its budget is smaller than anything that could go.
pub async fn the_smallest_budget_gets_on(factory: &mut impl Factory) {
    let engine = factory.make().await;
    drop(fill(&engine, 0).await);
    for _ in 0..STEPS_MAX {
        if step(&engine, 0, ByteCount::new(1)).await == Removal::Done {
            return assert_nothing_is_left(&engine, 0).await;
        }
    }
    panic!("removal never ends");
}

/// Removing what is gone, or never was, is done at once.
pub async fn removal_is_idempotent(factory: &mut impl Factory) {
    let engine = factory.make().await;
    assert_eq!(step(&engine, 5, ByteCount::mib(1)).await, Removal::Done);
    drop(fill(&engine, 0).await);
    remove_all(&engine, 0).await;
    for _ in 0..3 {
        assert_eq!(step(&engine, 0, ByteCount::mib(1)).await, Removal::Done);
    }
    assert_nothing_is_left(&engine, 0).await;
}

/// Once removal has begun nobody opens the log, and the handle that is open is closed.
pub async fn removal_closes_the_log_for_good(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = fill(&engine, 0).await;
    let end = subject.log.bounds().written_end;
    let left = step(&engine, 0, ByteCount::new(1)).await;
    assert_ne!(left, Removal::Done, "100 KiB don't fit a budget of one byte");
    assert_open_is_refused(&engine, 0).await;

    let refused = subject.log.submit(end, TestBatch::of(1).seal(end, subject.epoch));
    let Err(AppendError::Refused(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Closed);
    let refused = subject.log.trim(end).await.expect_err("the handle is closed");
    assert_eq!(refused.kind(), ErrorKind::Closed);
    assert_eq!(subject.heard.death().await, ErrorKind::Closed);

    drop(subject);
    remove_all(&engine, 0).await;
    assert_nothing_is_left(&engine, 0).await;
}

/// Removal that was begun goes on after any stop, and stays done once it was reported so.
pub async fn removal_resumes_after_a_restart(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        drop(fill(&engine, 0).await);
        assert_ne!(step(&engine, 0, ByteCount::new(1)).await, Removal::Done);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert_open_is_refused(&engine, 0).await;
        assert!(is_listed(&engine, 0).await, "what is left is listed");
        remove_all(&engine, 0).await;
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert_nothing_is_left(&engine, 0).await;
    }
}

/// Removing one partition leaves the others alone.
pub async fn removal_leaves_other_logs_alone(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let kept = Subject::open(&engine, 0).await;
    let mut appended = kept.append_some(5).await;
    drop(fill(&engine, 1).await);
    assert_ne!(step(&engine, 1, ByteCount::new(1)).await, Removal::Done);
    appended.extend(kept.append_some(5).await);
    remove_all(&engine, 1).await;
    appended.extend(kept.append_some(5).await);
    kept.assert_holds(&appended).await;
    assert!(is_listed(&engine, 0).await);
}

/// Bytes that were read before the removal stay readable. Whether the removal waits for their reader
/// is the engine's choice; without one it comes to its end.
pub async fn bytes_outlive_a_removal(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let subject = fill(&engine, 0).await;
    let expected = subject.read_all(Offset::ZERO).await;
    let end = subject.log.bounds().durable_end;
    let limit = crate::ReadLimit { bytes: ByteCount::mib(1), minimum: crate::Minimum::OneBatch };
    let read = subject.log.read(Offset::ZERO, end, limit).await.expect("reads");
    drop(subject);
    for _ in 0..100 {
        if step(&engine, 0, ByteCount::kib(10)).await == Removal::Done {
            break;
        }
    }
    let bytes = read.read_to_memory().expect("still there");
    assert!(!bytes.is_empty());
    assert_eq!(bytes, expected.slice(..bytes.len()));
    remove_all(&engine, 0).await;
}
