//! Quarantine: out of service and not lost. What is lost is told.

use std::sync::Arc;

use strandline_model::{ByteCount, Offset, Timestamp};

use super::{
    Appended, Engine, Factory, Recorder, Stop, Subject, TestBatch, open_request, partition,
    settings,
};
use crate::{AppendError, ErrorKind, Found, LogSettings, Quarantined, Removal};

const SINCE: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// More steps than any removal here may take.
const STEPS_MAX: usize = 10_000;

/// Fills partition `index` with several chunks.
async fn fill(engine: &Engine, index: u32) -> (Subject, Vec<Appended>) {
    let subject = Subject::open(engine, index).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(2), ..settings() });
    let mut appended = Vec::new();
    for _ in 0..12 {
        appended.push(subject.append(TestBatch::of(3).value_bytes(200)).await);
    }
    (subject, appended)
}

async fn quarantine(engine: &Engine, index: u32) {
    engine.logs.quarantine(partition(index), SINCE).await.expect("a healthy engine sets it aside");
}

async fn quarantined(engine: &Engine) -> Vec<Quarantined> {
    engine.logs.quarantined().await.expect("lists")
}

async fn is_listed(engine: &Engine, index: u32) -> bool {
    engine.logs.list().await.expect("lists").contains(&partition(index))
}

async fn assert_open_is_refused(engine: &Engine, index: u32) {
    let heard = Arc::new(Recorder::default());
    let refused = engine.logs.open(open_request(index, &heard)).await;
    assert_eq!(refused.expect_err("it is in quarantine").kind(), ErrorKind::Invalid);
}

async fn remove_all(engine: &Engine, index: u32) {
    for _ in 0..STEPS_MAX {
        let removal = engine.logs.remove_some(partition(index), ByteCount::kib(1)).await;
        if removal.expect("a healthy engine removes") == Removal::Done {
            return;
        }
    }
    panic!("removal never ends");
}

/// Whoever has the log open is cut off, and nobody opens it; it is listed with its bytes.
pub async fn a_quarantined_log_is_served_to_nobody(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let (subject, appended) = fill(&engine, 0).await;
    let end = subject.log.bounds().written_end;
    quarantine(&engine, 0).await;

    let refused = subject.log.submit(end, TestBatch::of(1).seal(end, subject.epoch));
    let Err(AppendError::Refused(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Closed);
    let limit = crate::ReadLimit { bytes: ByteCount::mib(1), minimum: crate::Minimum::OneBatch };
    subject.log.read(Offset::ZERO, end, limit).await.expect_err("it is served to nobody");
    assert_eq!(subject.heard.death().await, ErrorKind::Closed);
    assert_open_is_refused(&engine, 0).await;
    assert_eq!(engine.logs.stored(partition(0)), None);
    assert!(is_listed(&engine, 0).await, "it owns bytes");
    let listed = quarantined(&engine).await;
    let bytes = appended.iter().map(|batch| ByteCount::of(&batch.bytes)).sum::<ByteCount>();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].id, listed[0].since), (partition(0), SINCE));
    assert!(listed[0].bytes >= bytes, "{listed:?} of {bytes}");
}

/// Calls may come twice; what is not there, or goes already, is no matter of quarantine.
pub async fn a_quarantine_is_idempotent_and_of_nothing_but_what_is_stored(
    factory: &mut impl Factory,
) {
    let engine = factory.make().await;
    quarantine(&engine, 5).await;
    engine.logs.release(partition(5)).await.expect("there is none to end");
    assert_eq!(quarantined(&engine).await, []);
    assert!(!is_listed(&engine, 5).await);

    drop(fill(&engine, 0).await);
    quarantine(&engine, 0).await;
    let once = quarantined(&engine).await;
    let later = SINCE.plus_millis(1000);
    engine.logs.quarantine(partition(0), later).await.expect("it may come twice");
    assert_eq!(quarantined(&engine).await, once, "the first moment counts");

    drop(fill(&engine, 1).await);
    let step = engine.logs.remove_some(partition(1), ByteCount::new(1)).await.expect("removes");
    assert_ne!(step, Removal::Done);
    let refused = engine.logs.quarantine(partition(1), SINCE).await;
    assert_eq!(refused.expect_err("it is being removed").kind(), ErrorKind::Invalid);
}

/// Everything that was acknowledged is there again, and the log goes on behind it.
pub async fn a_released_log_is_as_it_was(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let (subject, mut appended) = fill(&engine, 0).await;
    subject.log.trim(appended[4].offsets.start).await.expect("trims");
    subject.log.save_state(appended[4].offsets.end, "state".into()).await.expect("saves");
    let bounds = subject.log.bounds();
    quarantine(&engine, 0).await;
    for _ in 0..2 {
        engine.logs.release(partition(0)).await.expect("a healthy engine brings it back");
        assert_eq!(quarantined(&engine).await, []);
    }
    let again = Subject::open(&engine, 0).await;
    assert_ne!(again.found, Found::Created);
    assert_eq!(again.log.bounds(), bounds);
    let (at, state) = again.log.load_state().await.expect("loads").expect("it was saved");
    assert_eq!((at, &state[..]), (appended[4].offsets.end, &b"state"[..]));
    again.assert_holds(&appended).await;
    appended.extend(again.append_some(3).await);
    again.assert_holds(&appended).await;
    // Whoever had it open before stays cut off.
    let end = again.log.bounds().written_end;
    let refused = subject.log.submit(end, TestBatch::of(1).seal(end, subject.epoch));
    assert!(matches!(refused, Err(AppendError::Refused(_))), "{refused:?}");
    assert_eq!(engine.logs.verify(partition(0)).await.expect("verifies"), []);
}

/// However the engine stops.
pub async fn a_quarantine_survives_a_restart_and_so_does_its_end(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        let (subject, mut appended) = fill(&engine, 0).await;
        drop(subject);
        quarantine(&engine, 0).await;
        let kept = async |engine: &Engine| {
            let listed = quarantined(engine).await;
            assert_eq!(listed.len(), 1, "{listed:?}");
            (listed[0].id, listed[0].since)
        };
        assert_eq!(kept(&engine).await, (partition(0), SINCE));
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert_open_is_refused(&engine, 0).await;
        assert_eq!(kept(&engine).await, (partition(0), SINCE));
        quarantine(&engine, 0).await;
        assert_eq!(kept(&engine).await, (partition(0), SINCE));
        engine.logs.release(partition(0)).await.expect("a healthy engine brings it back");
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert_eq!(quarantined(&engine).await, []);
        let again = Subject::open(&engine, 0).await;
        again.assert_holds(&appended).await;
        appended.extend(again.append_some(2).await);
        again.assert_holds(&appended).await;
    }
}

/// In steps, and for good.
pub async fn a_quarantined_log_is_removed_like_any_other(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        drop(fill(&engine, 0).await);
        quarantine(&engine, 0).await;
        let step = engine.logs.remove_some(partition(0), ByteCount::new(1)).await;
        assert_ne!(step.expect("removes"), Removal::Done, "more than a block is there");
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert!(is_listed(&engine, 0).await, "what is left is listed");
        remove_all(&engine, 0).await;
        assert!(!is_listed(&engine, 0).await);
        assert_eq!(quarantined(&engine).await, []);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert!(!is_listed(&engine, 0).await);
        assert_eq!(quarantined(&engine).await, []);
    }
}

/// One log's quarantine is no other's.
pub async fn other_logs_go_on_beside_a_quarantine(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let (kept, mut appended) = fill(&engine, 0).await;
    drop(fill(&engine, 1).await);
    quarantine(&engine, 1).await;
    appended.extend(kept.append_some(5).await);
    remove_all(&engine, 1).await;
    appended.extend(kept.append_some(5).await);
    kept.assert_holds(&appended).await;
}

/// Logs that hold much, little, nothing any more, or nothing yet: all of it is there.
pub async fn a_healthy_store_has_lost_nothing(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        drop(fill(&engine, 0).await);
        let (emptied, _) = fill(&engine, 1).await;
        emptied.log.trim(emptied.log.bounds().durable_end).await.expect("trims");
        drop(Subject::open(&engine, 2).await);
        drop(fill(&engine, 3).await);
        quarantine(&engine, 3).await;
        assert_eq!(engine.logs.lost().await.expect("looks"), []);
        drop(emptied);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        assert_eq!(engine.logs.lost().await.expect("looks"), []);
    }
}
