//! Saved state: what readers of a log derived from it, kept for them.

use bytes::Bytes;
use strandline_model::Offset;

use super::{Factory, Stop, Subject};

/// The last saved state is loaded; there is none before the first.
pub async fn the_last_saved_state_is_loaded(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.append_some(6).await;
    let end = subject.log.bounds().durable_end;
    assert_eq!(subject.log.load_state().await.expect("loads"), None);
    let large = Bytes::from(vec![7; 300_000]);
    for (at, state) in [
        (Offset::new(2), Bytes::from("a")),
        (end, large),
        (end, Bytes::new()),
        (Offset::ZERO, "b".into()),
    ] {
        subject.log.save_state(at, state.clone()).await.expect("saves");
        assert_eq!(subject.log.load_state().await.expect("loads"), Some((at, state)));
    }
}

/// A state above the durable end would be a lie after a crash: refused.
pub async fn a_state_above_the_durable_end_is_refused(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.append_some(2).await;
    let past = subject.log.bounds().written_end.next();
    subject.log.save_state(past, "x".into()).await.expect_err("past the end");
    assert_eq!(subject.log.load_state().await.expect("loads"), None);
}

/// A clean stop keeps the last state; a crash keeps it or an earlier one.
pub async fn a_saved_state_survives_a_restart(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let engine = factory.make().await;
        let subject = Subject::open(&engine, 0).await;
        let mut saved = Vec::new();
        for name in ["first", "second", "third"] {
            subject.append_some(2).await;
            let end = subject.log.bounds().durable_end;
            subject.log.save_state(end, name.into()).await.expect("saves");
            saved.push(Some((end, Bytes::from(name))));
        }
        drop(subject);
        let Some(engine) = engine.restarted(factory, stop).await else { return };
        let subject = Subject::open(&engine, 0).await;
        let loaded = subject.log.load_state().await.expect("loads");
        match stop {
            Stop::Clean => assert_eq!(Some(&loaded), saved.last()),
            Stop::Crash => assert!(loaded.is_none() || saved.contains(&loaded), "{loaded:?}"),
        }
    }
}

/// Trimming and rolling leave the state alone.
pub async fn a_saved_state_outlives_a_trim(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.append_some(4).await;
    let end = subject.log.bounds().durable_end;
    subject.log.save_state(Offset::new(1), "state".into()).await.expect("saves");
    subject.log.roll().await.expect("rolls");
    subject.log.trim(end).await.expect("trims");
    let loaded = subject.log.load_state().await.expect("loads");
    assert_eq!(loaded, Some((Offset::new(1), "state".into())));
}
