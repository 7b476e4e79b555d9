//! The engine: what all its parts share, and how it begins.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use strandline_model::PartitionId;
use strandline_storage::StorageError;
use tokio::task::AbortHandle;
use tokio_postgres::Row;

use crate::advice::Advice;
use crate::background::Background;
use crate::cache::Cache;
use crate::connection::{Connector, Isolation, Params, Pool};
use crate::error::closed;
use crate::lane::Lane;
use crate::load;
use crate::meta::RowWriters;
use crate::queue::Queue;
use crate::schema;
use crate::sql::Query;
use crate::state::Log;
use crate::sweeper::{self, Sweeps};
use crate::{OpenError, PostgresConfig};

/// Logs and rows in a PostgreSQL database. See the [crate](crate).
pub struct PostgresEngine {
    pub(crate) shared: Arc<Shared>,
}

/// A started engine.
#[derive(Debug)]
pub struct Started {
    /// The engine.
    pub engine: PostgresEngine,
    /// What about the server is not as it should be.
    pub advice: Vec<Advice>,
}

/// What the engine, its open logs and its tasks share.
pub(crate) struct Shared {
    /// Which run of the engine this is; never the same twice.
    pub(crate) run: i64,
    pub(crate) pool: Arc<Pool>,
    pub(crate) lanes: Vec<Arc<Queue>>,
    pub(crate) tail: Arc<Cache>,
    pub(crate) past: Cache,
    pub(crate) sweeps: Arc<Sweeps>,
    pub(crate) background: Arc<Background>,
    pub(crate) rows: RowWriters,
    pub(crate) is_closed: AtomicBool,
    logs: Mutex<BTreeMap<PartitionId, Arc<Log>>>,
    sweeper: AbortHandle,
    /// Only tests end lanes before they are done.
    #[cfg_attr(not(feature = "testkit"), expect(dead_code, reason = "lanes end by themselves"))]
    lane_tasks: Vec<AbortHandle>,
}

impl PostgresEngine {
    /// Connects, brings the schema up to date, and reads what is known of all logs. Runs on the tokio
    /// runtime of the caller, which must live as long as the engine.
    pub async fn open(config: PostgresConfig) -> Result<Started, OpenError> {
        config.check()?;
        let connector = Arc::new(Connector::new(&config));
        let advice = schema::prepare(&connector, &config).await?;
        let pool =
            Arc::new(Pool::new(Arc::clone(&connector), config.readers, Isolation::Committed));
        let sweeps = Arc::new(Sweeps::default());
        let logs = load::all(&pool, &sweeps).await?;
        let run = rand::random();
        let tail = Arc::new(Cache::new(config.tail_bytes));
        let mut lanes = Vec::new();
        let mut lane_tasks = Vec::new();
        for _ in 0..config.lanes {
            let queue = Arc::new(Queue::new(config.pending_appends_max, config.pending_bytes_max));
            let kept = (Arc::clone(&tail), Arc::clone(&sweeps));
            let (queued, to) = (Arc::clone(&queue), Arc::clone(&connector));
            let lane = Lane::new(queued, to, kept, run, config.outcome_wait);
            lane_tasks.push(tokio::spawn(lane.run()).abort_handle());
            lanes.push(queue);
        }
        let background = Arc::new(Background::new(Arc::clone(&connector)));
        let (swept, kept) = (Arc::clone(&sweeps), Arc::clone(&pool));
        let sweeper = tokio::spawn(sweeper::run(swept, kept, Arc::clone(&background)));
        let outcome_wait = config.outcome_wait;
        let rows = RowWriters::new(connector, Arc::clone(&pool), config.row_writers, outcome_wait);
        let shared = Shared {
            run,
            pool,
            lanes,
            tail,
            past: Cache::new(config.past_bytes),
            sweeps,
            background,
            rows,
            is_closed: AtomicBool::new(false),
            logs: Mutex::new(logs),
            sweeper: sweeper.abort_handle(),
            lane_tasks,
        };
        Ok(Started { engine: Self { shared: Arc::new(shared) }, advice })
    }

    /// Ends everything as if the process were killed: nothing is closed, nothing waited for.
    #[cfg(feature = "testkit")]
    pub async fn kill(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.lane_tasks.iter().for_each(AbortHandle::abort);
        self.shared.end_tasks();
        self.shared.rows.close().await;
        self.shared.background.close().await;
        self.shared.pool.close().await;
    }
}

impl Shared {
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        if self.is_closed.load(Ordering::Acquire) { Err(closed()) } else { Ok(()) }
    }

    /// Carries out a statement that may be carried out twice. `context` is in verb form.
    pub(crate) async fn query(
        &self,
        context: &str,
        query: Query,
        values: Params<'_>,
    ) -> Result<Vec<Row>, StorageError> {
        let answer = self.pool.query(query, values).await;
        answer.map_err(|failure| failure.into_storage(context))
    }

    pub(crate) fn known(&self, id: PartitionId) -> Option<Arc<Log>> {
        self.logs.lock().get(&id).map(Arc::clone)
    }

    pub(crate) fn known_or_new(&self, id: PartitionId) -> Arc<Log> {
        let mut logs = self.logs.lock();
        Arc::clone(logs.entry(id).or_insert_with(|| Arc::new(Log::new(id))))
    }

    pub(crate) fn all_known(&self) -> Vec<Arc<Log>> {
        self.logs.lock().values().map(Arc::clone).collect()
    }

    /// The log is gone.
    pub(crate) fn forget(&self, id: PartitionId) {
        let gone = self.logs.lock().remove(&id);
        drop(gone);
    }

    /// The lane of a log: always the same one, so that what it does stays in order.
    pub(crate) fn lane(&self, log_id: i64) -> Arc<Queue> {
        let lane = log_id.cast_unsigned() % self.lanes.len() as u64;
        Arc::clone(&self.lanes[usize::try_from(lane).unwrap_or(0)])
    }

    /// No task begins anything new.
    pub(crate) fn end_tasks(&self) {
        self.sweeper.abort();
        for lane in &self.lanes {
            lane.close();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end_tasks();
    }
}

impl fmt::Debug for PostgresEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresEngine")
            .field("lanes", &self.shared.lanes.len())
            .field("is_closed", &self.shared.is_closed.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("run", &self.run).finish_non_exhaustive()
    }
}
