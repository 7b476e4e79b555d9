//! Looking for chunks whose entries are gone: log by log, so that no statement takes long, however many
//! there are.

use std::collections::BTreeMap;

use strandline_model::PartitionId;
use strandline_storage::StorageError;

use crate::engine::Shared;
use crate::row::partition_of;
use crate::sql::Query;

/// Logs of one statement.
const PAGE_LOGS: i64 = 1_000;

/// Chunks that are told of.
const TOLD_MAX: usize = 10_000;

impl Shared {
    /// The numbers of chunks whose last entry is missing.
    pub(crate) async fn without_end(
        &self,
    ) -> Result<BTreeMap<PartitionId, Vec<String>>, StorageError> {
        let mut lost: BTreeMap<PartitionId, Vec<String>> = BTreeMap::new();
        let (mut after, mut count) = (0_i64, 0);
        while count < TOLD_MAX {
            let what = "look for what is lost";
            let page = self.query(what, Query::LogPage, &[&after, &PAGE_LOGS]).await?;
            let Some(last) = page.first().and_then(|row| row.get::<_, Option<i64>>(0)) else {
                break;
            };
            let rows = self.query(what, Query::Lost, &[&after, &last]).await?;
            for row in &rows {
                let number: i64 = row.get(2);
                let id = partition_of(row.get(0), row.get(1))?;
                lost.entry(id).or_default().push(number.to_string());
            }
            count += rows.len();
            after = last;
        }
        Ok(lost)
    }
}
