//! The engine as a whole, where the conformance suite can't look: what the disk does to it.

mod checkpoint;
mod copied;
mod damage;
mod direct;
mod displaced;
mod durability;
mod failure;
mod found;
mod inspect;
mod leftovers;
mod panic;
mod progress;
mod quarantine;
mod removal;
mod repair;
mod rewrite;
mod room;
mod shorter;
mod space;
mod start;
mod unsound;
mod version;

use std::sync::Arc;

use strandline_storage::LogStore;
use strandline_storage::testkit::{Engine, Subject};

use crate::disk::TestDisk;
use crate::{FileEngine, FileEngineConfig, OpenError, RecoveryReport};

/// An engine on a disk in memory.
struct Running {
    disk: TestDisk,
    engine: Engine,
    file: Arc<FileEngine>,
    report: RecoveryReport,
}

impl Running {
    fn on(disk: &TestDisk) -> Self {
        Self::with(disk, FileEngineConfig::tiny())
    }

    fn with(disk: &TestDisk, config: FileEngineConfig) -> Self {
        Self::try_with(disk, config).expect("the folder opens")
    }

    fn try_with(disk: &TestDisk, config: FileEngineConfig) -> Result<Self, OpenError> {
        let (file, report) = FileEngine::open(Arc::new(disk.clone()), config)?;
        let engine = Engine { logs: Arc::clone(&file) as _, rows: Arc::clone(&file) as _ };
        Ok(Self { disk: disk.clone(), engine, file, report })
    }

    async fn open(&self, index: u32) -> Subject {
        Subject::open(&self.engine, index).await
    }

    async fn close(self) -> TestDisk {
        self.file.close().await.expect("a healthy engine closes");
        self.disk
    }

    /// A checkpoint that begins now.
    async fn checkpoint(&self) {
        self.file.shared.checkpoints.done(crate::queue::StopMark::Running).await.expect("it works");
    }
}
