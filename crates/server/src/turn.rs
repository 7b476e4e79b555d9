//! How long one connection keeps its thread from the others.
//!
//! A thread serves many connections, one after another, and changes to the next where one waits. A
//! peer that sends requests faster than they are answered never makes its connection wait: it gives
//! way by the clock.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

/// After so long without a wait the other connections of the thread go first: far below what one
/// durable write takes, far above what changing costs.
const TURN_MAX: Duration = Duration::from_micros(200);

/// The time since the connection last waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    began_at: Instant,
}

impl Turn {
    /// Begins now: the connection has waited.
    pub(crate) fn begin() -> Self {
        Self { began_at: Instant::now() }
    }

    /// Whether others should go first.
    pub(crate) fn is_over(&self) -> bool {
        self.began_at.elapsed() >= TURN_MAX
    }

    /// Lets the others go first.
    pub(crate) async fn pass(&mut self) {
        tokio::task::yield_now().await;
        *self = Self::begin();
    }

    /// Waits for `future`, which begins a new turn unless it was ready at once.
    pub(crate) async fn begin_after<F: Future>(future: F) -> (F::Output, Option<Self>) {
        let mut future = pin!(future);
        let mut waited = false;
        let output = std::future::poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            waited |= polled.is_pending();
            polled
        });
        let output = output.await;
        (output, waited.then(Self::begin))
    }
}

/// What `future` comes to without a wait, if anything.
pub(crate) async fn now_or_never<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        Poll::Ready(match pin!(&mut *future).poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_over_after_its_time_and_begins_anew_when_passed() {
        let mut turn = Turn::begin();
        assert!(!turn.is_over());
        tokio::time::advance(TURN_MAX).await;
        assert!(turn.is_over());
        turn.pass().await;
        assert!(!turn.is_over());
    }

    #[tokio::test]
    async fn passing_lets_another_task_run() {
        let ran = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let other = std::sync::Arc::clone(&ran);
        tokio::spawn(async move { other.store(true, std::sync::atomic::Ordering::Relaxed) });
        Turn::begin().pass().await;
        assert!(ran.load(std::sync::atomic::Ordering::Relaxed));
    }

    #[tokio::test]
    async fn only_a_wait_begins_a_turn() {
        let (output, turn) = Turn::begin_after(std::future::ready(7)).await;
        assert_eq!(output, 7);
        assert!(turn.is_none());
        let ((), turn) = Turn::begin_after(tokio::task::yield_now()).await;
        assert!(turn.is_some());
    }
}
