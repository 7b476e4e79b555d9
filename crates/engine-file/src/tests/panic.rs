//! A thread of the engine panics: nobody waits for it for ever.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use strandline_model::ByteCount;
use strandline_storage::testkit::{Recorder, TestBatch, open_request};
use strandline_storage::{LogStore, MetaBatch, MetaStore, Table};

use crate::disk::{DirEntry, Disk, DiskFile, DiskLock, FileLook, OpenMode, TestDisk};
use crate::{FileEngine, FileEngineConfig};

/// Panics when the thread of that name opens a file.
#[derive(Debug)]
struct Trap {
    disk: TestDisk,
    thread: &'static str,
}

impl Disk for Trap {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        assert_ne!(std::thread::current().name(), Some(self.thread), "the trap");
        self.disk.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(path)
    }

    fn look(&self, path: &Path) -> io::Result<FileLook> {
        self.disk.look(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn free_space(&self) -> io::Result<ByteCount> {
        self.disk.free_space()
    }

    fn lock(&self) -> io::Result<DiskLock> {
        self.disk.lock()
    }
}

/// An engine one of whose threads can't open a file, and how often it called for its end.
fn trapped(thread: &'static str) -> (Arc<FileEngine>, Arc<AtomicUsize>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&ends);
    let on_fatal = Arc::new(move |_: &_| _ = told.fetch_add(1, Ordering::SeqCst));
    let config = FileEngineConfig { on_fatal, ..FileEngineConfig::tiny() };
    let disk = Trap { disk: TestDisk::new(), thread };
    let (engine, _) = FileEngine::open(Arc::new(disk), config).expect("the folder opens");
    (engine, ends)
}

#[tokio::test]
async fn without_the_thread_that_makes_journal_files_commits_go_on() {
    let (engine, ends) = trapped("strandline-journal");
    for number in 0..50 {
        let batch = MetaBatch::new().put(Table::Topics, number.to_string(), vec![0; 3000]);
        engine.commit(batch).await.unwrap();
    }
    engine.close().await.unwrap();
    assert_eq!(ends.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn without_the_checkpoint_thread_the_engine_ends_and_everybody_hears_of_it() {
    let (engine, ends) = trapped("strandline-checkpoint");
    let log = engine.open(open_request(0, &Arc::new(Recorder::default()))).await.unwrap();
    let checkpoint = engine.shared.checkpoints.done(crate::queue::StopMark::Running);
    checkpoint.await.unwrap_err();
    // More than the journal holds: without an answer this would wait for ever.
    let refused = loop {
        let batch = MetaBatch::new().put(Table::Topics, "a", vec![0; 100_000]);
        if let Err(error) = engine.commit(batch).await {
            break error;
        }
    };
    assert!(matches!(refused, strandline_storage::CommitError::Storage(_)), "{refused:?}");
    log.log.ready().await;
    let at = log.log.bounds().written_end;
    log.log.submit(at, TestBatch::of(1).seal(at, log.epoch)).unwrap_err();
    engine.close().await.unwrap_err();
    // The threads are joined.
    drop((log, engine));
    assert_eq!(ends.load(Ordering::SeqCst), 1);
}
