//! The file engine does what every engine must: in a folder, and on the disk that loses power.

use std::sync::Arc;

use strandline_engine_file::disk::{Crash, Disk, RealDisk, TestDisk};
use strandline_engine_file::{FileEngine, FileEngineConfig};
use strandline_storage::testkit::{Engine, Factory, Stop};

fn start(disk: Arc<dyn Disk>) -> Engine {
    let (engine, _) = FileEngine::open(disk, FileEngineConfig::tiny()).expect("the folder opens");
    Engine { logs: Arc::clone(&engine) as _, rows: engine }
}

/// A folder of the file system. A crash is one of the process: what it wrote is still there.
#[derive(Debug)]
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder can be made"))
    }

    fn start(&self) -> Engine {
        start(Arc::new(RealDisk::open(self.0.path()).expect("the folder is there")))
    }
}

impl Factory for Folder {
    async fn make(&mut self) -> Engine {
        *self = Self::new();
        self.start()
    }

    async fn restart(&mut self, engine: Engine, _: Stop) -> Option<Engine> {
        drop(engine);
        Some(self.start())
    }
}

/// A disk in memory. A crash takes the power: nothing is left but what was synced.
#[derive(Debug)]
struct Memory {
    disk: TestDisk,
    crash: Crash,
}

impl Memory {
    fn new(crash: Crash) -> Self {
        Self { disk: TestDisk::new(), crash }
    }
}

impl Factory for Memory {
    async fn make(&mut self) -> Engine {
        self.disk = TestDisk::new();
        start(Arc::new(self.disk.clone()))
    }

    async fn restart(&mut self, engine: Engine, stop: Stop) -> Option<Engine> {
        // The power goes while the engine runs: what its end would write is not there.
        let left = self.disk.after(self.crash);
        drop(engine);
        if stop == Stop::Crash {
            self.disk = left;
        }
        Some(start(Arc::new(self.disk.clone())))
    }
}

mod folder {
    use super::*;

    strandline_storage::conformance_tests!(Folder::new());
}

mod power {
    use super::*;

    strandline_storage::conformance_tests!(Memory::new(Crash::DropAll));
}

mod torn {
    use super::*;

    strandline_storage::conformance_tests!(Memory::new(Crash::Torn(7)));
}
