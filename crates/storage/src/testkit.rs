//! What every engine must do, as tests that run against any of them; and failures on demand.
//!
//! An engine's `tests/conformance.rs` hands a [`Factory`] to [`conformance_tests!`](crate::conformance_tests)
//! and gets one `#[test]` for each case below. Each case checks a sentence of the traits' doc
//! comments and nothing that they leave open. What only the engine can do to itself (lose a file,
//! damage a byte, fill its disk) is tested by the engine.
//!
//! [`faults`] wraps any engine in failures by plan, for the tests of whoever uses one.
//!
//! # Invariants
//! - Cases run on a single-threaded runtime and never sleep: they wait for what they wait for, and
//!   [`CASE_SECONDS_MAX`] ends those that wait in vain.

pub mod append;
mod batch;
pub mod chunk;
pub mod faults;
pub mod history;
mod macros;
pub mod meta;
pub mod open;
pub mod quarantine;
pub mod read;
mod recorder;
pub mod remove;
pub mod rewrite;
pub mod state;
pub mod store;
mod subject;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::{LogStore, MetaStore};

pub use batch::TestBatch;
pub use recorder::{Event, Recorder};
pub use subject::{Appended, Subject, open_request, partition, settings};

/// How long a case may take before it counts as hanging.
pub const CASE_SECONDS_MAX: u64 = 120;

/// An engine under test.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its logs.
    pub logs: Arc<dyn LogStore>,
    /// Its rows: its own, or those of the engine that it keeps company with.
    pub rows: Arc<dyn MetaStore>,
}

/// How an engine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// [`LogStore::close`] was called and returned.
    Clean,
    /// The process was killed: nothing was closed. What was not durable may be lost.
    Crash,
}

/// Makes the engines of one case. Dropped with it, and so is what the engines stored.
pub trait Factory: Debug {
    /// A new engine that holds nothing.
    fn make(&mut self) -> impl Future<Output = Engine>;

    /// Another engine over what `engine` stored, which has stopped as `stop` says. Nobody holds a
    /// handle of `engine` any more. `None` when what the engine stores goes with it.
    fn restart(&mut self, engine: Engine, stop: Stop) -> impl Future<Output = Option<Engine>>;
}

impl Engine {
    /// Stops the engine and starts it again; `None` when nothing of it would be left.
    pub async fn restarted(self, factory: &mut impl Factory, stop: Stop) -> Option<Self> {
        if stop == Stop::Clean {
            self.logs.close().await.expect("a healthy engine closes");
        }
        factory.restart(self, stop).await
    }
}

/// Runs one case on a runtime of its own. What [`conformance_tests!`](crate::conformance_tests)
/// makes its tests of.
///
/// # Panics
/// When the case does, or hangs.
pub fn run<F: Factory>(
    make: impl FnOnce() -> F + Send + 'static,
    case: impl AsyncFnOnce(&mut F) + Send + 'static,
) {
    run_blocking(move || runtime().block_on(async move { case(&mut make()).await }));
}

/// Runs `body` on a thread of its own, so that one that blocks for ever fails instead of hanging.
fn run_blocking(body: impl FnOnce() + Send + 'static) {
    let (done, wait) = channel();
    let thread = std::thread::spawn(move || {
        body();
        done.send(()).expect("whoever started the case waits for it");
    });
    match wait.recv_timeout(Duration::from_secs(CASE_SECONDS_MAX)) {
        Err(RecvTimeoutError::Timeout) => panic!("the case hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}
