//! The moment at which a request must be answered.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use strandline_storage::BoxFuture;

use crate::environment::Environment;

/// A moment until which is waited. A timer is made only when something is not ready at once.
pub(crate) struct Deadline<'a> {
    environment: &'a dyn Environment,
    /// By the environment's monotonic clock.
    at: Duration,
    timer: Option<BoxFuture<'static, ()>>,
    is_over: bool,
}

impl<'a> Deadline<'a> {
    pub(crate) const fn new(environment: &'a dyn Environment, at: Duration) -> Self {
        Self { environment, at, timer: None, is_over: false }
    }

    /// Waits for `future`; `None` when the moment comes first. What is ready is taken even then.
    pub(crate) async fn wait<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let timer = self.timer.get_or_insert_with(|| {
                let left = self.at.saturating_sub(self.environment.monotonic());
                self.environment.sleep(left)
            });
            self.is_over = timer.as_mut().poll(context).is_ready();
            if self.is_over { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}
