//! What may take its time: entries that go, of logs that are removed and of chunks that were dropped.
//!
//! A removal holds no lock that anybody waits for; what it takes from those who append is the disk. Each
//! row that goes is a page that changes, which the database writes to its own log whole when it was not
//! written since the last checkpoint: a gigabyte that goes is about a gigabyte there. So there is one
//! step at a time, a small one, and a rest after it in proportion to what it took: where the database is
//! busy, removals become slower by themselves. The more there is to remove, the shorter the rests are:
//! whoever appends and drops at a steady rate would else fill the disk.
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

/// Bytes that one step removes, unless one entry is larger.
pub(crate) const STEP_BYTES: i64 = 256 << 10;

/// How many times as long as a step took nothing happens after it, when little is to be removed.
const REST: f64 = 8.0;

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
    fn rests_are_shorter_the_more_there_is_to_remove() {
        let millis = Duration::from_millis;
        for (took, backlog_gib, expected) in [
            (millis(2), 0, millis(16)),
            (millis(2), 1, millis(12)),
            (millis(2), 4, Duration::ZERO),
            (millis(2), 100, Duration::ZERO),
            (Duration::from_secs(30), 0, REST_MAX),
            (Duration::ZERO, 0, Duration::ZERO),
        ] {
            assert_eq!(rest(took, backlog_gib << 30), expected, "{took:?}, {backlog_gib} GiB");
        }
    }
}
