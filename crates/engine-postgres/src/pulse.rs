//! A question now and then, so that a database that is gone is noticed while nobody asks it anything.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::connection::{Params, Pool};
use crate::sql::Query;
use crate::vitals::Vitals;

/// Signs of life within the length of a lease, at least.
const SIGNS_PER_LEASE: u32 = 5;
/// The longest time between two questions to a database that does not answer.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Between two looks at what keeps the database from tidying up.
const UPKEEP_EVERY: Duration = Duration::from_secs(30);

/// Asks until it is stopped. `probe` is the writer under whose name it finds out whether writes work.
pub(crate) async fn run(vitals: Arc<Vitals>, pool: Arc<Pool>, lease: Duration, probe: i64) {
    let every = lease / SIGNS_PER_LEASE;
    let mut upkeep_at = Instant::now();
    loop {
        let pause = if vitals.gone_for().is_some() { every.min(RETRY_EVERY) } else { every };
        tokio::time::sleep(pause).await;
        if vitals.gone_for().is_some() || vitals.silence() >= every {
            // What it fails with is noted where it fails.
            drop(pool.query_once(Query::Pulse, &[]).await);
        }
        if Instant::now() >= upkeep_at {
            upkeep_at = Instant::now() + UPKEEP_EVERY;
            // A role that may not look sees nothing, and needs nothing of it.
            if let Ok(rows) = pool.query_once(Query::Upkeep, &[]).await {
                for row in &rows {
                    vitals.upkeep.take(row);
                }
            }
        }
        if vitals.doubts_refusal() {
            let values: Params<'_> = &[&probe];
            match pool.query_once(Query::SettleWriter, values).await {
                Ok(_) => vitals.wrote(),
                Err(failure) => vitals.refused(&failure),
            }
        }
    }
}
