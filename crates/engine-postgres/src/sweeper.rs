//! Entries of dropped chunks go in the background: small steps that hold no lock anybody waits for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::connection::{Params, Pool, pause};
use crate::error::Failure;
use crate::sql::Query;

/// Bytes that one step removes, and the longest that it makes a vacuum wait for it.
const STEP_BYTES: i64 = 8 << 20;

/// Between two steps: a purge leaves the disk to those who append.
const STEP_PAUSE: Duration = Duration::from_millis(2);

/// What is to be removed. As many as there are dropped chunks, whose rows say the same after a restart.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    coming: Mutex<VecDeque<Sweep>>,
    arrived: Notify,
    bytes: AtomicU64,
}

/// A chunk.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    log_id: i64,
    number: i64,
    bytes: u64,
    /// It was being written, and is to be given up first.
    is_begun: bool,
}

impl Sweeps {
    /// Chunks, by number and bytes, that the rows say are dropped.
    pub(crate) fn add(&self, log_id: i64, chunks: impl IntoIterator<Item = (i64, i64)>) {
        for (number, bytes) in chunks {
            let bytes = bytes.max(0).cast_unsigned();
            self.push(Sweep { log_id, number, bytes, is_begun: false });
        }
    }

    /// A chunk that nobody writes any more, and that will take no other's place.
    pub(crate) fn give_up(&self, log_id: i64, number: i64) {
        self.push(Sweep { log_id, number, bytes: 0, is_begun: true });
    }

    /// Bytes of dropped chunks that are still there.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn push(&self, sweep: Sweep) {
        self.bytes.fetch_add(sweep.bytes, Ordering::Relaxed);
        self.coming.lock().push_back(sweep);
        self.arrived.notify_one();
    }

    async fn next(&self) -> Sweep {
        loop {
            if let Some(sweep) = self.coming.lock().pop_front() {
                return sweep;
            }
            self.arrived.notified().await;
        }
    }
}

/// Sweeps until it is stopped.
pub(crate) async fn run(sweeps: Arc<Sweeps>, pool: Arc<Pool>) {
    let mut failures = 0;
    loop {
        let sweep = sweeps.next().await;
        match sweep.carry_out(&pool).await {
            Ok(()) => {
                failures = 0;
                sweeps.bytes.fetch_sub(sweep.bytes, Ordering::Relaxed);
            }
            Err(failure) => {
                failures += 1;
                tracing::debug!(?failure, failures, "dropped chunk is not removed yet");
                sweeps.coming.lock().push_back(sweep);
                tokio::time::sleep(pause(failures)).await;
            }
        }
    }
}

impl Sweep {
    async fn carry_out(self, pool: &Pool) -> Result<(), Failure> {
        let Self { log_id, number, is_begun, .. } = self;
        if is_begun {
            pool.query(Query::Discard, &[&log_id, &number]).await?;
        }
        loop {
            let values: Params<'_> = &[&log_id, &number, &STEP_BYTES];
            let rows = pool.query(Query::SweepEntries, values).await?;
            if rows.first().is_none_or(|row| row.get::<_, i64>(0) == 0) {
                break;
            }
            tokio::time::sleep(STEP_PAUSE).await;
        }
        pool.query(Query::SweepChunk, &[&log_id, &number]).await?;
        Ok(())
    }
}
