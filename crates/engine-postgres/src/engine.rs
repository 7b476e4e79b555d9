//! The engine: what all its parts share, and how it begins.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use strandline_model::PartitionId;
use strandline_storage::{ErrorKind, StorageError};
use tokio::task::AbortHandle;
use tokio_postgres::Row;

use crate::advice::Advice;
use crate::background::Background;
use crate::cache::Cache;
use crate::connection::{Connector, Isolation, Params, Pool};
use crate::error::closed;
use crate::failover::Failover;
use crate::lane::Lane;
use crate::load;
use crate::logs::{Logs, lane_of};
use crate::meta::RowWriters;
use crate::pulse;
use crate::queue::Queue;
use crate::schema;
use crate::sql::Query;
use crate::state::Log;
use crate::supervise::supervise;
use crate::sweeper::{self, Sweeps};
use crate::vitals::Vitals;
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
    pub(crate) past: Arc<Cache>,
    pub(crate) failover: Arc<Failover>,
    pub(crate) sweeps: Arc<Sweeps>,
    pub(crate) background: Arc<Background>,
    pub(crate) rows: RowWriters,
    pub(crate) is_closed: AtomicBool,
    pub(crate) logs: Arc<Logs>,
    /// Those that work until they are stopped.
    tasks: Vec<AbortHandle>,
    /// Only tests end lanes before they are done.
    lane_tasks: Vec<AbortHandle>,
}

impl PostgresEngine {
    /// Connects, brings the schema up to date, and reads what is known of all logs. Runs on the tokio
    /// runtime of the caller, which must live as long as the engine.
    pub async fn open(config: PostgresConfig) -> Result<Started, OpenError> {
        config.check()?;
        let connector = Arc::new(Connector::new(&config));
        let advice = schema::prepare(&connector, &config).await?;
        let logs = Arc::new(Logs::default());
        let tail = Arc::new(Cache::new(config.tail_bytes));
        let past = Arc::new(Cache::new(config.past_bytes));
        let caches = [Arc::clone(&tail), Arc::clone(&past)];
        let vitals = Arc::clone(connector.vitals());
        let failover = Arc::new(Failover::new(Arc::clone(&logs), caches, vitals));
        connector.look_with(Arc::clone(&failover));
        let pool =
            Arc::new(Pool::new(Arc::clone(&connector), config.readers, Isolation::Committed));
        let sweeps = Arc::new(Sweeps::default());
        logs.add(load::all(&pool, &sweeps).await?);
        let run = rand::random();
        let background = Arc::new(Background::new(Arc::clone(&connector)));
        let rows = RowWriters::new(Arc::clone(&connector), Arc::clone(&pool), &config);
        let mut shared = Shared {
            run,
            pool,
            lanes: Vec::new(),
            tail,
            past,
            failover,
            sweeps,
            background,
            rows,
            is_closed: AtomicBool::new(false),
            logs,
            tasks: Vec::new(),
            lane_tasks: Vec::new(),
        };
        for index in 0..config.lanes {
            shared.start_lane(index, &config, &connector);
        }
        shared.start_tasks(&config);
        Ok(Started { engine: Self { shared: Arc::new(shared) }, advice })
    }

    /// Makes lane 0 panic when it comes to that.
    #[cfg(feature = "testkit")]
    pub fn panic_lane(&self) {
        self.shared.lanes[0].push_panic();
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
        self.logs.known(id)
    }

    /// The lane of a log.
    pub(crate) fn lane(&self, log_id: i64) -> Arc<Queue> {
        Arc::clone(&self.lanes[lane_of(log_id, self.lanes.len())])
    }

    pub(crate) fn vitals(&self) -> &Arc<Vitals> {
        self.pool.vitals()
    }

    fn start_lane(&mut self, index: usize, config: &PostgresConfig, connector: &Arc<Connector>) {
        let queue = Arc::new(Queue::new(config.pending_appends_max, config.pending_bytes_max));
        self.lanes.push(Arc::clone(&queue));
        let (run, outcome_wait, lanes) = (self.run, config.outcome_wait, config.lanes);
        let (connector, logs) = (Arc::clone(connector), Arc::clone(&self.logs));
        let kept = (Arc::clone(&self.tail), Arc::clone(&self.sweeps));
        let make = move || {
            let (queue, connector) = (Arc::clone(&queue), Arc::clone(&connector));
            Lane::new(queue, connector, kept.clone(), run, outcome_wait).run()
        };
        // What was under way may have happened or not: whoever opens those logs next finds out.
        let died = move || {
            let error = StorageError::new(ErrorKind::Unavailable, "the lane of the log panicked");
            logs.kill_lane(index, lanes, &error);
        };
        let lane = supervise("lane", Arc::clone(self.vitals()), make, died);
        self.lane_tasks.push(tokio::spawn(lane).abort_handle());
    }

    fn start_tasks(&mut self, config: &PostgresConfig) {
        let (vitals, pool, sweeps) =
            (self.vitals(), Arc::clone(&self.pool), Arc::clone(&self.sweeps));
        let background = Arc::clone(&self.background);
        let sweeper =
            move || sweeper::run(Arc::clone(&sweeps), Arc::clone(&pool), Arc::clone(&background));
        let sweeper = tokio::spawn(supervise("sweeper", Arc::clone(vitals), sweeper, || {}));
        let (beats, pool, lease) = (Arc::clone(vitals), Arc::clone(&self.pool), config.read_lease);
        let probe = self.rows.probe_id();
        let pulse = move || pulse::run(Arc::clone(&beats), Arc::clone(&pool), lease, probe);
        let pulse = tokio::spawn(supervise("pulse", Arc::clone(vitals), pulse, || {}));
        self.tasks.extend([sweeper.abort_handle(), pulse.abort_handle()]);
    }

    /// No task begins anything new.
    pub(crate) fn end_tasks(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
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
