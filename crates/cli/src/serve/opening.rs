//! How far a start is: in the log and for HTTP, so that nobody takes a long recovery for a broker that
//! hangs.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strandline_engine_file::{OpenProgress, OpenWork};
use tokio::sync::watch;

use super::plan::Storage;
use super::tell::tell;

/// How often a start that takes long says so.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// A start under way.
#[derive(Debug)]
pub(crate) struct Opening {
    begun: Instant,
    /// `None`: there is no folder.
    folder: Option<Arc<OpenProgress>>,
    /// What the start waits for, and why.
    waiting: watch::Sender<Option<String>>,
}

impl Opening {
    /// A start that begins now.
    pub(crate) fn begin(storage: &Storage) -> Self {
        let folder = match storage {
            Storage::Folder(_) => Some(Arc::default()),
            Storage::Memory | Storage::Database(_) => None,
        };
        Self { begun: Instant::now(), folder, waiting: watch::Sender::new(None) }
    }

    /// Where whoever opens the folder says how far it is.
    pub(super) fn folder(&self) -> Arc<OpenProgress> {
        self.folder.clone().unwrap_or_default()
    }

    /// The start waits for something, or for nothing any more.
    pub(super) fn wait_for(&self, what: Option<String>) {
        self.waiting.send_replace(what);
    }

    /// What is done now, and since when the start is under way.
    pub(crate) fn told(&self) -> String {
        let step = self.folder.as_ref().map(|folder| folder.now());
        let waiting = self.waiting.borrow().clone();
        let work = match (waiting, step.filter(|step| step.work != OpenWork::Done)) {
            (Some(waiting), _) => waiting,
            (None, Some(step)) => step.to_string(),
            (None, None) => "reading topics and groups".to_owned(),
        };
        format!("{work}; since {} s", self.begun.elapsed().as_secs())
    }

    /// Waits for the `start`, and says every few seconds how far it is.
    pub(super) async fn watch<T>(&self, start: impl Future<Output = T>) -> T {
        let mut start = pin!(start);
        loop {
            match tokio::time::timeout(TOLD_EVERY, &mut start).await {
                Ok(done) => return done,
                Err(_) => tell(&format!("still starting: {}", self.told())),
            }
        }
    }
}
