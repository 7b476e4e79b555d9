//! How long one connection keeps its thread from the others.
//!
//! A thread serves many connections, one after another, and changes to the next where one waits. A
//! peer that sends requests faster than they are answered never makes its connection wait: it gives
//! way by the clock, to the connections of its thread and to the threads that share its core.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

/// After so long without a wait the other connections of the thread go first: far below what one
/// durable write takes, far above what changing costs.
const TURN_MAX: Duration = Duration::from_micros(200);

/// How long a connection has been going on without a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// When it was first asked: a connection that has little to do never asks.
    began_at: Option<Instant>,
}

impl Turn {
    /// Whether others should go first.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        now - *self.began_at.get_or_insert(now) >= TURN_MAX
    }

    /// Lets the others go first.
    ///
    /// Also other threads: a thread that works on and on keeps the one that makes appends durable
    /// from its core for a slice of the system's scheduler, which takes milliseconds.
    pub(crate) async fn pass(&mut self) {
        std::thread::yield_now();
        tokio::task::yield_now().await;
        *self = Self::default();
    }

    /// Waits for `future`, which begins a new turn unless it was ready at once. Whether it was.
    pub(crate) async fn begin_after<F: Future>(&mut self, future: F) -> (F::Output, bool) {
        let mut future = pin!(future);
        let mut at_once = true;
        let output = std::future::poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            at_once &= polled.is_ready();
            polled
        });
        let output = output.await;
        if !at_once {
            *self = Self::default();
        }
        (output, at_once)
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
        let mut turn = Turn::default();
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
        Turn::default().pass().await;
        assert!(ran.load(std::sync::atomic::Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_wait_begins_a_turn() {
        let mut turn = Turn::default();
        assert!(!turn.is_over());
        tokio::time::advance(TURN_MAX).await;
        assert_eq!(turn.begin_after(std::future::ready(7)).await, (7, true));
        assert!(turn.is_over(), "it went on without a wait");
        assert_eq!(turn.begin_after(tokio::task::yield_now()).await, ((), false));
        assert!(!turn.is_over());
    }
}
