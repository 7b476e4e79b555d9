//! The one place where tasks are started, so that each has a name and a panic is never lost.

use std::future::Future;

use tokio::runtime::Handle;

/// Runs `future` on `runtime` and waits for its end. False: it panicked, which is logged.
pub(crate) async fn supervise(
    runtime: &Handle,
    name: &'static str,
    future: impl Future<Output = ()> + Send + 'static,
) -> bool {
    let ended = runtime.spawn(future).await;
    if let Err(error) = &ended
        && error.is_panic()
    {
        tracing::error!(task = name, %error, "task panicked, and goes on the next time");
    }
    ended.is_ok()
}

/// Runs `future` on `runtime`. A panic in it is logged with the task's name; what the task owned is
/// dropped, and whoever waits for its answer sees the channel close.
pub(crate) fn spawn(
    runtime: &Handle,
    name: &'static str,
    future: impl Future<Output = ()> + Send + 'static,
) {
    let task = runtime.spawn(future);
    runtime.spawn(async move {
        if let Err(error) = task.await
            && error.is_panic()
        {
            tracing::error!(task = name, %error, "task panicked");
        }
    });
}
