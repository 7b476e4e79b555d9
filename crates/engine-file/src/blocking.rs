//! Where work goes that may wait for the disk.

use strandline_storage::{ErrorKind, StorageError};
use tokio::runtime::Handle;

/// Runs `work` where it stalls no core of the runtime; at once when there is none.
pub(crate) async fn blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StorageError> + Send + 'static,
{
    let Ok(runtime) = Handle::try_current() else { return work() };
    match runtime.spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StorageError::new(ErrorKind::Closed, "runtime is shutting down").into()),
        },
    }
}
