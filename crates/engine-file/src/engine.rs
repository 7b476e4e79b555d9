//! The engine: what its parts share, how it starts and how it stops.

use std::fmt;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use parking_lot::{Mutex, RwLock};
use strandline_storage::{ErrorKind, StorageError};

use crate::checkpoint::Checkpoints;
use crate::commit::Committer;
use crate::config::FileEngineConfig;
use crate::disk::Disk;
use crate::folder_lock;
use crate::journal::files::JournalFiles;
use crate::journal::writer::{FileSizes, Writer};
use crate::progress::OpenWork;
use crate::queue::{Queue, StopMark};
use crate::recovery::{self, DamagedLog, OpenError, RecoveryReport};
use crate::registry::Registry;
use crate::rewrite::Rewriting;
use crate::rows::Rows;
use crate::segment::SegmentStore;
use crate::space::SpaceGauge;
use crate::store::Ending;
use crate::sweeper::{self, Sweeper};
use crate::unsaved::Unsaved;
use crate::unsound::Unsound;

/// Commit logs and rows in one folder. See the [crate](crate).
pub struct FileEngine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) running: Arc<Running>,
}

/// The threads of an engine. They end when the engine and all handles of its logs are gone.
#[derive(Debug)]
pub(crate) struct Running {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Whoever holds it is the only one to open or remove logs.
pub(crate) type Turn = Arc<tokio::sync::OwnedMutexGuard<()>>;

/// What the threads and all handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) config: FileEngineConfig,
    pub(crate) queue: Queue,
    pub(crate) rows: RwLock<Rows>,
    pub(crate) segments: Arc<SegmentStore>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) logs: Arc<Registry>,
    pub(crate) unsound: Unsound,
    pub(crate) unsaved: Unsaved,
    pub(crate) ending: Ending,
    pub(crate) rewriting: Rewriting,
    /// One opener, or remover, at a time; also while its blocking part outlives a caller that went away.
    opening: Arc<tokio::sync::Mutex<()>>,
    pub(crate) space: SpaceGauge,
    pub(crate) sweeper: Sweeper,
    pub(crate) run: u64,
    pub(crate) unclean_run: u64,
}

impl FileEngine {
    /// Opens the folder that `disk` is: makes it, goes on from a clean stop, or recovers. Blocks.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: FileEngineConfig,
    ) -> Result<(Arc<Self>, RecoveryReport), OpenError> {
        let lock = Arc::new(folder_lock::take_with_name(&*disk)?);
        let segments = SegmentStore::new(Arc::clone(&disk), config.segment_options());
        let recovered = recovery::recover(&disk, &segments, &config)?;
        for DamagedLog { id, reason, rescued } in &recovered.report.damaged {
            tracing::error!(partition = %id, reason, rescued, "log is damaged and stays closed");
        }
        let thread = |source| OpenError::Io { what: "start thread", source };
        let files = JournalFiles::start(Arc::clone(&disk), recovered.spare, recovered.next_slot)
            .map_err(thread)?;
        let sizes = FileSizes {
            first_bytes: config.journal_first_file.get(),
            max_bytes: config.journal_file.get(),
            spare_bytes_max: config.journal_cap.get() / 2,
        };
        files.discard_surplus(sizes.spare_bytes_max);
        // In the background: the first commit finds it, or makes its own.
        files.prepare(sizes.first_bytes);
        let writer = Writer::new(Arc::new(files), sizes, recovered.last, recovered.generation_max);
        let (sweeper, to_sweep) = Sweeper::new();
        let shared = Arc::new(Shared {
            queue: Queue::new(config.bounds()),
            rows: RwLock::new(Rows::from_map(recovered.rows)),
            segments,
            checkpoints: Checkpoints::default(),
            logs: Arc::new(Registry::default()),
            unsound: Unsound::default(),
            unsaved: Unsaved::default(),
            ending: Ending::default(),
            rewriting: Rewriting::default(),
            opening: Arc::default(),
            space: SpaceGauge::new(config.reserve, &*disk),
            sweeper,
            run: recovered.run,
            unclean_run: recovered.unclean_run,
            disk,
            config,
        });
        let committer = Committer::new(Arc::clone(&shared), writer);
        let (for_checkpoints, for_sweeping) = (Arc::clone(&shared), Arc::clone(&shared));
        // The folder stays locked for as long as one of them may write.
        let (for_commit, for_sweep, for_checkpoint) = (Arc::clone(&lock), Arc::clone(&lock), lock);
        // The order in which they are joined: whoever asks before whoever answers.
        let mut threads = Vec::new();
        threads.push(spawn("checkpoint", move || {
            let told = TellPanic(&for_checkpoints.config);
            let shared = &*for_checkpoints;
            shared.checkpoints.run(&shared.queue, |frozen| frozen.run(shared));
            drop(told);
            drop(for_checkpoint);
        })?);
        threads.push(spawn("commit", move || {
            committer.run();
            drop(for_commit);
        })?);
        threads.push(spawn("sweep", move || {
            sweeper::run(&to_sweep, &*for_sweeping);
            drop((for_sweeping, for_sweep));
        })?);
        let running =
            Arc::new(Running { shared: Arc::clone(&shared), threads: Mutex::new(threads) });
        shared.config.progress.begin(OpenWork::Done, 0);
        Ok((Arc::new(Self { shared, running }), recovered.report))
    }

    /// Makes everything durable, marks the stop as clean and ends the threads.
    pub(crate) async fn stop_cleanly(&self) -> Result<(), StorageError> {
        let closed = StorageError::new(ErrorKind::Closed, "file engine is closed");
        let Some(done) = self.shared.queue.close_behind(closed) else {
            return Err(self.shared.closed_error());
        };
        let result = match done.await {
            Ok(()) => self.shared.checkpoints.done(StopMark::Clean).await,
            failed => failed,
        };
        self.running.end();
        result
    }
}

impl Running {
    /// Ends the threads after what is queued is done. No clean mark is written.
    fn end(&self) {
        self.shared.queue.close(StorageError::new(ErrorKind::Closed, "file engine is closed"));
        self.shared.checkpoints.stop();
        self.shared.queue.stop();
        self.shared.sweeper.stop();
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        let this = std::thread::current().id();
        // A listener that let go of the last handle runs on one of them: it can't wait for itself.
        if threads.iter().any(|thread| thread.thread().id() == this) {
            return;
        }
        for thread in threads {
            // A panic of the thread was printed by it, and its waiters have been told.
            drop(thread.join());
        }
    }
}

impl Shared {
    /// Waits until nobody opens or removes a log, and keeps others from it.
    pub(crate) async fn turn(&self) -> Turn {
        Arc::new(Arc::clone(&self.opening).lock_owned().await)
    }

    /// The same, unless somebody opens or removes a log now.
    pub(crate) fn try_turn(&self) -> Option<Turn> {
        Arc::clone(&self.opening).try_lock_owned().ok().map(Arc::new)
    }

    /// Fails once the engine is closed or has failed.
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        self.queue.closed().map_or(Ok(()), Err)
    }

    fn closed_error(&self) -> StorageError {
        let fallback = || StorageError::new(ErrorKind::Closed, "file engine is closed");
        self.queue.closed().unwrap_or_else(fallback)
    }
}

/// An engine that is dropped without closing leaves an unclean folder, but no thread that still writes.
impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends the process that serves when the checkpoint thread panics.
struct TellPanic<'a>(&'a FileEngineConfig);

impl Drop for TellPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let message = "checkpoint thread of the file engine panicked";
            (self.0.on_fatal)(&StorageError::new(ErrorKind::Closed, message));
        }
    }
}

impl fmt::Debug for FileEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileEngine").field("run", &self.shared.run).finish_non_exhaustive()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    Builder::new()
        .name(format!("strandline-{name}"))
        .spawn(work)
        .map_err(|source| OpenError::Io { what: "start thread", source })
}
