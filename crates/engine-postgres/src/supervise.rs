//! Tasks that must not end: one that panics is started again, and the panic is told and counted.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::vitals::{Vitals, count};

/// Before a task begins again.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs what `make` makes until it comes to its end. After a panic `died` sees to what it left behind.
/// Whoever aborts this aborts that too.
pub(crate) async fn supervise<F>(
    name: &'static str,
    vitals: Arc<Vitals>,
    mut make: impl FnMut() -> F + Send,
    mut died: impl FnMut() + Send,
) where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let mut task = JoinSet::new();
        task.spawn(make());
        match task.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                tracing::error!(task = name, %error, "task panicked and begins again");
                count(&vitals.counts.tasks_restarted);
                died();
                tokio::time::sleep(PAUSE).await;
            }
            _ => return,
        }
    }
}
