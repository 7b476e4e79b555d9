//! Entries of dropped chunks go in the background: small steps that hold no lock anybody waits for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::background::{Background, step_bytes};
use crate::connection::{Params, Pool, pause};
use crate::error::Failure;
use crate::sql::Query;

/// Failures in a row of which it is told.
const FAILURES_TOLD: usize = 10;

/// What is to be removed. As many as there are dropped chunks, whose rows say the same after a restart.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    coming: Mutex<VecDeque<Sweep>>,
    /// What is being removed.
    under_way: Mutex<Option<Sweep>>,
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

    /// Chunks that are still there.
    pub(crate) fn count(&self) -> u64 {
        self.coming.lock().len() as u64 + u64::from(self.under_way.lock().is_some())
    }

    async fn next(&self) -> Sweep {
        loop {
            let next = self.coming.lock().pop_front();
            if let Some(sweep) = next {
                *self.under_way.lock() = Some(sweep);
                return sweep;
            }
            self.arrived.notified().await;
        }
    }
}

/// Sweeps until it is stopped.
pub(crate) async fn run(sweeps: Arc<Sweeps>, pool: Arc<Pool>, background: Arc<Background>) {
    let mut failures = 0;
    // The sweeper before this one did not come to its end.
    let left = sweeps.under_way.lock().take();
    sweeps.coming.lock().extend(left);
    loop {
        let sweep = sweeps.next().await;
        let outcome = sweep.carry_out(&sweeps, &pool, &background).await;
        *sweeps.under_way.lock() = None;
        match outcome {
            Ok(()) => {
                failures = 0;
                sweeps.bytes.fetch_sub(sweep.bytes, Ordering::Relaxed);
            }
            Err(failure) => {
                failures += 1;
                if failures == FAILURES_TOLD {
                    tracing::warn!(?failure, failures, "dropped chunks stay, will try again");
                } else {
                    tracing::debug!(?failure, failures, "dropped chunk is not removed yet");
                }
                sweeps.coming.lock().push_back(sweep);
                tokio::time::sleep(pause(failures)).await;
            }
        }
    }
}

impl Sweep {
    async fn carry_out(
        self,
        sweeps: &Sweeps,
        pool: &Pool,
        background: &Background,
    ) -> Result<(), Failure> {
        let Self { log_id, number, is_begun, .. } = self;
        if is_begun {
            pool.query(Query::Discard, &[&log_id, &number]).await?;
        }
        let mut after = 0_i64;
        loop {
            let backlog = sweeps.bytes();
            let bytes_max = step_bytes(backlog);
            let values: Params<'_> = &[&log_id, &number, &bytes_max, &after];
            let rows = background.step(Query::SweepEntries, values, backlog).await?;
            let found = rows.first().map_or(0, |row| row.get::<_, i64>(1));
            match rows.first().and_then(|row| row.get::<_, Option<i64>>(0)) {
                Some(last) => after = last,
                None if after == 0 && found == 0 => break,
                // What came below meanwhile: a compaction that was given up may have added it. Or a
                // statement whose answer was lost was still at work on the same entries.
                None => after = 0,
            }
        }
        pool.query(Query::SweepChunk, &[&log_id, &number]).await?;
        Ok(())
    }
}
