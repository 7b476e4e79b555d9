//! The memory engine, and the wrapper that injects failures while it injects none, do what every
//! engine must.

use std::sync::Arc;

use strandline_model::ByteCount;
use strandline_storage::testkit::faults::Faults;
use strandline_storage::testkit::{Engine, Factory, Stop};
use strandline_storage::{MemoryEngine, MemoryOptions};

/// Makes engines that take few appends at a time, so that the cases meet a full queue.
#[derive(Debug, Default)]
struct Memory {
    faults: Option<Faults>,
    running: Option<Arc<MemoryEngine>>,
}

fn options() -> MemoryOptions {
    MemoryOptions { pending_appends_max: 48, ..MemoryOptions::with_capacity(ByteCount::mib(64)) }
}

impl Memory {
    fn faultless() -> Self {
        Self { faults: Some(Faults::none()), running: None }
    }

    fn start(&mut self, memory: MemoryEngine) -> Engine {
        let memory = Arc::new(memory);
        self.running = Some(Arc::clone(&memory));
        let engine = Engine { logs: Arc::clone(&memory) as _, rows: memory };
        match &self.faults {
            Some(faults) => faults.wrap(engine),
            None => engine,
        }
    }
}

impl Factory for Memory {
    async fn make(&mut self) -> Engine {
        self.start(MemoryEngine::new(options(), |task| drop(tokio::spawn(task))))
    }

    async fn restart(&mut self, engine: Engine, stop: Stop) -> Option<Engine> {
        drop(engine);
        let stopped = self.running.take().expect("it was made or restarted before");
        let next = stopped.restart(stop, options(), |task| drop(tokio::spawn(task)));
        Some(self.start(next))
    }
}

mod memory {
    use super::*;

    strandline_storage::conformance_tests!(Memory::default());
}

mod faultless {
    use super::*;

    strandline_storage::conformance_tests!(Memory::faultless());
}
