//! Appending: compare-and-append, tickets, the listener, a full queue.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use bytes::BytesMut;
use strandline_model::{ByteCount, Offset, OffsetDelta, Timestamp};
use strandline_records::SealedBatches;

use super::{Event, Factory, Subject, TestBatch, settings};
use crate::{AppendError, Found, LogBounds, LogSettings, ReadError, Ticket};

/// A log that was never appended to exists, and there is nothing in it.
pub async fn a_new_log_is_empty(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let log = &subject.log;
    assert_eq!(subject.found, Found::Created);
    assert_eq!(log.bounds(), LogBounds::EMPTY);
    assert_eq!(log.chunks(), Vec::new());
    assert_eq!(log.load_state().await.expect("no state is no failure"), None);
    assert_eq!(log.find_timestamp(Timestamp::from_millis(0)).await.expect("nothing"), None);
    subject.assert_holds(&[]).await;
}

/// The written end moves with the submit, the durable end no later than the ticket resolves.
pub async fn the_ends_move_with_submit_and_ticket(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let (appended, ticket) = subject.submit(TestBatch::of(3)).await;
    assert_eq!(subject.log.bounds().written_end, Offset::new(3));
    ticket.await.expect("durable");
    let ends = LogBounds {
        log_start: Offset::ZERO,
        durable_end: Offset::new(3),
        written_end: Offset::new(3),
    };
    assert_eq!(subject.log.bounds(), ends);
    subject.assert_holds(&[appended]).await;
}

/// An append elsewhere than at the end is refused with the end, and nothing is written.
pub async fn an_append_elsewhere_than_the_end_is_refused(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let appended = subject.append_some(3).await;
    let end = subject.log.bounds().written_end;
    for at in [Offset::ZERO, Offset::new(1), end.next(), end + OffsetDelta::new(1000)] {
        let refused = subject.log.submit(at, TestBatch::of(2).seal(at, subject.epoch));
        let Err(AppendError::Moved { written_end }) = refused else { panic!("{refused:?}") };
        assert_eq!(written_end, end);
    }
    subject.assert_holds(&appended).await;
}

/// Submits follow each other without waiting, and their tickets resolve in order.
pub async fn submits_pipeline_and_settle_in_order(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut appended = Vec::new();
    let mut tickets = Vec::new();
    for number in 0..40 {
        let (batch, ticket) = subject.submit(TestBatch::of(1 + number % 3)).await;
        appended.push(batch);
        tickets.push(Some(ticket));
    }
    poll_fn(|cx| {
        // The last first: once one is ready, all that are older must be ready by now.
        let mut newer_is_ready = false;
        for slot in tickets.iter_mut().rev() {
            let ready = slot.as_mut().is_none_or(|ticket| match Pin::new(ticket).poll(cx) {
                Poll::Ready(outcome) => outcome.map(|()| true).expect("durable"),
                Poll::Pending => false,
            });
            assert!(ready || !newer_is_ready, "a ticket overtook an older one");
            if ready {
                *slot = None;
            }
            newer_is_ready |= ready;
        }
        if tickets.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    subject.assert_holds(&appended).await;
}

/// `durable(end)` resolves when everything before `end` is durable: at once when it is already.
pub async fn durable_waits_for_what_lies_before_its_end(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.log.durable(Offset::ZERO).await.expect("nothing is durable");
    let mut waits: Vec<(Offset, Ticket)> = Vec::new();
    for _ in 0..5 {
        let (batch, _dropped) = subject.submit(TestBatch::of(2)).await;
        waits.push((batch.offsets.end, subject.log.durable(batch.offsets.end)));
    }
    // The newest first: waiting for it must not need the others to be polled.
    while let Some((end, ticket)) = waits.pop() {
        ticket.await.expect("durable");
        assert!(subject.log.bounds().durable_end >= end);
        subject.log.durable(end).await.expect("durable still");
    }
}

/// A ticket that nobody waits for makes its append durable all the same.
pub async fn a_dropped_ticket_cancels_nothing(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let (first, ticket) = subject.submit(TestBatch::of(2)).await;
    drop(ticket);
    let second = subject.append(TestBatch::of(1)).await;
    subject.assert_holds(&[first, second]).await;
}

/// Several batches in one submit are appended together, and each can be read from.
pub async fn a_submit_may_hold_several_batches(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut bytes = BytesMut::new();
    let mut begins = Vec::new();
    for at in [0, 2, 5].map(Offset::new) {
        let records = if at == Offset::new(2) { 3 } else { 2 };
        begins.push((at, bytes.len()));
        bytes.extend_from_slice(TestBatch::of(records).seal(at, subject.epoch).bytes());
    }
    let bytes = bytes.freeze();
    let sealed = SealedBatches::from_sealed(bytes.clone(), Timestamp::from_millis(1));
    let sealed = sealed.expect("whole batches").expect("without holes");
    subject.log.submit(Offset::ZERO, sealed).expect("taken").await.expect("durable");
    assert_eq!(subject.log.bounds().durable_end, Offset::new(7));
    for (at, begin) in begins {
        assert_eq!(subject.read_all(at).await, bytes.slice(begin..));
    }
}

/// A batch that is larger than a whole chunk is kept like any other.
pub async fn a_batch_larger_than_a_chunk_is_kept(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    subject.log.configure(LogSettings { segment_bytes: ByteCount::kib(16), ..settings() });
    let mut appended = subject.append_some(2).await;
    appended.push(subject.append(TestBatch::of(4).value_bytes(50_000)).await);
    appended.extend(subject.append_some(2).await);
    subject.assert_holds(&appended).await;
}

/// The listener hears of every durable end, in rising order, before its tickets resolve.
pub async fn the_listener_hears_first_and_in_order(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut waits = Vec::new();
    for number in 0..20 {
        let (batch, ticket) = subject.submit(TestBatch::of(1 + number % 2)).await;
        waits.push((batch.offsets.end, ticket));
    }
    for (end, ticket) in waits {
        ticket.await.expect("durable");
        assert!(subject.heard.durable_end() >= Some(end), "a ticket overtook the listener");
    }
    let events = subject.heard.events();
    let ends = events.iter().map(|event| match event {
        Event::Durable(end) => *end,
        Event::Died(kind) => panic!("a healthy log died: {kind:?}"),
    });
    assert!(ends.is_sorted_by(|earlier, later| earlier < later), "{events:?}");
}

/// A submit that is refused because the queue is full wrote nothing, and is taken once the engine
/// says that it is ready. Engines whose queue takes this many show nothing here.
pub async fn a_busy_engine_takes_the_append_later(factory: &mut impl Factory) {
    const APPENDS: u32 = 3000;
    let subject = Subject::open(&factory.make().await, 0).await;
    let mut appended = Vec::new();
    for number in 0..APPENDS {
        let before = subject.log.bounds().written_end;
        let sealed = TestBatch::of(1).seal(before, subject.epoch);
        match subject.log.submit(before, sealed) {
            Ok(_dropped) => {}
            Err(AppendError::Busy) => {
                assert_eq!(subject.log.bounds().written_end, before, "a refused append wrote");
                subject.log.ready().await;
                // Once more, by way of the helper that waits.
                appended.push(subject.submit(TestBatch::of(1)).await.0);
                continue;
            }
            Err(error) => panic!("append {number}: {error:?}"),
        }
        appended.push(super::Appended {
            offsets: before..before.next(),
            bytes: TestBatch::of(1).seal(before, subject.epoch).bytes().clone(),
            timestamp: TestBatch::of(1).timestamp,
        });
    }
    let end = subject.log.bounds().written_end;
    subject.log.durable(end).await.expect("durable");
    subject.assert_holds(&appended).await;
}

/// What is not durable yet can't be read.
pub async fn nothing_is_read_before_it_is_durable(factory: &mut impl Factory) {
    let subject = Subject::open(&factory.make().await, 0).await;
    for number in 0..20 {
        let (batch, ticket) = subject.submit(TestBatch::of(1)).await;
        let limit =
            crate::ReadLimit { bytes: ByteCount::mib(1), minimum: crate::Minimum::OneBatch };
        // Just past its end: out of range until it is durable, then its border.
        let end = batch.offsets.end;
        match subject.log.read(end, end, limit).await {
            Ok(read) => {
                assert!(read.is_empty());
                assert!(subject.log.bounds().durable_end >= end, "batch {number}");
            }
            Err(ReadError::OutOfRange(bounds)) => assert!(bounds.durable_end < end),
            Err(error) => panic!("{error:?}"),
        }
        ticket.await.expect("durable");
    }
}
