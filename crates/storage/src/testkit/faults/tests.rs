//! The injected failures are what they promise to be.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use strandline_model::{ByteCount, Offset};

use super::{CommitFault, Faults, SubmitFault};
use crate::testkit::{Engine, Event, Subject, TestBatch};
use crate::{
    AppendError, CommitError, ErrorKind, MemoryEngine, MemoryOptions, MetaBatch, Minimum,
    ReadError, ReadLimit, Table,
};

fn engine(faults: &Faults) -> Engine {
    let options = MemoryOptions::with_capacity(ByteCount::mib(16));
    let memory = Arc::new(MemoryEngine::new(options, |task| drop(tokio::spawn(task))));
    faults.wrap(Engine { logs: Arc::clone(&memory) as _, rows: memory })
}

/// Lets every other task of the runtime run until it waits.
async fn others_run() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_planned_submit_is_refused_and_the_next_is_not() {
    let faults = Faults::none();
    let subject = Subject::open(&engine(&faults), 0).await;
    faults.on_submit(1, SubmitFault::Busy);
    faults.on_submit(2, SubmitFault::Full);
    let submit = || {
        let at = subject.log.bounds().written_end;
        subject.log.submit(at, TestBatch::of(1).seal(at, subject.epoch))
    };
    submit().expect("the first is not planned");
    assert!(matches!(submit(), Err(AppendError::Busy)));
    subject.log.ready().await;
    let Err(AppendError::Refused(error)) = submit() else { panic!("the third is") };
    assert_eq!(error.kind(), ErrorKind::Full);
    submit().expect("the fourth is not").await.expect("durable");
    assert_eq!(subject.log.bounds().durable_end, Offset::new(2));
}

#[tokio::test]
async fn a_dead_handle_stays_dead_until_the_log_is_opened_again() {
    for (fault, end) in [(SubmitFault::LoseAndDie, 1), (SubmitFault::KeepAndDie, 3)] {
        let faults = Faults::none();
        let engine = engine(&faults);
        let subject = Subject::open(&engine, 0).await;
        subject.append(TestBatch::of(1)).await;
        faults.on_submit(0, fault);
        let (_, ticket) = subject.submit(TestBatch::of(2)).await;
        ticket.await.expect_err("the handle died");
        assert_eq!(subject.heard.death().await, ErrorKind::Unavailable);
        let at = subject.log.bounds().written_end;
        let refused = subject.log.submit(at, TestBatch::of(1).seal(at, subject.epoch));
        let Err(AppendError::Refused(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.kind(), ErrorKind::Closed);

        let epoch = subject.epoch;
        drop(subject);
        let subject = Subject::open(&engine, 0).await;
        assert!(subject.epoch > epoch, "an unclean stop");
        assert_eq!(subject.log.bounds().durable_end, Offset::new(end), "{fault:?}");
        subject.append(TestBatch::of(1)).await;
    }
}

#[tokio::test]
async fn held_progress_is_seen_by_nobody() {
    let faults = Faults::none();
    let subject = Subject::open(&engine(&faults), 0).await;
    subject.append(TestBatch::of(1)).await;
    faults.hold();
    let (batch, ticket) = subject.submit(TestBatch::of(2)).await;
    let mut ticket = pin!(ticket);
    others_run().await;
    assert!(ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(subject.log.bounds().durable_end, Offset::new(1));
    assert_eq!(subject.heard.events(), [Event::Durable(Offset::new(1))]);
    let limit = ReadLimit { bytes: ByteCount::mib(1), minimum: Minimum::OneBatch };
    let beyond = subject.log.read(Offset::new(3), Offset::new(3), limit).await;
    assert!(matches!(beyond, Err(ReadError::OutOfRange(_))));

    faults.release();
    ticket.await.expect("durable");
    assert_eq!(subject.log.bounds().durable_end, batch.offsets.end);
    assert_eq!(subject.heard.durable_end(), Some(batch.offsets.end));
    subject.append(TestBatch::of(1)).await;
}

#[tokio::test]
async fn a_failed_commit_changes_nothing_or_everything() {
    let faults = Faults::none();
    let engine = engine(&faults);
    faults.on_commit(0, CommitFault::Lose);
    faults.on_commit(1, CommitFault::Keep);
    for (key, rows) in [("lost", 0), ("kept", 1), ("fine", 2)] {
        let outcome = engine.rows.commit(MetaBatch::new().put(Table::Topics, key, "")).await;
        assert_eq!(matches!(outcome, Err(CommitError::Storage(_))), key != "fine", "{outcome:?}");
        let page = engine.rows.scan(Table::Topics, None, 10).await.expect("scans");
        assert_eq!(page.rows.len(), rows, "{key}");
    }
}

#[tokio::test]
async fn planned_openings_and_reads_fail() {
    let faults = Faults::none();
    let engine = engine(&faults);
    faults.on_open(1, ErrorKind::Corrupt);
    let subject = Subject::open(&engine, 0).await;
    let heard = Arc::new(crate::testkit::Recorder::default());
    let refused = engine.logs.open(crate::testkit::open_request(1, &heard)).await;
    assert_eq!(refused.expect_err("planned").kind(), ErrorKind::Corrupt);

    subject.append(TestBatch::of(1)).await;
    faults.on_read(0, ErrorKind::Unavailable);
    let limit = ReadLimit { bytes: ByteCount::mib(1), minimum: Minimum::OneBatch };
    let end = Offset::new(1);
    let read = subject.log.read(Offset::ZERO, end, limit).await;
    assert!(matches!(read, Err(ReadError::Storage(_))));
    let read = subject.log.read(Offset::ZERO, end, limit);
    let Poll::Ready(read) = pin!(read).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("memory answers at once")
    };
    assert!(!read.expect("the next is not planned").is_empty());
}
