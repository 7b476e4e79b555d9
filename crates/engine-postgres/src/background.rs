//! What may take its time: entries that go, of logs that are removed and of chunks that were dropped.
//!
//! A removal holds no lock that anybody waits for; what it takes from those who append is the disk. Each
//! row that goes is a page that changes, which the database writes to its own log whole when it was not
//! written since the last checkpoint: a gigabyte that goes is about a gigabyte there. So there is one
//! step at a time, a small one, and a rest after it in proportion to what it took: where the database is
//! busy, removals become slower by themselves. The more there is to remove, the larger are the steps and
//! the shorter the rests: whoever appends and drops at a steady rate would else fill the disk.
//!
//! Nobody waits for the disk here either: the connection does not wait for its commits. What a crash
//! takes back is removed again, and what ends a removal is committed behind it, so never without it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_postgres::Row;

use crate::connection::{Connector, Isolation, Params, Pool};
use crate::error::Failure;
use crate::sql::Query;

/// Bytes that one step removes when little is to be removed, unless one entry is larger. An append that
/// comes meanwhile shares the disk and the processors with a whole step.
const STEP_BYTES_MIN: i64 = 64 << 10;

/// Bytes that one step removes at [`BACKLOG_MAX`].
const STEP_BYTES_MAX: i64 = 1 << 20;

/// How many times as long as a step took nothing happens after it, when little is to be removed.
const REST: f64 = 4.0;

/// With so many bytes to be removed there are no rests any more.
const BACKLOG_MAX: u64 = 4 << 30;

/// The longest rest: a step that waited for something else owes no more.
const REST_MAX: Duration = Duration::from_millis(250);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Background {
    pool: Pool,
    turn: Mutex<()>,
}

impl Background {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self { pool: Pool::new(connector, 1, Isolation::Relaxed), turn: Mutex::default() }
    }

    /// Carries out a step, which does no harm when it is carried out twice, and rests. About `backlog`
    /// bytes are to be removed.
    pub(crate) async fn step(
        &self,
        query: Query,
        params: Params<'_>,
        backlog: u64,
    ) -> Result<Vec<Row>, Failure> {
        let turn = self.turn.lock().await;
        let begun = Instant::now();
        let answer = self.pool.query(query, params).await;
        tokio::time::sleep(rest(begun.elapsed(), backlog)).await;
        drop(turn);
        answer
    }

    /// Ends its connection.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Bytes that a step removes when about `backlog` are to be removed.
pub(crate) fn step_bytes(backlog: u64) -> i64 {
    // With its square, so that a deletion or two do not count yet.
    let (backlog, most) = (u128::from(backlog.min(BACKLOG_MAX)), u128::from(BACKLOG_MAX));
    let more = (STEP_BYTES_MAX - STEP_BYTES_MIN).cast_unsigned();
    let more = u128::from(more) * backlog * backlog / (most * most);
    STEP_BYTES_MIN + i64::try_from(more).unwrap_or_default()
}

/// How long nothing happens after a step that took so long.
#[expect(clippy::cast_precision_loss, reason = "a share of the backlog need not be exact")]
fn rest(took: Duration, backlog: u64) -> Duration {
    let share = 1.0 - backlog.min(BACKLOG_MAX) as f64 / BACKLOG_MAX as f64;
    took.min(REST_MAX).mul_f64(REST * share).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_larger_and_rests_shorter_the_more_there_is_to_remove() {
        let millis = Duration::from_millis;
        for (took, backlog_gib, expected, step_kib) in [
            (millis(2), 0, millis(8), 64),
            (millis(2), 1, millis(6), 124),
            (millis(2), 4, Duration::ZERO, 1024),
            (millis(2), 100, Duration::ZERO, 1024),
            (Duration::from_secs(30), 0, REST_MAX, 64),
            (Duration::ZERO, 0, Duration::ZERO, 64),
        ] {
            assert_eq!(rest(took, backlog_gib << 30), expected, "{took:?}, {backlog_gib} GiB");
            assert_eq!(step_bytes(backlog_gib << 30), step_kib << 10, "{backlog_gib} GiB");
        }
    }
}
