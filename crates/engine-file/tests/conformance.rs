//! The file engine does what every engine must: in a folder, and on the disk that loses power.

use std::sync::Arc;
use std::time::{Duration, Instant};

use strandline_engine_file::disk::{Crash, Disk, RealDisk, TestDisk};
use strandline_engine_file::{FileEngine, FileEngineConfig, OpenError};
use strandline_storage::testkit::{Engine, Factory, Stop};

/// How long the engine before may take to end.
const END_MAX: Duration = Duration::from_secs(20);

/// The engine before may have been let go of last by a listener, on a thread that ends a little later.
fn start(disk: &Arc<dyn Disk>) -> Engine {
    let begun = Instant::now();
    let engine = loop {
        match FileEngine::open(Arc::clone(disk), FileEngineConfig::tiny()) {
            Err(OpenError::InUse { .. }) if begun.elapsed() < END_MAX => std::thread::yield_now(),
            opened => break opened.expect("the folder opens").0,
        }
    };
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
        let disk = RealDisk::open(self.0.path()).expect("the folder is there");
        start(&(Arc::new(disk) as _))
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
        start(&(Arc::new(self.disk.clone()) as _))
    }

    async fn restart(&mut self, engine: Engine, stop: Stop) -> Option<Engine> {
        // The power goes while the engine runs: what its end would write is not there.
        let left = self.disk.after(self.crash);
        drop(engine);
        if stop == Stop::Crash {
            self.disk = left;
        }
        Some(start(&(Arc::new(self.disk.clone()) as _)))
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
