//! The PostgreSQL engine does what every engine must.

use std::sync::Arc;

use strandline_engine_postgres::{PostgresConfig, PostgresEngine};
use strandline_storage::testkit::{Engine, Factory, Stop};

use super::server;

/// A schema of the shared server.
#[derive(Debug)]
struct Schema {
    config: PostgresConfig,
    running: Option<Arc<PostgresEngine>>,
}

impl Schema {
    fn new() -> Self {
        Self { config: server::shared().config(), running: None }
    }

    async fn start(&mut self) -> Engine {
        let started = PostgresEngine::open(self.config.clone()).await.expect("the engine opens");
        let engine = Arc::new(started.engine);
        self.running = Some(Arc::clone(&engine));
        Engine { logs: Arc::clone(&engine) as _, rows: engine }
    }
}

impl Factory for Schema {
    async fn make(&mut self) -> Engine {
        self.config = server::shared().config();
        self.start().await
    }

    async fn restart(&mut self, engine: Engine, stop: Stop) -> Option<Engine> {
        let running = self.running.take().expect("it was started");
        if stop == Stop::Crash {
            running.kill().await;
        }
        drop((running, engine));
        Some(self.start().await)
    }
}

strandline_storage::conformance_tests!(Schema::new());
