//! Waiting for room in the journal: the waiter sees to it that there will be some.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use strandline_storage::{ErrorKind, StorageError};

use crate::checkpoint::Checkpoints;
use crate::queue::{Bounds, Control, Found, Queue};

const BOUNDS: Bounds = Bounds { waiting: 1000, data: 600, rows: 700 };

/// The commit thread's look: a checkpoint begins. It does not happen.
fn expect_checkpoint(queue: &Queue) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let found = queue.take(&mut VecDeque::new(), Some(deadline), true);
    assert!(matches!(found, Found::Control(Control::Freeze(..))), "somebody asks for a checkpoint");
}

/// A checkpoint thread for as long as `body` runs.
fn with_checkpoints(queue: &Queue, body: impl FnOnce(&Checkpoints)) {
    struct Stop<'a>(&'a Checkpoints);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.stop();
        }
    }

    let checkpoints = Checkpoints::default();
    std::thread::scope(|scope| {
        scope.spawn(|| checkpoints.run(queue, |_| Ok(())));
        // Even when the body panics: the scope waits for the thread.
        let stop = Stop(&checkpoints);
        body(stop.0);
    });
}

#[test]
fn who_waits_for_room_asks_for_a_checkpoint_and_looks_again_when_it_freed_nothing() {
    let mut context = Context::from_waker(Waker::noop());
    let queue = Queue::new(BOUNDS);
    // The checkpoint that the refused append had brought about has ended already.
    queue.checkpoint_ended(BOUNDS.data);
    with_checkpoints(&queue, |checkpoints| {
        let mut waiting = pin!(queue.data_room(checkpoints));
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
        expect_checkpoint(&queue);
        queue.checkpoint_ended(BOUNDS.data);
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
    });
}

#[test]
fn rows_wait_until_there_is_room_for_them() {
    let mut context = Context::from_waker(Waker::noop());
    let queue = Queue::new(BOUNDS);
    queue.checkpoint_ended(BOUNDS.rows);
    let checkpoints = Checkpoints::default();
    let mut waiting = pin!(queue.rows_room(&checkpoints));
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
    with_checkpoints(&queue, |checkpoints| {
        let mut other = pin!(queue.rows_room(checkpoints));
        assert_eq!(other.as_mut().poll(&mut context), Poll::Pending);
        expect_checkpoint(&queue);
        queue.checkpoint_ended(BOUNDS.rows);
        assert_eq!(other.as_mut().poll(&mut context), Poll::Pending, "nothing was freed");
        queue.checkpoint_ended(0);
        assert_eq!(other.as_mut().poll(&mut context), Poll::Ready(()));
    });
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
}

#[test]
fn nobody_waits_for_room_in_a_queue_that_is_closed() {
    let mut context = Context::from_waker(Waker::noop());
    let queue = Queue::new(BOUNDS);
    let checkpoints = Checkpoints::default();
    queue.checkpoint_ended(BOUNDS.rows);
    let mut waiting = pin!(queue.rows_room(&checkpoints));
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
    queue.close(StorageError::new(ErrorKind::Closed, "closed"));
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
    let mut later = pin!(queue.data_room(&checkpoints));
    assert_eq!(later.as_mut().poll(&mut context), Poll::Ready(()));
}
