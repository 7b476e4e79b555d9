//! What the rows say of all logs at the start: read in pages, so that no statement takes long and no
//! answer is large, however many there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_model::PartitionId;
use strandline_storage::StorageError;
use tokio_postgres::Row;

use crate::connection::{Params, Pool};
use crate::facts::Facts;
use crate::row::LogRow;
use crate::sql::Query;
use crate::state::Log;
use crate::sweeper::Sweeps;

/// Rows of one statement.
pub(crate) const PAGE_ROWS: i64 = 10_000;

/// The state of a chunk whose entries are to go.
pub(crate) const DROPPED: i16 = 2;

/// All logs; what is to be swept goes to `sweeps`.
pub(crate) async fn all(
    pool: &Pool,
    sweeps: &Sweeps,
) -> Result<BTreeMap<PartitionId, Arc<Log>>, StorageError> {
    let mut sealed = sealed_chunks(pool, sweeps).await?;
    let mut logs = BTreeMap::new();
    let mut after = 0_i64;
    loop {
        let rows = page(pool, Query::LogsFrom, &[&after, &PAGE_ROWS]).await?;
        let Some(last) = rows.last() else { return Ok(logs) };
        after = last.get(0);
        for row in &rows {
            let row = LogRow::of_row(row)?;
            let mut chunks = sealed.remove(&row.log_id).unwrap_or_default();
            // A chunk that took the place of others has a higher number than those behind it.
            chunks.sort_unstable_by_key(|facts| facts.base);
            logs.insert(row.id, Arc::new(Log::of_rows(&row, chunks)));
        }
    }
}

/// By log, in the order of their numbers.
async fn sealed_chunks(
    pool: &Pool,
    sweeps: &Sweeps,
) -> Result<BTreeMap<i64, Vec<Facts>>, StorageError> {
    let mut sealed: BTreeMap<i64, Vec<Facts>> = BTreeMap::new();
    let mut after = (0_i64, 0_i64);
    loop {
        let rows = page(pool, Query::ChunksFrom, &[&after.0, &after.1, &PAGE_ROWS]).await?;
        let Some(last) = rows.last() else { return Ok(sealed) };
        after = (last.get(0), last.get(1));
        for row in &rows {
            let (log_id, facts) = Facts::of_row(row);
            if row.get::<_, i16>(8) == DROPPED {
                sweeps.add(log_id, [(facts.number, facts.bytes)]);
            } else {
                sealed.entry(log_id).or_default().push(facts);
            }
        }
    }
}

async fn page(pool: &Pool, query: Query, values: Params<'_>) -> Result<Vec<Row>, StorageError> {
    let answer = pool.query(query, values).await;
    answer.map_err(|failure| failure.into_storage("read the rows of logs"))
}
